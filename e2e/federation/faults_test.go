// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// Each part of a federation is killed (SIGKILL) while Hadoop's work is under way.
func TestFaults(t *testing.T) {
	// Half of the asks go to each, whatever the free capacity.
	f := Start(t, Options{Policy: `{"split":{"policy":"locality","weights":{"sc-1":1,"sc-2":1},"headroomAlpha":0}}`})
	for _, story := range []struct {
		name string
		tell func(*testing.T, *Federation)
	}{
		{"router_killed_under_a_hadoop_client", routerKilledUnderHadoop},
		{"proxies_killed", proxiesKilled},
		{"home_restarted", homeRestarted},
		{"second_killed", secondKilled},
	} {
		if !t.Run(story.name, func(t *testing.T) { story.tell(t, f) }) {
			return
		}
	}
}

// A client submits while the router is killed. The moments are spread over the submission, from before the router reads
// the request to after its response. The client, like Hadoop's, repeats the submission with the other router. In every
// case there is one application with one home.
func TestRouterKilledBetweenAnyTwoSteps(t *testing.T) {
	f := Start(t, Options{NoNodes: true})
	const rounds = 16
	first, second := f.RouterAddresses[0].Web, f.RouterAddresses[1].Web
	// How long a submission takes here, so that the moments cover it.
	var whole time.Duration
	for range 3 {
		id, err := NewApplication(t, first)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := Submit(t, first, id, "default"); err != nil {
			t.Fatal(err)
		}
		whole = max(whole, time.Since(began))
		KillApp(t, first, id)
	}
	lost, repeated := 0, 0
	for round := range rounds {
		id, err := NewApplication(t, first)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan error, 1)
		go func() { answered <- Submit(t, first, id, "default") }()
		time.Sleep(whole * time.Duration(round) / (rounds * 3 / 4)) // not waited for: this is the moment of the fault
		f.Routers[0].Kill()
		if err := <-answered; err != nil {
			lost++
		}
		if process.Poll(nil, func() bool { // the client submits again after any answer
			code, err := f.submitCode(t, second, id)
			if err != nil && code != 0 && code != http.StatusServiceUnavailable {
				t.Fatalf("round %d: the second router says %v", round, err)
			}
			return err == nil
		}) != nil {
			t.Fatalf("round %d: the second router did not take %s", round, id)
		}
		repeated++
		homes := 0
		for _, s := range f.Subclusters {
			app, code, err := Report(t, s.Addresses.Web, id)
			switch {
			case code == http.StatusNotFound:
			case err != nil:
				t.Fatal(err)
			case !app.Unmanaged:
				homes++
			}
		}
		if homes != 1 {
			t.Errorf("round %d: %s has %d homes", round, id, homes)
		}
		f.Routers[0].Restart(t)
		AwaitActive(t, first, len(f.Subclusters))
		if a, b := f.homeAt(t, first, id), f.homeAt(t, second, id); a != b {
			t.Errorf("round %d: one router says %s lives at %s, the other at %s", round, id, a, b)
		}
		KillApp(t, second, id)
	}
	t.Logf("a submission takes %v; of %d, %d lost their answer, all %d were repeated", whole, rounds, lost, repeated)
	if lost == 0 || lost == rounds {
		t.Logf("no moment fell on the other side of the answer: the machine's pace changed on the way")
	}
}

func (f *Federation) submitCode(t testing.TB, web, id string) (int, error) {
	code, err := 0, Submit(t, web, id, "default")
	if err != nil {
		if m := regexp.MustCompile(`: (\d{3}) `).FindStringSubmatch(err.Error()); m != nil {
			code, _ = strconv.Atoi(m[1])
		}
	}
	return code, err
}

// homeAt returns the home as one router reports it.
func (f *Federation) homeAt(t testing.TB, web, id string) (home string) {
	t.Helper()
	var why struct{ Home string }
	if _, err := Call(t, http.MethodGet, web, "/api/v1/apps/"+id+"/why", nil, &why); err != nil {
		t.Fatal(err)
	}
	return why.Home
}

// routers returns a configuration that names both routers as a pair. With it Hadoop's own clients fail over.
func (f *Federation) routers() hadoop.Conf {
	conf := f.ClientConf(0).With(hadoop.Conf{
		"yarn.resourcemanager.ha.enabled":   "true",
		"yarn.resourcemanager.ha.rm-ids":    "r1,r2",
		"yarn.resourcemanager.cluster-id":   "federation",
		"yarn.client.failover-max-attempts": "20",
	})
	for i, addresses := range f.RouterAddresses {
		id := fmt.Sprintf(".r%d", i+1)
		_, web, _ := net.SplitHostPort(addresses.Web)
		conf = conf.With(hadoop.Conf{
			"yarn.resourcemanager.address" + id:           addresses.Client,
			"yarn.resourcemanager.admin.address" + id:     addresses.Admin,
			"yarn.resourcemanager.webapp.address" + id:    "127.0.0.1:" + web,
			"yarn.resourcemanager.scheduler.address" + id: conf["yarn.resourcemanager.scheduler.address"],
		})
	}
	return conf
}

// routerKilledUnderHadoop kills the router under Hadoop's MapReduce client. The client fails over by itself between its
// new application id, its submission and its reports.
func routerKilledUnderHadoop(t *testing.T, f *Federation) {
	client := hadoop.Client{Conf: f.routers()}.Setup(t)
	job := client.Start(t, hadoop.SleepJob, "-m", "2", "-r", "0", "-mt", "2000")
	job.WaitLine(t, "Submitting tokens for job") // it has an id from the first router; the submission follows
	f.Routers[0].Kill()
	f.finished(t, client, job)
	f.Routers[0].Restart(t)
	AwaitActive(t, f.RouterAddresses[0].Web, len(f.Subclusters))
}

var someMaps = regexp.MustCompile(`map [1-9]\d?% reduce 0%`)

// inTheMiddle starts a MapReduce job with shuffle and waits for the end of its first maps. It returns the job with its
// home.
func inTheMiddle(t *testing.T, f *Federation) (hadoop.Client, *process.Process, *Subcluster) {
	t.Helper()
	// Six maps of two seconds, two at a time: a middle that cannot be missed.
	client := hadoop.Client{
		Conf: f.ClientConf(0).
			With(hadoop.Conf{"mapreduce.job.running.map.limit": "2", "mapreduce.job.reduce.slowstart.completedmaps": "1.0"}),
	}.Setup(
		t,
	)
	job := client.Start(t, hadoop.SleepJob, "-m", "6", "-r", "1", "-mt", "2000", "-rt", "500")
	job.Await(t, "the first maps", func() bool { return someMaps.MatchString(job.Output()) })
	id := application(t, job)
	home := f.Home(t, id)
	AwaitState(t, f.Other(home).Addresses.Web, id, "RUNNING") // it works in both
	return client, job, home
}

func application(t *testing.T, job *process.Process) string {
	t.Helper()
	m := regexp.MustCompile(`job_(\d+_\d+)`).FindStringSubmatch(job.Output())
	if m == nil {
		t.Fatalf("no job in\n%s", job.Output())
	}
	return "application_" + m[1]
}

// finished waits for the job's end. The job must succeed in its first attempt.
func (f *Federation) finished(t *testing.T, client hadoop.Client, job *process.Process) {
	t.Helper()
	job.Await(t, "the job's end", func() bool {
		return strings.Contains(job.Output(), "completed successfully") ||
			strings.Contains(job.Output(), "failed with state")
	})
	err := job.Exit()
	if err != nil && strings.Contains(job.Output(), "Redirecting to job history server") {
		// The client asked once more when the AM had gone, as on a slow machine
		// it may. There is no history server here; the home knows how it ended.
		id := application(t, job)
		app, _, reported := Report(t, f.Home(t, id).Addresses.Web, id)
		if reported == nil && app.FinalStatus == "SUCCEEDED" {
			err = nil
		}
	}
	if err != nil || !strings.Contains(job.Output(), "completed successfully") {
		logs := client.Run(t, hadoop.LogsCLI, "-applicationId", application(t, job), "-size", "-4000").Stdout
		t.Fatalf("the job: %v\n%s\n%s", err, job.Tail(60), logs[max(0, len(logs)-30000):])
	}
}

// firstAttempt fails unless the application succeeded in its first attempt.
func firstAttempt(t *testing.T, f *Federation, id string) {
	t.Helper()
	var doc struct{ AppAttempts struct{ AppAttempt []any } }
	if _, err := Call(
		t,
		http.MethodGet,
		f.RouterAddresses[0].Web,
		"/ws/v1/cluster/apps/"+id+"/appattempts",
		nil,
		&doc,
	); err != nil ||
		len(doc.AppAttempts.AppAttempt) != 1 {
		t.Errorf("%s had %d attempts, %v", id, len(doc.AppAttempts.AppAttempt), err)
	}
	AwaitState(t, f.RouterAddresses[0].Web, id, "FINISHED")
}

// noUAM waits until no member runs anything for the application.
func noUAM(t *testing.T, f *Federation, id string) {
	t.Helper()
	for _, s := range f.Subclusters {
		var app App
		if process.Poll(nil, func() bool {
			var code int
			app, code, _ = Report(t, s.Addresses.Web, id)
			return code == http.StatusNotFound ||
				code == http.StatusOK && (app.State == "FINISHED" || app.State == "KILLED" || app.State == "FAILED")
		}) != nil {
			t.Errorf("%s still has %+v", s.ID, app)
		}
	}
}

// proxiesKilled kills the proxies with their state. The next ones continue from the store.
func proxiesKilled(t *testing.T, f *Federation) {
	client, job, _ := inTheMiddle(t, f)
	for _, s := range f.Subclusters {
		s.Proxy.Kill()
	}
	for _, s := range f.Subclusters {
		s.Proxy.Restart(t)
	}
	f.finished(t, client, job)
	id := application(t, job)
	firstAttempt(t, f, id)
	noUAM(t, f, id)
}

// The home dies in the middle and comes back with its journal.
func homeRestarted(t *testing.T, f *Federation) {
	client, job, home := inTheMiddle(t, f)
	home.RM.Kill()
	home.RM.Restart(t)
	f.finished(t, client, job)
	id := application(t, job)
	firstAttempt(t, f, id)
	noUAM(t, f, id)
	f.Await(t, len(f.Nodes()))
}

// secondKilled kills the other ResourceManager until the job has ended. Its pending asks move elsewhere. When it comes
// back with its journal, the application's UAM in it is ended.
func secondKilled(t *testing.T, f *Federation) {
	client, job, home := inTheMiddle(t, f)
	f.Other(home).RM.Kill()
	f.finished(t, client, job)
	id := application(t, job)
	firstAttempt(t, f, id)
	f.Other(home).RM.Restart(t)
	noUAM(t, f, id)
}
