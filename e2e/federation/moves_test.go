// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"net/http"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// waits reports whether a ResourceManager has an application that waits for its AM.
func waits(t testing.TB, web string) bool {
	var m struct {
		ClusterMetrics struct{ AppsPending, ContainersPending int }
	}
	_, err := Call(t, http.MethodGet, web, "/ws/v1/cluster/metrics", nil, &m)
	return err == nil && m.ClusterMetrics.AppsPending+m.ClusterMetrics.ContainersPending > 0
}

// stays reports whether an application still waits after its node has sent two heartbeats.
func stays(t testing.TB, web string) bool {
	time.Sleep(3 * time.Second) // no event reports that nothing will happen
	return waits(t, web)
}

// A MapReduce job waits in a full member. An administrator drains that member by moving. The job moves to the other
// member, starts there, and succeeds. Meanwhile its client, Hadoop's own, polls the router.
func TestWaitingMapReduceLeavesDrainedMember(t *testing.T) {
	f := Start(t, Options{})
	full, free, router := f.Subclusters[0], f.Subclusters[1], f.RouterAddresses[0].Web
	creel := func(args ...string) string { return f.Creel(t, append(args, "--server", "http://"+router)...) }

	blockers := 0
	for !waits(t, full.Addresses.Web) || !stays(t, full.Addresses.Web) {
		if blockers++; blockers > 60 {
			t.Fatal("sixty applications do not fill a member")
		}
		id, err := NewApplication(t, full.Addresses.Web)
		if err != nil {
			t.Fatal(err)
		}
		body := map[string]any{
			"application-id": id, "application-name": "blocker", "queue": "default", "application-type": "TEST",
			"resource":          map[string]any{"memory": 512, "vCores": 1},
			"am-container-spec": map[string]any{"commands": map[string]any{"command": "sleep 1000"}},
		}
		if code, err := Call(t, http.MethodPost, full.Addresses.Web, "/ws/v1/cluster/apps", body, nil); err != nil {
			t.Fatal(code, err)
		}
		_ = process.Poll(nil, func() bool { // granted, or in line: within two heartbeats of its node
			app, _, err := Report(t, full.Addresses.Web, id)
			return err == nil && app.State != "NEW" && app.State != "NEW_SAVING" && app.State != "SUBMITTED"
		})
	}
	creel("subcluster", "drain", free.ID)
	AwaitActive(t, router, 1)
	client := hadoop.Client{Conf: f.ClientConf(0).With(hadoop.Conf{
		"yarn.app.mapreduce.am.resource.mb": "1024",
	})}.Setup(t)
	job := client.Start(t, hadoop.SleepJob, "-m", "2", "-r", "1", "-mt", "500", "-rt", "200")
	job.WaitLine(t, "Submitted application")
	id := application(t, job)
	if home := f.Home(t, id); home != full {
		t.Fatalf("%s lives at %s, want %s", id, home.ID, full.ID)
	}
	before, _, err := Report(t, full.Addresses.Web, id)
	if err != nil || before.State != "ACCEPTED" {
		t.Fatalf("the job is %s, %v", before.State, err)
	}
	creel("subcluster", "undrain", free.ID)
	AwaitActive(t, router, 2)
	creel("policy", "list") // the router answers
	t.Log(creel("subcluster", "drain", full.ID, "--mode", "move", "--dry-run"))
	if code, err := Call(t, http.MethodPut, router, "/api/v1/subclusters/"+full.ID+"/drain",
		map[string]any{"mode": "move", "reason": "new disks"}, nil); err != nil {
		t.Fatal(code, err)
	}
	f.finished(t, client, job)
	if home := f.Home(t, id); home != free {
		t.Errorf("%s ended at %s, want %s", id, home.ID, free.ID)
	}
	if where := f.ran()[id]; where[full.ID] > 0 || where[free.ID] == 0 {
		t.Errorf("its containers ran in %v", where)
	}
	if _, code, _ := Report(t, full.Addresses.Web, id); code != http.StatusNotFound {
		t.Errorf("the drained member answers %d for it", code)
	}
	t.Log(creel("rebalancer", "moves"))
}
