// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/rest"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// drawnNodes are the nodes of drawn trees. No size is a multiple of another, so that rounding is visible.
var drawnNodes = []creel.Resource{
	creel.NewResource(16384, 16), creel.NewResource(8192, 12), creel.NewResource(5000, 3), creel.NewResource(4096, 7),
}

// hadoopTrees is the program java/Trees.java: a ResourceManager in one JVM that loads tree after tree.
type hadoopTrees struct {
	dir, conf, web string
	in             io.Writer
	out            *bufio.Scanner
	base           hadoop.Conf
}

func startTrees(t *testing.T, conf hadoop.Conf) *hadoopTrees {
	t.Helper()
	return startTreesOf(t, conf, drawnNodes)
}

// startTreesOf is startTrees with nodes of other sizes.
func startTreesOf(t *testing.T, conf hadoop.Conf, nodes []creel.Resource) *hadoopTrees {
	t.Helper()
	h := &hadoopTrees{dir: t.TempDir(), web: process.FreeAddress(t, "127.0.0.1")}
	h.conf = filepath.Join(h.dir, "conf")
	h.base = hadoop.Conf{
		"yarn.scheduler.minimum-allocation-mb":               "128",
		"yarn.scheduler.maximum-allocation-mb":               "8192",
		"yarn.scheduler.maximum-allocation-vcores":           "8",
		"yarn.cluster.max-application-priority":              "10",
		"yarn.resourcemanager.placement-constraints.handler": "disabled",
		"yarn.nm.liveness-monitor.expiry-interval-ms":        "3600000",
		"yarn.resourcemanager.webapp.address":                h.web,
		"hadoop.tmp.dir":                                     h.dir,
		"hadoop.http.staticuser.user":                        hadoop.OSUser(t),
	}.With(conf)
	for _, service := range []string{"address", "scheduler.address", "resource-tracker.address", "admin.address"} {
		if h.base["yarn.resourcemanager."+service] == "" {
			h.base["yarn.resourcemanager."+service] = "127.0.0.1:0"
		}
	}
	h.base["yarn.scheduler.fair.allocation.file"] = filepath.Join(h.conf, allocationFile)
	h.write(t, hadoop.Queues())
	line := append(strings.Fields(hadoop.Quick),
		"-XX:+UseSerialGC", "-Xmx600m", "-Djava.net.preferIPv4Stack=true", hadoop.AddOpens,
		"-cp", h.conf+":"+hadoop.Jars(t, hadoop.V342)+"/*", "java/Trees.java")
	for _, n := range nodes {
		line = append(line, fmt.Sprintf("%d:%d", n.MemoryMB, n.VCores))
	}
	cmd := exec.CommandContext(t.Context(), hadoop.Java(t), line...)
	var log bytes.Buffer
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%.4000s", log.String())
		}
	})
	h.in, h.out = in, bufio.NewScanner(out)
	h.out.Buffer(nil, 1<<20)
	if reply := h.reply(t); reply != "ok" {
		t.Fatal(reply)
	}
	return h
}

func (h *hadoopTrees) reply(t *testing.T) string {
	t.Helper()
	for h.out.Scan() {
		if text, ok := strings.CutPrefix(h.out.Text(), "= "); ok {
			return text
		}
	}
	t.Fatalf("the JVM ended: %v", h.out.Err())
	return ""
}

// do sends a command and returns the refusal, "" for none.
func (h *hadoopTrees) do(t *testing.T, words ...any) string {
	t.Helper()
	if _, err := fmt.Fprintln(h.in, words...); err != nil {
		t.Fatal(err)
	}
	if reply := h.reply(t); reply != "ok" {
		return reply
	}
	return ""
}

// write writes the configuration that the next command reads.
func (h *hadoopTrees) write(t *testing.T, conf hadoop.Conf) {
	t.Helper()
	all, files := hadoop.Conf{}, hadoop.Conf{}
	for key, value := range h.base.With(conf) {
		if rest, ok := strings.CutPrefix(key, fairPrefix); ok {
			files[rest] = value
		} else {
			all[key] = value
		}
	}
	all.Write(t, h.conf)
	if err := os.WriteFile(filepath.Join(h.conf, allocationFile), allocations(files), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(h.conf, "log4j.properties")
	if err := os.WriteFile(log, []byte("log4j.rootLogger=OFF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// document returns the real ResourceManager's document of its queues.
func (h *hadoopTrees) document(t *testing.T) map[string]string {
	t.Helper()
	res, err := http.Get("http://" + h.web + "/ws/v1/cluster/scheduler")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return factsOf(t, res.StatusCode, body)
}

// mutate changes keys by a call; the refusal is "" if it is accepted.
func (h *hadoopTrees) mutate(t *testing.T, body string) string {
	t.Helper()
	return h.call(t, "PUT", "scheduler-conf", body)
}

// call sends a document; the refusal is "" if it is accepted.
func (h *hadoopTrees) call(t *testing.T, method, path, body string) string {
	t.Helper()
	url := "http://" + h.web + "/ws/v1/cluster/" + path
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusOK {
		return ""
	}
	return "refused " + string(text)
}

// creelTrees is creel's server without ports, with one tree.
type creelTrees struct {
	s    *server.Server
	mux  http.Handler
	stop func()
}

func configured(t *testing.T, dir string) *settings.Settings {
	t.Helper()
	s, err := settings.Load(settings.Sources{ConfDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readQueues(t *testing.T, dir string) (server.Queues, error) {
	t.Helper()
	config, err := role.QueueConfig(configured(t, dir), false)
	return server.Queues{Spec: config.Queues, Placement: config.Placement}, err
}

// startOurs starts a server with the configuration directory; mutable: calls may change its queues.
func startOurs(t *testing.T, dir string, mutable bool) (*creelTrees, error) {
	t.Helper()
	q, err := readQueues(t, dir)
	if err != nil {
		return nil, err
	}
	m := rm.Defaults()
	m.MinAllocation, m.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(8192, 8)
	m.Queues, m.Placement = q.Spec, q.Placement
	labelled := configured(t, dir).Bool("yarn.node-labels.enabled")
	if labelled {
		m.Labels = rm.LabelsByCall
	}
	cfg := server.Config{
		ClusterID: "test", Machine: m, AdminACL: queues.ACL{All: true},
		ReloadQueues: func() (server.Queues, error) { return readQueues(t, dir) },
	}
	if mutable {
		cfg.Mutable = &server.MutableQueues{
			History: 3,
			File: func() (map[string]string, error) {
				s, err := settings.Load(settings.Sources{ConfDir: dir})
				if err != nil {
					return nil, err
				}
				found, err := s.CapacityScheduler()
				out := map[string]string{}
				for _, p := range found {
					out[p.Name] = p.Value
				}
				return out, err
			},
			Parse: func(values map[string]string) (server.Queues, error) {
				var props []queueconf.Property
				for _, name := range slices.Sorted(maps.Keys(values)) {
					props = append(props, queueconf.Property{Name: name, Value: values[name]})
				}
				q, err := queueconf.ReadCapacity(props, queueconf.Options{
					MaxAllocation: m.MaxAllocation, MaxClusterPriority: 10,
				})
				q.Queues.Preemption = m.Queues.Preemption
				return server.Queues{Spec: q.Queues, Placement: q.Placement}, err
			},
		}
	}
	s, err := server.New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	mux := chi.NewRouter()
	rest.New(s, rest.Config{
		MaxContainer: m.MaxAllocation, Resources: rest.TypesOf(&cfg.Machine), MaxBody: 1 << 20,
	}).Mount(mux)
	c := &creelTrees{s: s, mux: mux, stop: func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}}
	if labelled {
		if code, body := c.call("POST", "/ws/v1/cluster/add-node-labels?user.name=root", labelX); code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
	}
	return c, nil
}

func (c *creelTrees) call(method, path, body string) (int, []byte) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	c.mux.ServeHTTP(w, req)
	return w.Code, w.Body.Bytes()
}

func (c *creelTrees) document(t *testing.T) map[string]string {
	t.Helper()
	code, body := c.call("GET", "/ws/v1/cluster/scheduler", "")
	return factsOf(t, code, body)
}

func (c *creelTrees) mutate(body string) string {
	code, text := c.call("PUT", "/ws/v1/cluster/scheduler-conf?user.name=root", body)
	if code == http.StatusOK {
		return ""
	}
	return "refused " + string(text)
}

func (c *creelTrees) addNodes(t *testing.T, n int) {
	t.Helper()
	for i, size := range drawnNodes[:n] {
		op, err := c.s.RegisterNode(t.Context(), server.Caller{}, &rm.RegisterNode{
			ID:       creel.NodeID{Host: fmt.Sprintf("127.0.0.%d", i+2), Port: 1},
			HTTPPort: 1, Resource: size, Version: "3.4.2",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.Do(t.Context(), c.s, server.Caller{}, op); err != nil {
			t.Fatal(err)
		}
	}
}

// factsOf returns the fields of a document by path. Queues, partitions and the like are identified by their names.
func factsOf(t *testing.T, code int, body []byte) map[string]string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(body, []byte(":NaN"), []byte(`:"NaN"`))))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("%d: %v: %.500s", code, err, body)
	}
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if key != "health" {
					walk(path+"."+key, value)
				}
			}
			if len(v) == 0 {
				out[path] = "{}"
			}
		case []any:
			for i, value := range v {
				name := strconv.Itoa(i)
				if o, ok := value.(map[string]any); ok {
					for _, key := range []string{"queueName", "partitionName", "accessType", "resourceName", "name", "key"} {
						if s, ok := o[key].(string); ok {
							name = s[strings.LastIndexByte(s, '.')+1:]
							break
						}
					}
				}
				walk(path+"["+name+"]", value)
			}
			if len(v) == 0 {
				out[path] = "[]"
			}
		case nil:
			out[path] = "null"
		default:
			out[path] = fmt.Sprint(v)
		}
	}
	walk("", doc)
	return out
}

// alike compares two values; the last digits of 32-bit fractions depend on the order of operations.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && strings.ContainsAny(a+b, ".eE") &&
		math.Abs(x-y) <= 2e-6*max(math.Abs(x), math.Abs(y))
}

// A difference is one field, or one refusal, of both sides.
type difference struct{ kind, where, theirs, ours string }

var bracketed = regexp.MustCompile(`\[[^\]]*\]`)

// field returns the kind of a path: without the names of queues and labels.
func field(path string) string {
	_, text, _ := strings.Cut(bracketed.ReplaceAllString(path, ""), "schedulerInfo.")
	text, _, _ = strings.Cut(text, ".resourceInformations")
	const below = "ueues.queue" // queues or childQueues
	if i := strings.LastIndex(text, below+"."); i >= 0 {
		return "queue" + text[i+len(below):]
	}
	return "root." + text
}

// leftOver is the cause of a difference that a real ResourceManager has no more after a restart.
const leftOver = "left over"

func compareDocuments(where string, theirs, ours map[string]string) (out []difference) {
	all := maps.Clone(theirs)
	maps.Copy(all, ours)
	for path := range all {
		a, inTheirs := theirs[path]
		b, inOurs := ours[path]
		if !inTheirs {
			a = "-"
		}
		if !inOurs {
			b = "-"
		}
		if a != b && !alike(a, b) {
			out = append(out, difference{where + " " + field(path), path, a, b})
		}
	}
	return out
}

// A drawnRun is a case: configurations that both get one after the other.
type drawnRun struct {
	mutable bool // changes come by calls, not from the file
	nodes   int
	steps   []hadoop.Conf

	accepted, refused int
}

// has reports whether a line key=value of a configuration matches.
func (x *drawnRun) has(pattern string) bool {
	for _, conf := range x.steps {
		for key, value := range conf {
			if ok, err := regexp.MatchString(pattern, key+"="+value); ok || err != nil {
				return true
			}
		}
	}
	return pattern == ""
}

func (x *drawnRun) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes, calls %v\n", x.nodes, x.mutable)
	for i, conf := range x.steps {
		fmt.Fprintf(&b, "  step %d:\n", i)
		for _, key := range slices.Sorted(maps.Keys(conf)) {
			if i > 0 && x.steps[i-1][key] == conf[key] || conf[key] == "" {
				continue
			}
			fmt.Fprintf(&b, "    %s = %s\n", strings.TrimPrefix(key, prefix), conf[key])
		}
		for key := range x.steps[max(i-1, 0)] {
			if conf[key] == "" && x.steps[max(i-1, 0)][key] != "" {
				fmt.Fprintf(&b, "    without %s\n", strings.TrimPrefix(key, prefix))
			}
		}
	}
	return b.String()
}

// changes is the body of a call that makes one configuration of another.
func changes(from, to hadoop.Conf) string {
	type entry struct {
		Key   string `json:"key"`
		Value string `json:"value,omitempty"`
	}
	var list []entry
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if to[key] != from[key] {
			list = append(list, entry{key, to[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[key]; !stays && from[key] != "" {
			list = append(list, entry{key, ""})
		}
	}
	b, _ := json.Marshal(map[string]any{"global-updates": map[string]any{"entry": list}})
	return string(b)
}

// beside loads a case into both and returns the differences.
func (h *hadoopTrees) beside(t *testing.T, x *drawnRun) (out []difference) {
	t.Helper()
	x.accepted, x.refused = 0, 0
	h.write(t, x.steps[0])
	store := "file"
	if x.mutable {
		store = "memory"
	}
	theirs := h.do(t, "start", store)
	c, err := startOurs(t, h.conf, x.mutable)
	if err == nil {
		defer c.stop()
	}
	var after []laterDocument
	defer func() {
		if no := h.do(t, "end"); no != "" && theirs == "" {
			t.Fatal(no)
		}
		for _, l := range after {
			out = append(out, h.fresh(t, l, x.nodes)...)
		}
	}()
	refusal := func(where, theirs, ours string) {
		if (theirs == "") != (ours == "") {
			out = append(out, difference{kind: where + " " + refusalKind(theirs, ours), where: "", theirs: theirs, ours: ours})
		}
	}
	ours := ""
	if err != nil {
		ours = err.Error()
	}
	refusal("start", theirs, ours)
	if theirs != "" || ours != "" {
		x.refused++
		return out
	}
	x.accepted++
	out = append(out, compareDocuments("none", h.document(t), c.document(t))...)
	if no := h.do(t, "nodes", x.nodes); no != "" {
		t.Fatal(no)
	}
	c.addNodes(t, x.nodes)
	out = append(out, compareDocuments("nodes", h.document(t), c.document(t))...)
	last := x.steps[0]
	for _, next := range x.steps[1:] {
		if x.mutable {
			body := changes(last, next)
			theirs, ours = h.mutate(t, body), c.mutate(body)
		} else {
			h.write(t, next)
			theirs, ours = h.do(t, "refresh"), ""
			if err := c.s.RefreshQueues(t.Context()); err != nil {
				ours = err.Error()
			}
		}
		where := map[bool]string{true: "call", false: "refresh"}[x.mutable]
		refusal(where, theirs, ours)
		if (theirs == "") != (ours == "") {
			return out
		}
		if theirs == "" {
			last = next
			x.accepted++
		} else {
			x.refused++
		}
		found := compareDocuments(where, h.document(t), c.document(t))
		if len(found) > 0 {
			after = append(after, laterDocument{last, c.document(t), found})
			continue
		}
		out = append(out, found...)
	}
	return out
}

// A laterDocument is creel's document after a change, which differs from Hadoop's.
type laterDocument struct {
	conf  hadoop.Conf
	ours  map[string]string
	found []difference
}

// fresh names the cause of differences that a real ResourceManager does not have if it starts with the configuration.
func (h *hadoopTrees) fresh(t *testing.T, l laterDocument, nodes int) []difference {
	t.Helper()
	h.write(t, l.conf)
	if no := h.do(t, "start", "file"); no == "" {
		if no := h.do(t, "nodes", nodes); no != "" {
			t.Fatal(no)
		}
		theirs := h.document(t)
		for i := range l.found {
			d := &l.found[i]
			if a, b := theirs[d.where], l.ours[d.where]; a == b || alike(a, b) {
				d.kind = leftOver + ": " + d.kind
			}
		}
	}
	if no := h.do(t, "end"); no != "" {
		t.Log(no)
	}
	return l.found
}

// refusalKind is a refusal without names and numbers.
func refusalKind(theirs, ours string) string {
	text, who := theirs, "refused by Hadoop: "
	if ours != "" {
		text, who = ours, "refused by creel: "
	}
	words := strings.Fields(text)
	for i, w := range words {
		if strings.HasPrefix(w, "/") || strings.ContainsAny(w, "0123456789=") || strings.Contains(w, "root") {
			words[i] = "*"
		}
	}
	return who + strings.Join(words, " ")
}

// drawn is the number of trees of one scheduler.
func drawn() int {
	if n, err := strconv.Atoi(os.Getenv("CREEL_SEARCH_CHECKS")); err == nil {
		return n
	}
	return 300
}

// shrink returns a smaller case with a difference of the same kind, and the difference.
func (h *hadoopTrees) shrink(t *testing.T, x *drawnRun, kind string) (*drawnRun, difference) {
	t.Helper()
	has := func(x *drawnRun) (difference, bool) {
		all := h.beside(t, x)
		i := slices.IndexFunc(all, func(d difference) bool { return d.kind == kind })
		if i < 0 {
			return difference{}, false
		}
		return all[i], true
	}
	found, ok := has(x)
	if !ok {
		return x, difference{kind: kind, where: "not repeatable"}
	}
	try := func(y *drawnRun) bool {
		if d, ok := has(y); ok {
			x, found = y, d
			return true
		}
		return false
	}
	for i := len(x.steps) - 1; i >= 0; i-- {
		if len(x.steps) > 1 {
			y := *x
			y.steps = slices.Delete(slices.Clone(x.steps), i, i+1)
			try(&y)
		}
	}
	keys := map[string]bool{}
	for _, conf := range x.steps {
		for key, value := range conf {
			keys[key] = value != "" || keys[key]
		}
	}
	without := func(keys ...string) *drawnRun {
		y := *x
		y.steps = nil
		for _, conf := range x.steps {
			conf = maps.Clone(conf)
			for _, key := range keys {
				delete(conf, key)
			}
			y.steps = append(y.steps, conf)
		}
		return &y
	}
	all := slices.Sorted(maps.Keys(keys))
	for n := len(all) / 2; n >= 1; n /= 2 {
		for i := 0; i < len(all); i += n {
			var some []string
			for _, key := range all[i:min(i+n, len(all))] {
				if keys[key] && !strings.HasSuffix(key, ".queues") {
					some = append(some, key)
				}
			}
			if len(some) > 0 && try(without(some...)) {
				for _, key := range some {
					keys[key] = false
				}
			}
		}
	}
	return x, found
}

// A drawer draws a configuration and changes of it.
type drawer interface {
	change()
	conf() hadoop.Conf
}

// TestDrawnCapacityTrees loads drawn configurations, and changes of them, into creel and into a real ResourceManager.
// Both must accept the same ones and show the same documents. In a search the trees are others.
func TestDrawnCapacityTrees(t *testing.T) {
	h := startTrees(t, hadoop.Conf{"yarn.resourcemanager.scheduler.monitor.enable": "true",
		monitorPrefix + "monitoring_interval": "1000000000"})
	h.compareDrawn(t, known, 40, func(r *rand.Rand) drawer { return drawTree(r, false) })
}

// TestDrawnAbsoluteTrees does the same with capacities that are amounts.
func TestDrawnAbsoluteTrees(t *testing.T) {
	h := startTrees(t, hadoop.Conf{"yarn.resourcemanager.scheduler.monitor.enable": "true",
		monitorPrefix + "monitoring_interval": "1000000000"})
	h.compareDrawn(t, absoluteKnown, 40, func(r *rand.Rand) drawer { return drawTree(r, true) })
}

// compareDrawn compares drawn trees. Calls change so many percent of them, files the others.
func (h *hadoopTrees) compareDrawn(t *testing.T, known []knownKind, calls int, draw func(*rand.Rand) drawer) {
	t.Helper()
	r := propertytest.Rand(t)
	kinds, used := map[string]int{}, map[string]bool{}
	type example struct {
		run *drawnRun
		difference
	}
	first := map[string]example{}
	refused, changed := 0, 0
	for range drawn() {
		d := draw(r)
		x := &drawnRun{mutable: r.IntN(100) < calls, nodes: 1 + r.IntN(len(drawnNodes))}
		x.steps = append(x.steps, d.conf())
		for range r.IntN(4) {
			d.change()
			x.steps = append(x.steps, d.conf())
		}
		for _, d := range h.beside(t, x) {
			i := slices.IndexFunc(known, func(k knownKind) bool { return k.match(d.kind) && x.has(k.with) })
			if i >= 0 {
				used[known[i].kind] = true
				continue
			}
			if kinds[d.kind]++; kinds[d.kind] == 1 {
				first[d.kind] = example{x, d}
			}
		}
		refused, changed = refused+x.refused, changed+x.accepted
	}
	t.Logf("%d configurations accepted by both, %d rejected by both", changed, refused)
	if changed < drawn()/2 || refused == 0 {
		t.Error("too few trees are accepted, or none rejected: the draws have changed")
	}
	for _, k := range known {
		if !used[k.kind] && !k.rare && !propertytest.Searching() {
			t.Errorf("no tree has the difference %q: remove it from the list", k.kind)
		}
	}
	shrunk := 0
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		x, d := first[kind].run, first[kind].difference
		if shrunk++; shrunk <= 3 { // each takes a run for each key
			x, d = h.shrink(t, x, kind)
		}
		t.Errorf("%s: %d times: %s: Hadoop %s, creel %s\n%s", kind, kinds[kind], d.where, d.theirs, d.ours, x)
	}
}
