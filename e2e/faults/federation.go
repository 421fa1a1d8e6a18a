// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// federation is two subclusters with simulated nodes, one proxy and one router. Each is a process.
type federation struct {
	t       *testing.T
	members []*member
	proxy   *daemon
	router  *daemon

	storeURL string // with the parameters of all daemons
}

type member struct {
	id    string
	rm    *daemon
	nodes *daemon
}

type daemon struct {
	*process.Process
	at map[string]string // addresses, from the ready file

	role     string
	settings []string
	command  process.Command
}

// lease is the maximum silence of a member. It is short, so that a fault lasts longer. patience is a router's timeout
// for a claim.
const (
	lease    = 3 * time.Second
	patience = 2 * time.Second
)

// found starts a federation over a store. parameters extend the store's URL. settings extend its ResourceManagers'
// configuration.
func found(t *testing.T, url, parameters string, settings ...string) *federation {
	t.Helper()
	return foundWith(t, url, parameters, nil, settings...)
}

// foundWith is found with additional settings of the proxy.
func foundWith(t *testing.T, url, parameters string, ofProxy []string, settings ...string) *federation {
	t.Helper()
	return foundAs(t, url, layout{
		parameters: parameters,
		ofProxy:    ofProxy,
		ofRM:       func(string) []string { return settings },
	})
}

// layout describes a federation. The zero value is the layout of found.
type layout struct {
	members    int    // 2
	parameters string // added to the store's URL
	ofProxy    []string
	ofRM       func(id string) []string
}

// foundAs starts a federation over a store.
func foundAs(t *testing.T, url string, l layout) *federation {
	t.Helper()
	f := &federation{t: t}
	url += "?timeout=300ms&max_wait=" + patience.String() + "&" + l.parameters
	f.storeURL = url
	f.proxy = f.startProxy("proxy", l.ofProxy...)
	for i := range max(l.members, 2) {
		m := &member{id: fmt.Sprintf("sc-%d", i+1)}
		settings := []string{
			"creel.store.url=" + url,
			"creel.subcluster.id=" + m.id,
			fmt.Sprintf("yarn.resourcemanager.epoch=%d", 1000*(i+1)),
			"yarn.resourcemanager.address=127.0.0.1:0",
			"yarn.resourcemanager.scheduler.address=127.0.0.1:0",
			"yarn.resourcemanager.resource-tracker.address=127.0.0.1:0",
			"yarn.resourcemanager.admin.address=127.0.0.1:0",
			"yarn.resourcemanager.webapp.address=127.0.0.1:0",
			"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms=100",
		}
		if l.ofRM != nil {
			settings = append(settings, l.ofRM(m.id)...)
		}
		m.rm = f.start("rm-"+m.id, "rm", settings...)
		m.nodes = f.start(
			"nm-"+m.id,
			"nm",
			"yarn.resourcemanager.resource-tracker.address="+m.rm.at["tracker"],
			"creel.nm.simulate=2",
			"creel.nm.simulate.memory-mb=65536",
			"creel.nm.simulate.vcores=64",
			"creel.nm.simulate.run-time=1h",
		)
		f.members = append(f.members, m)
	}
	f.router = f.startRouter("router", url)
	f.await(
		"the router sees all members and all nodes",
		func() bool { return len(f.active()) == len(f.members) && f.nodes(f.router) == 2*len(f.members) },
	)
	return f
}

// startProxy starts a proxy over the store.
func (f *federation) startProxy(name string, settings ...string) *daemon {
	f.t.Helper()
	return f.start(name, "proxy", append([]string{
		"yarn.nodemanager.amrmproxy.address=127.0.0.1:0", "creel.store.url=" + f.storeURL,
	}, settings...)...)
}

// startRouter starts a router over a store.
func (f *federation) startRouter(name, url string) *daemon {
	f.t.Helper()
	return f.start(
		name,
		"router",
		"creel.store.url="+url,
		"yarn.router.clientrm.address=127.0.0.1:0",
		"yarn.router.rmadmin.address=127.0.0.1:0",
		"yarn.router.webapp.address=127.0.0.1:0",
	)
}

// start runs one daemon until the test ends, and waits until it serves.
func (f *federation) start(name, role string, settings ...string) *daemon {
	f.t.Helper()
	d := f.spawn(name, role, settings...)
	d.awaitReady(f.t)
	return d
}

// spawn runs one daemon until the test ends. It does not wait until the daemon serves.
func (f *federation) spawn(name, role string, settings ...string) *daemon {
	f.t.Helper()
	dir := f.t.TempDir()
	u := hadoop.OSUser(f.t)
	hadoop.Conf{
		"hadoop.http.staticuser.user":                         u,
		"hadoop.proxyuser." + u + ".hosts":                    "*",
		"hadoop.proxyuser." + u + ".groups":                   "*",
		"yarn.scheduler.capacity.root.queues":                 "default",
		"yarn.scheduler.capacity.root.default.capacity":       "100",
		"yarn.scheduler.capacity.maximum-am-resource-percent": "1",
		"yarn.scheduler.minimum-allocation-mb":                "128",
	}.Write(
		f.t,
		filepath.Join(dir, "conf"),
	)
	d := &daemon{role: role, settings: settings}
	d.command = process.Command{Name: name, Dir: dir}
	d.run(f.t)
	return d
}

// run starts the process of a daemon.
func (d *daemon) run(t testing.TB, more ...string) {
	t.Helper()
	if err := os.Remove(d.ready()); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	d.command.Args = []string{
		rm.Binary(t),
		d.role,
		"--conf",
		filepath.Join(d.command.Dir, "conf"),
		"--ready-file",
		d.ready(),
		"--drain-timeout",
		"2s",
	}
	for _, s := range slices.Concat(
		d.settings,
		[]string{
			"creel.store.poll-interval=300ms",
			"creel.membership.heartbeat-interval=300ms",
			"creel.membership.lease=" + lease.String(),
		},
		more,
	) {
		d.command.Args = append(d.command.Args, "-D", s)
	}
	d.Process = process.Start(t, d.command)
	started(d)
}

func (d *daemon) ready() string { return filepath.Join(d.command.Dir, "ready") }

// awaitReady waits until the daemon serves, and records its addresses.
func (d *daemon) awaitReady(t testing.TB) {
	t.Helper()
	var entry struct {
		PID       int
		Addresses map[string]string
	}
	d.Await(t, "the ready file", func() bool {
		b, err := os.ReadFile(d.ready())
		return err == nil && json.Unmarshal(b, &entry) == nil && entry.PID == d.PID()
	})
	d.at = entry.Addresses
	serves(t, d)
}

// ports maps settings to the address names in a daemon's ready file.
var ports = map[string]string{
	"yarn.resourcemanager.address":                  "client",
	"yarn.resourcemanager.scheduler.address":        "scheduler",
	"yarn.resourcemanager.resource-tracker.address": "tracker",
	"yarn.resourcemanager.admin.address":            "admin",
	"yarn.resourcemanager.webapp.address":           "web",
	"yarn.router.clientrm.address":                  "client",
	"yarn.router.rmadmin.address":                   "admin",
	"yarn.router.webapp.address":                    "web",
	"yarn.nodemanager.amrmproxy.address":            "proxy",
}

// again restarts an ended daemon at its former addresses.
func (d *daemon) again(t testing.TB, more ...string) {
	t.Helper()
	d.keepPorts()
	awaitDown(t, d.Name)
	d.run(t, more...)
	d.awaitReady(t)
}

// keepPorts sets the next start's addresses to the current ones.
func (d *daemon) keepPorts() {
	for i, s := range d.settings {
		if key, value, _ := strings.Cut(s, "="); value == "127.0.0.1:0" && d.at[ports[key]] != "" {
			d.settings[i] = key + "=" + d.at[ports[key]]
		}
	}
}

func (f *federation) await(what string, cond func() bool) {
	f.t.Helper()
	if err := process.Poll(nil, cond); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

var web = &http.Client{Timeout: time.Minute}

// answer is the response to a REST call; code is 0 without one.
type answer struct {
	code       int
	retryAfter string
	body       string
	took       time.Duration
}

func call(t testing.TB, d *daemon, method, path string, in, out any) answer {
	t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+d.at["web"]+path+"?user.name="+hadoop.OSUser(t), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := web.Do(req)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	if out != nil && resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(b, out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), string(b), time.Since(began)}
}

// nodes returns the number of active nodes, as reported by a ResourceManager or the router.
func (f *federation) nodes(d *daemon) int {
	var m struct {
		ClusterMetrics struct{ ActiveNodes int }
	}
	call(f.t, d, http.MethodGet, "/ws/v1/cluster/metrics", nil, &m)
	return m.ClusterMetrics.ActiveNodes
}

// view is the router's view of the federation.
type view struct {
	Frozen      string
	Subclusters []struct {
		ID, State, Reason string
		Epoch             int64
		Age               float64 `json:"age_s"`
	}
}

func (f *federation) view() (v view) {
	call(f.t, f.router, http.MethodGet, "/api/v1/subclusters", nil, &v)
	return v
}

// active returns the active members of the router's view, with their epochs.
func (f *federation) active() map[string]int64 {
	out := map[string]int64{}
	for _, s := range f.view().Subclusters {
		if strings.EqualFold(s.State, "active") {
			out[s.ID] = s.Epoch
		}
	}
	return out
}

// newID asks the router for an application id.
func (f *federation) newID() string {
	f.t.Helper()
	var doc struct {
		ID string `json:"application-id"`
	}
	if a := call(f.t, f.router, http.MethodPost, "/ws/v1/cluster/apps/new-application", nil, &doc); doc.ID == "" {
		f.t.Fatalf("no application id: %+v", a)
	}
	return doc.ID
}

// submit submits an application whose AM runs in the test.
func (f *federation) submit(id string) answer {
	return call(f.t, f.router, http.MethodPost, "/ws/v1/cluster/apps", map[string]any{
		"application-id":    id,
		"application-name":  "story",
		"queue":             "default",
		"application-type":  "TEST",
		"unmanaged-AM":      true,
		"resource":          map[string]any{"memory": 256, "vCores": 1},
		"am-container-spec": map[string]any{},
	}, nil)
}

// retriable requires a response that permits a retry: 503 with Retry-After.
func retriable(t testing.TB, a answer) {
	t.Helper()
	if a.code != http.StatusServiceUnavailable || a.retryAfter == "" {
		t.Fatalf("the answer is %+v, want 503 with Retry-After", a)
	}
}

// submitSoon repeats a submission as the responses request, and returns the number of refusals.
func (f *federation) submitSoon(id string) (refused int) {
	f.t.Helper()
	f.await("the submission of "+id+" is taken", func() bool {
		a := f.submit(id)
		if a.code == http.StatusAccepted {
			return true
		}
		retriable(f.t, a)
		refused++
		return false
	})
	return refused
}

// state returns an application's state as a daemon reports it; "" if the daemon does not have the application.
func (f *federation) state(d *daemon, id string) string {
	var doc struct {
		App struct{ State string }
	}
	call(f.t, d, http.MethodGet, "/ws/v1/cluster/apps/"+id, nil, &doc)
	return doc.App.State
}

// homes returns the members with the application itself, not a UAM of its AM.
func (f *federation) homes(id string) (at []string) {
	for _, m := range f.members {
		var doc struct {
			App struct {
				State, Name string
			}
		}
		call(f.t, m.rm, http.MethodGet, "/ws/v1/cluster/apps/"+id, nil, &doc)
		if doc.App.Name == "story" {
			at = append(at, m.id)
		}
	}
	return at
}

func (f *federation) member(id string) *member {
	for _, m := range f.members {
		if m.id == id {
			return m
		}
	}
	f.t.Fatalf("no member %s", id)
	return nil
}
