// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
)

// soakUsers live one application after the other, each.
const soakUsers = 12

// Faults drawn from a seed affect every part of a federation of processes, two at once, while users submit and AMs
// work. Processes die and pause; the store is slow, pauses and fails over. Afterwards every started application has
// finished, once, at its one home, in its first attempt. No AM got a container twice or was expired. No ResourceManager
// has an application left.
//
// CREEL_SOAK is the duration (150s). The order of the faults is the same in each run. CREEL_SEED sets another order,
// and CREEL_SEARCH=fresh draws one.
func TestRandomFaultsLoseAndDoubleNothing(t *testing.T) {
	operatorsSee(t)
	d := 150 * time.Second
	if text := os.Getenv("CREEL_SOAK"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatalf("CREEL_SOAK=%s: %v", text, err)
		}
	}
	seed := propertytest.Seed(t)
	if text := os.Getenv("CREEL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("CREEL_SEED=%s: %v", text, err)
		}
	}
	t.Logf("to repeat: CREEL_SOAK=%v CREEL_SEED=%d go test -count=1 -run RandomFaults ./e2e/faults", d, seed)
	s := newSoak(t)
	s.submitSoon(s.newID()) // a new store provides no home at first

	var users sync.WaitGroup
	draws := make([]*rand.Rand, soakUsers)
	for user := range draws {
		draws[user] = rand.New(rand.NewPCG(seed, 2+uint64(user)))
		users.Go(func() {
			if id, err := s.live(draws[user]); err != nil {
				s.failed(id, "before any fault: %v", err)
			}
		})
	}
	began := time.Now()
	users.Wait()
	calm := max(time.Since(began), 10*time.Second) // time that an application of each user takes on this machine
	before := len(s.done)
	for _, rnd := range draws {
		users.Go(func() {
			for {
				if id, err := s.live(rnd); err != nil {
					s.failed(id, "%v", err)
				}
				select {
				case <-s.healed:
					return
				default:
				}
			}
		})
	}
	s.rage(seed, d)
	users.Wait()
	s.audit()
	t.Logf("%d applications finished; calls were made again %d times", len(s.done), s.repeated.Load())
	if n := len(s.done) - before; n < int(d/calm)*soakUsers/4 {
		t.Errorf("%d applications finished in %v, and without faults %d in %v: the federation stood still", n, d, before, calm)
	}
}

// failed reports an error of an application with all log lines about it.
func (s *soak) failed(id, format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("%s: %s\n%s", id, fmt.Sprintf(format, args...), about(id))
}

// audit checks the applications at the ResourceManagers themselves.
func (s *soak) audit() {
	s.t.Helper()
	for _, id := range s.done {
		homes := s.homes(id)
		if len(homes) != 1 {
			s.failed(id, "it is at home in %v", homes)
			continue
		}
		var doc struct {
			App struct{ State, FinalStatus string }
		}
		call(s.t, s.member(homes[0]).rm, http.MethodGet, "/ws/v1/cluster/apps/"+id, nil, &doc)
		if doc.App.State != "FINISHED" || doc.App.FinalStatus != "SUCCEEDED" {
			s.failed(id, "at %s it is %s, %s", homes[0], doc.App.State, doc.App.FinalStatus)
		}
		if n := s.attempts(homes[0], id); n != 1 {
			s.failed(id, "it is in attempt %d", n)
		}
	}
	for _, m := range s.members {
		var left int
		s.await("the UAMs at "+m.id+" have ended", func() bool {
			var doc struct {
				ClusterMetrics struct{ AppsRunning, AppsPending int }
			}
			a := call(s.t, m.rm, http.MethodGet, "/ws/v1/cluster/metrics", nil, &doc)
			left = doc.ClusterMetrics.AppsRunning + doc.ClusterMetrics.AppsPending
			return a.code == http.StatusOK && left <= 1 // the first submission of all has no AM
		})
	}
	for _, r := range s.routers {
		for line := range strings.Lines(page(s.t, r, "/metrics")) {
			if strings.HasPrefix(line, "creel_router_reconcile_ended_total") && !strings.HasSuffix(line, " 0\n") {
				s.t.Errorf("%s says %s", r.Name, line)
			}
		}
	}
}
