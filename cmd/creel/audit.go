// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// auditor looks at every ResourceManager of a running federation: its own
// invariants, how many applications ended, and how far queues are from what
// the whole federation guarantees them. It has one owner.
type auditor struct {
	fed             *federation
	ended, running  int64
	checked, broken int64
	errors          []float64 // shortfalls, one for each queue and look with demand
	said            []string
	each            []struct{ ended, running int64 } // last known, by subcluster
}

func newAuditor(fed *federation) *auditor {
	return &auditor{fed: fed, each: make([]struct{ ended, running int64 }, len(fed.rms))}
}

func (a *auditor) broke(format string, args ...any) {
	a.broken++
	if len(a.said) < 20 {
		a.said = append(a.said, fmt.Sprintf(format, args...))
	}
}

// queueUse is one queue over all subclusters.
type queueUse struct {
	guaranteed, used, demand creel.Resource
}

// look asks all ResourceManagers once. One that is down keeps its last counts.
func (a *auditor) look(ctx context.Context) {
	queues := map[creel.QueuePath]*queueUse{}
	var total creel.Resource
	for i, service := range a.fed.rms {
		ask, cancel := context.WithTimeout(ctx, 2*time.Second)
		var broken error
		var ended, running int64
		err := service.parts.daemon.Query(ask, func(m *rm.Machine, _ time.Time) {
			broken = m.Audit()
			for v := range m.Apps {
				switch {
				case v.Unmanaged:
				case v.State.Ended():
					ended++
				default:
					running++
				}
			}
			total = total.Add(m.Cluster().Total)
			for q := range m.Queues {
				if !q.Leaf {
					continue
				}
				u := queues[q.Path]
				if u == nil {
					u = &queueUse{}
					queues[q.Path] = u
				}
				u.guaranteed = u.guaranteed.Add(q.Guaranteed)
				u.used = u.used.Add(q.Used)
				u.demand = u.demand.Add(q.Used).Add(q.Pending)
			}
		})
		cancel()
		if err != nil {
			continue // it is down, or busy: its invariants are looked at when it is back
		}
		a.each[i].ended, a.each[i].running = ended, running
		a.checked++
		if broken != nil {
			a.broke("sc-%d: %v", i+1, broken)
		}
	}
	a.ended, a.running = 0, 0
	for _, e := range a.each {
		a.ended += e.ended
		a.running += e.running
	}
	for _, u := range queues {
		entitled := u.guaranteed.Min(u.demand).Dominant(total)
		if entitled <= 0 {
			continue
		}
		a.errors = append(a.errors, max(0, entitled-u.used.Dominant(total))/entitled)
	}
}

// fill writes what was seen into a summary.
func (a *auditor) fill(s *summary, out io.Writer) {
	s.Invariants.Checked, s.Invariants.Broken = a.checked, a.broken
	for _, text := range a.said {
		fmt.Fprintln(out, "broken:", text)
	}
	if len(a.errors) == 0 {
		return
	}
	slices.Sort(a.errors)
	sum := 0.0
	for _, e := range a.errors {
		sum += e
	}
	s.EntitlementError.Mean = sum / float64(len(a.errors))
	s.EntitlementError.P99 = a.errors[min(len(a.errors)-1, len(a.errors)*99/100)]
}

// runFaults takes down a subcluster and a router on the way and brings them
// back, on the same ports and journals.
func runFaults(ctx context.Context, fed *federation, began time.Time, last time.Duration, out io.Writer) error {
	sleep := func(until time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Until(began.Add(until))):
			return true
		}
	}
	victim := fed.rms[len(fed.rms)-1]
	if !sleep(last / 4) {
		return nil
	}
	fmt.Fprintf(out, "fault: %s is killed\n", victim.name)
	victim.stop()
	if !sleep(last/4 + 4*time.Second) {
		return start(fed, victim)
	}
	if err := start(fed, victim); err != nil {
		return err
	}
	fmt.Fprintf(out, "fault: %s is back\n", victim.name)
	router := fed.routers[0]
	if !sleep(last / 2) {
		return nil
	}
	fmt.Fprintf(out, "fault: %s is killed\n", router.name)
	router.stop()
	if !sleep(last/2 + 5*time.Second) {
		return start(fed, router)
	}
	if err := start(fed, router); err != nil {
		return err
	}
	fmt.Fprintf(out, "fault: %s is back\n", router.name)
	return nil
}
