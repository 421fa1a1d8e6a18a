// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
)

// Submissions by REST to a Hadoop ResourceManager get no response. Some lose the response, others the submission
// itself, and then that port becomes unreachable. Hadoop has no fence, so the router can only query it by Hadoop RPC,
// and wait. Submissions that arrived stay. The others move to another member. Before that, their member has responded
// for creel.router.unclear-wait that it does not have them. Meanwhile `why` names the reason of the wait. Each
// application runs in one subcluster.
func TestLostSubmissionLeavesHadoopHomeAfterWait(t *testing.T) {
	operatorsSee(t)
	const wait, patience = 6 * time.Second, 2 * time.Second
	away := &farMember{name: "hadoop", start: hadoopRM}
	members := []*farMember{away, {name: "well", start: creelRM}}
	s := story{behindPaths: foundBehindPaths(t, redistest.Start(t).URL(), members,
		"creel.router.unclear-wait="+wait.String(),
		"creel.router.forward-timeout="+patience.String(),
		"creel.router.breaker.failures=1000", // no home is left for that
	)}
	var wg sync.WaitGroup
	webPath := away.paths[1]

	arrived, lost := s.newIDs(24), s.newIDs(36)
	webPath.lose(hither)
	s.send(&wg, arrived, nil)
	wg.Wait()
	webPath.heal()
	stayed := 0
	for i, id := range arrived {
		if manners[i%len(manners)].name == "REST" && slices.Contains(s.homes(id), away.name) {
			stayed++
		}
	}

	s.await("both are active again", func() bool { return len(s.active()) == 2 })
	s.submitSoon(s.newID()) // its agent has registered
	var mu sync.Mutex
	taken := map[string]time.Time{}
	webPath.lose(thither)
	began := time.Now()
	s.send(&wg, lost, func(id string) {
		mu.Lock()
		taken[id] = time.Now()
		mu.Unlock()
	})
	time.Sleep(patience + time.Second) // their router has given them up
	webPath.refuse()
	waited := map[string]string{} // time until which, by `why`
	for len(waited) == 0 && time.Since(began) < wait+patience {
		time.Sleep(200 * time.Millisecond)
		for _, id := range lost {
			var why struct {
				Tries []struct {
					Member, Verdict string
					Until           string `json:"waits_until"`
				}
			}
			call(t, s.router, "GET", "/api/v1/apps/"+id+"/why", nil, &why)
			for _, try := range why.Tries {
				if try.Member == away.name && try.Verdict == "unclear" && try.Until != "" {
					waited[id] = try.Until
				}
			}
		}
	}
	wg.Wait()
	moved := 0
	for i, id := range lost {
		homes := s.homes(id)
		if len(homes) != 1 {
			t.Errorf("%s has the homes %v", id, homes)
			continue
		}
		home := homes[0]
		switch {
		case manners[i%len(manners)].name != "REST":
		case home == away.name:
			t.Errorf("%s is at %s, which nothing reached", id, home)
		case taken[id].Sub(began) >= wait+patience:
			moved++
		case taken[id].Sub(began) > patience:
			t.Errorf("%s left its home after %v, the wait is %v", id, taken[id].Sub(began)-patience, wait)
		}
	}
	t.Logf("%d submissions without an answer were at home and stayed, %d moved after the wait; %v", stayed, moved, waited)
	if stayed == 0 || moved == 0 || len(waited) == 0 {
		t.Error("some were to stay, some to move, and why was to say for what they wait")
	}
}
