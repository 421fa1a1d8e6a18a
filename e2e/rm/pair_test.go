// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// creelPair are two processes of creel's ResourceManager over one shared state.
type creelPair struct {
	rms  [2]*Creel
	conf hadoop.Conf // for clients and nodes
}

func startPair(t *testing.T, automatic bool) *creelPair {
	t.Helper()
	redis := redistest.Start(t, "--appendonly", "yes")
	return startPairOver(t, automatic, hadoop.Conf{"creel.rm.state.url": redis.URL(), "creel.rm.ha.lease": "3s"})
}

// pairConf returns the settings of a pair for clients and nodes, and the addresses of both.
func pairConf(t *testing.T, automatic bool) (conf hadoop.Conf, at [2]hadoop.Addresses) {
	t.Helper()
	conf = hadoop.Conf{
		"yarn.resourcemanager.ha.enabled":                    "true",
		"yarn.resourcemanager.ha.rm-ids":                     "rm1,rm2",
		"yarn.resourcemanager.ha.automatic-failover.enabled": strconv.FormatBool(automatic),
		"yarn.resourcemanager.cluster-id":                    "pair",
	}
	for i := range at {
		for _, a := range []*string{&at[i].Client, &at[i].Scheduler, &at[i].Tracker, &at[i].Admin, &at[i].Web} {
			*a = process.FreeAddress(t, "127.0.0.1")
		}
		for key, address := range at[i].Conf() {
			conf[key+".rm"+strconv.Itoa(i+1)] = address
		}
	}
	return conf, at
}

// startPairOver starts a pair with the settings of its state, which both share or each has of its own.
func startPairOver(t *testing.T, automatic bool, shared hadoop.Conf, own ...hadoop.Conf) *creelPair {
	t.Helper()
	conf, at := pairConf(t, automatic)
	p := &creelPair{conf: conf}
	for i := range p.rms {
		id := "rm" + strconv.Itoa(i+1)
		all := p.conf.With(shared, hadoop.Conf{
			"yarn.resourcemanager.ha.id":            id,
			"yarn.resourcemanager.recovery.enabled": "true",
		})
		if len(own) > 0 {
			all = all.With(own[i])
		}
		p.rms[i] = Start(t, Options{Name: id, Volatile: true, Addresses: at[i], Conf: all})
		if i == 0 && automatic {
			p.await(t, 0)
		}
	}
	return p
}

// noRedirects is a web client that sees a standby's own answers.
var noRedirects = &http.Client{
	Timeout:       5 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// get returns the answer of one of the pair.
func (p *creelPair) get(t *testing.T, i int, path string) (status int, header http.Header, body string) {
	t.Helper()
	return getFrom(p.rms[i].Web, path)
}

func getFrom(web, path string) (status int, header http.Header, body string) {
	r, err := noRedirects.Get("http://" + web + path)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return r.StatusCode, r.Header, string(b)
}

// state returns the haState that one of the pair reports about itself.
func (p *creelPair) state(t *testing.T, i int) string {
	t.Helper()
	return haState(p.rms[i].Web)
}

func haState(web string) string {
	_, _, body := getFrom(web, "/ws/v1/cluster/info")
	var doc struct{ ClusterInfo struct{ HaState string } }
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		return body
	}
	return doc.ClusterInfo.HaState
}

// await waits until one of the pair is active.
func (p *creelPair) await(t *testing.T, i int) {
	t.Helper()
	p.rms[i].Await(t, "the active state", func() bool { return p.state(t, i) == "ACTIVE" })
}

// stage plays nodes and clients of one of the pair.
func (p *creelPair) stage(t *testing.T, i int) *stage {
	return newStage(t, p.rms[i].Process, p.rms[i].Addresses)
}

// lines counts the lines of a file that containers append to.
func lines(file string) int {
	b, _ := os.ReadFile(file) // it is absent at first
	return strings.Count(string(b), "\n")
}

// Hadoop's distributed shell runs on Hadoop's NodeManager while the active ResourceManager is killed. Client, AM and
// node find the other one, and no container ends before its time.
func TestShellOutlivesTheActiveResourceManager(t *testing.T) {
	shellOutlives(t, startPair(t, true))
}

// shellOutlives kills the active one of a pair under Hadoop's distributed shell.
func shellOutlives(t *testing.T, p *creelPair) {
	t.Helper()
	hadoop.StartNM(t, hadoop.NM{RM: p.rms[0].Addresses, Conf: p.conf})
	shell := hadoop.Client{Conf: p.conf}.Setup(t)
	if out := shell.Run(t, hadoop.RMAdminCLI, "-getAllServiceState").OK(t).Stdout; !strings.Contains(out, "active") ||
		!strings.Contains(out, "standby") {
		t.Errorf("the states are %q", out)
	}

	dir := t.TempDir()
	began, end := filepath.Join(dir, "began"), filepath.Join(dir, "go")
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	job := shell.Start(t, hadoop.DistributedShell, "-jar", jar, "-num_containers", "2", "-master_memory", "512",
		"-container_memory", "256", "-timeout", "170000", "-shell_command",
		"echo x >> "+began+"; while [ ! -e "+end+" ]; do sleep 0.2; done")
	job.Await(t, "two containers", func() bool { return lines(began) == 2 })

	p.rms[0].Kill9()
	killed := time.Now()
	p.await(t, 1)
	t.Logf("the standby is active %v after the kill", time.Since(killed).Round(time.Millisecond))
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := job.Exit(); err != nil {
		t.Fatalf("the shell: %v\n%s", err, job.Tail(60))
	}
	says(t, job.Output(), "Application completed successfully")
	if n := lines(began); n != 2 {
		t.Errorf("%d containers began, not 2", n)
	}
	id := application.FindString(job.Output())
	says(t, shell.Run(t, hadoop.ApplicationCLI, "application", "-status", id).OK(t).Stdout, "Final-State : SUCCEEDED")
	says(t, shell.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-list", id).OK(t).Stdout, "Total number of application attempts :1")
	says(t, shell.Run(t, hadoop.RMAdminCLI, "-getServiceState", "rm2").OK(t).Stdout, "active")
	shell.Run(t, hadoop.RMAdminCLI, "-checkHealth", "rm2").OK(t)
	if r := shell.Run(t, hadoop.RMAdminCLI, "-transitionToStandby", "rm2"); r.Code == 0 || p.state(t, 1) != "ACTIVE" {
		t.Errorf("a manual failover was accepted although failover is automatic: %s", r.All)
	}
}

// The active one is stopped, as on a host that hangs. The other takes over with all applications. The first resumes, and
// answers nothing: it is a standby that sends clients to the other.
func TestPausedActiveResumesAsStandby(t *testing.T) {
	pausedActiveResumes(t, startPair(t, true), 0)
}

// pausedActiveResumes stops the active one for at least some time, and then kills its successor.
func pausedActiveResumes(t *testing.T, p *creelPair, pause time.Duration) {
	t.Helper()
	at1, at2 := p.stage(t, 0), p.stage(t, 1)
	known := []*pb.ApplicationIdProto{at1.submit("one", nil), at1.submit("two", nil)}
	p.rms[1].Await(t, "a redirect to the active one", func() bool { // a standby that has just started knows none
		status, header, _ := p.get(t, 1, "/ws/v1/cluster/apps?states=ACCEPTED")
		return status == http.StatusTemporaryRedirect &&
			header.Get("Location") == "http://"+p.rms[0].Web+"/ws/v1/cluster/apps?states=ACCEPTED"
	})
	login := hrpc.Login{User: hadoop.OSUser(t)}
	admin := yarnrpc.NewResourceManagerAdministrationProtocolClient(at2.client, p.rms[1].Admin, login)
	_, err := admin.RefreshQueues(t.Context(), &pb.RefreshQueuesRequestProto{})
	if e := (*hrpc.RemoteError)(nil); !errors.As(err, &e) || e.Class != hrpc.ClassStandby {
		t.Errorf("the standby answers an administrator with %v", err)
	}

	p.rms[0].Signal(syscall.SIGSTOP)
	resume := time.After(pause)
	p.await(t, 1)
	known = append(known, at2.submit("three", nil))
	for i, name := range []string{"one", "two", "three"} {
		if got := at2.report(known[i]).GetName(); got != name {
			t.Errorf("%v is %q, want %q", known[i], got, name)
		}
	}
	<-resume
	p.rms[0].Signal(syscall.SIGCONT)
	_, err = at1.user().GetApplicationReport(t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: known[0]})
	if err == nil {
		t.Error("the former active one answers a client")
	}
	if status, _, body := p.get(t, 0, "/ws/v1/cluster/metrics"); status == http.StatusOK {
		t.Errorf("the former active one answers %s", body)
	}
	p.rms[0].Await(t, "a redirect to the other", func() bool {
		_, header, _ := p.get(t, 0, "/ws/v1/cluster/metrics")
		return header.Get("Location") == "http://"+p.rms[1].Web+"/ws/v1/cluster/metrics"
	})

	p.rms[1].Kill9()
	p.await(t, 0)
	for i, name := range []string{"one", "two", "three"} {
		if got := at1.report(known[i]).GetName(); got != name {
			t.Errorf("%v is %q, want %q", known[i], got, name)
		}
	}
}

// Without automatic failover Hadoop's rmadmin alone makes one of the pair active, and not two of them.
func TestAdministratorSwitchesThePair(t *testing.T) {
	p := startPair(t, false)
	client := hadoop.Client{Conf: p.conf}.Setup(t)
	admin := func(args ...string) hadoop.Result { return client.Run(t, hadoop.RMAdminCLI, args...) }
	if status, header, body := p.get(t, 0, "/cluster"); status != http.StatusTemporaryRedirect ||
		header.Get("Refresh") == "" || !strings.Contains(body, "Can not find any active RM") {
		t.Errorf("with no active one: %d %q %s", status, header.Get("Refresh"), body)
	}
	admin("-transitionToActive", "rm1").OK(t)
	one := p.stage(t, 0).submit("one", nil)
	if r := admin("-transitionToActive", "rm2"); r.Code == 0 || p.state(t, 1) != "STANDBY" {
		t.Errorf("a second one became active: %s", r.All)
	}
	if r := admin("-transitionToActive", "--forceactive", "rm2"); r.Code == 0 || p.state(t, 1) != "STANDBY" {
		t.Errorf("a second one became active by force: %s", r.All)
	}
	switched := time.Now()
	admin("-transitionToStandby", "rm1").OK(t)
	admin("-transitionToActive", "rm2").OK(t)
	t.Logf("two commands switched the pair in %v", time.Since(switched).Round(time.Millisecond))
	if p.state(t, 0) != "STANDBY" || p.state(t, 1) != "ACTIVE" {
		t.Errorf("the states are %s and %s", p.state(t, 0), p.state(t, 1))
	}
	if got := p.stage(t, 1).report(one).GetName(); got != "one" {
		t.Errorf("the application is %q", got)
	}
	admin("-transitionToStandby", "rm2").OK(t)
	admin("-transitionToActive", "rm1").OK(t)
	if got := p.stage(t, 0).report(one).GetName(); got != "one" {
		t.Errorf("after the way back the application is %q", got)
	}
}
