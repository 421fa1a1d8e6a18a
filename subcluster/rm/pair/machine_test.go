// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
)

const term = 10 * time.Second

var start = time.UnixMilli(1_700_000_000_000)

// at is a time of the tests, in ms after their start.
func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func expect(t *testing.T, m *Machine, role Role, actions ...Kind) {
	t.Helper()
	var got, want []string
	for _, a := range m.Actions() {
		got = append(got, a.Kind.String())
		if a.Why == "" {
			t.Errorf("%v has no reason", a.Kind)
		}
	}
	for _, k := range actions {
		want = append(want, k.String())
	}
	if m.Role() != role || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("it is %v with actions %q, want %v with %q", m.Role(), got, role, want)
	}
}

// active makes a machine that leads since the start, by a lease until at(10_000).
func active(t *testing.T, automatic bool) *Machine {
	t.Helper()
	m := New(Config{Automatic: automatic, Lease: term}, start)
	if !automatic {
		if err := m.Lead(start); err != nil {
			t.Fatal(err)
		}
	}
	m.Tick(start)
	expect(t, m, Standby, Claim)
	m.Answered(start, Answer{Asked: start, Won: true})
	expect(t, m, Becoming, Begin)
	m.Began(start, nil)
	expect(t, m, Active)
	return m
}

func TestLeaderAnswersUntilMarginOfLease(t *testing.T) {
	m := active(t, true)
	if !m.Leads(at(8_999)) || m.Leads(at(9_000)) {
		t.Errorf("it leads until %v", m.Until().Sub(start))
	}
}

// The leader is stopped past its lease. It resigns with the first event after that, and releases the lease only after
// its services have ended.
func TestPausedLeaderResigns(t *testing.T) {
	m := active(t, true)
	m.Tick(at(30_000))
	expect(t, m, Resigned, End)
	if m.Leads(at(1)) {
		t.Error("it leads again at an earlier time")
	}
	m.Tick(at(31_000))
	expect(t, m, Resigned)
	m.Ended(at(32_000))
	expect(t, m, Standby, Release)
}

// A renewal is won, but its answer arrives after the lease that it renewed.
func TestLateRenewalDoesNotLead(t *testing.T) {
	m := active(t, true)
	m.Tick(at(2_000))
	expect(t, m, Active, Claim)
	m.Answered(at(30_000), Answer{Asked: at(2_000), Won: true})
	expect(t, m, Resigned, End)
}

func TestTermCountsFromTheQuestion(t *testing.T) {
	m := active(t, true)
	m.Tick(at(2_000))
	m.Answered(at(5_000), Answer{Asked: at(2_000), Won: true})
	if m.Leads(at(11_000)) || !m.Leads(at(10_999)) {
		t.Errorf("it leads until %v", m.Until().Sub(start))
	}
}

func TestSilentLeaseEndsServices(t *testing.T) {
	m := active(t, true)
	for now := 2_000; now < 9_000; now += 500 {
		m.Tick(at(now))
		m.Answered(at(now), Answer{Asked: at(now), Err: errors.New("no answer")})
	}
	for _, a := range m.Actions() {
		if a.Kind != Claim {
			t.Fatalf("it does %v", a)
		}
	}
	m.Tick(at(9_000))
	expect(t, m, Resigned, End)
}

func TestLostLeaseEndsServices(t *testing.T) {
	m := active(t, true)
	m.Tick(at(2_000))
	expect(t, m, Active, Claim)
	m.Answered(at(2_001), Answer{Asked: at(2_000), Holder: "rm2", Left: term})
	expect(t, m, Resigned, End)
	if m.Leads(at(2_001)) || m.Leader() != "rm2" {
		t.Errorf("it leads beside %s", m.Leader())
	}
}

func TestFailedServicesLeaveTheLease(t *testing.T) {
	m := active(t, true)
	m.Failed(errors.New("another process holds the state"))
	expect(t, m, Resigned, End)
	m.Ended(at(100))
	expect(t, m, Standby, Release)
	m.Released(at(100))
	if next := m.Deadline(); next.Before(at(100).Add(2 * m.cfg.interval())) {
		t.Errorf("it claims again %v after it failed", next.Sub(at(100)))
	}
	m = New(Config{Automatic: true, Lease: term}, start)
	m.Tick(start)
	m.Answered(start, Answer{Asked: start, Won: true})
	expect(t, m, Becoming, Claim, Begin)
	m.Began(at(1), errors.New("a port is in use"))
	expect(t, m, Resigned, End)
}

// Without automatic failover a standby only looks, and an order makes it claim.
func TestManualPairFailsOverByOrder(t *testing.T) {
	m := New(Config{Lease: term}, start)
	m.Tick(start)
	expect(t, m, Standby, Look)
	m.Answered(start, Answer{Asked: start})
	m.Tick(at(2_000))
	expect(t, m, Standby, Look)
	if err := m.Lead(at(2_001)); err != nil {
		t.Fatal(err)
	}
	m.Answered(at(2_002), Answer{Asked: at(2_000), Holder: "rm1", Left: 500 * time.Millisecond})
	m.Tick(at(2_502))
	expect(t, m, Standby, Claim)
	m.Answered(at(2_503), Answer{Asked: at(2_502), Won: true})
	expect(t, m, Becoming, Begin)
	m.Began(at(2_600), nil)
	m.StandBy(at(3_000))
	expect(t, m, Resigned, End)
	if !m.Leads(at(3_050)) {
		t.Error("its last answers are dropped, although it has the lease")
	}
	m.Ended(at(3_100))
	expect(t, m, Standby, Release)
	if m.Leads(at(3_100)) {
		t.Error("it leads after its services have ended")
	}
	m.Released(at(3_200))
	m.Tick(at(9_000))
	expect(t, m, Standby, Look)
}

// An administrator orders it to lead while its release is under way. A claim now could be answered before the release,
// which then would end the lease that it won.
func TestClaimWaitsForTheRelease(t *testing.T) {
	m := active(t, true)
	m.StandBy(at(100))
	expect(t, m, Resigned, End)
	m.Ended(at(200))
	expect(t, m, Standby, Release)
	if err := m.Lead(at(300)); err != nil {
		t.Fatal(err)
	}
	m.Tick(at(300))
	expect(t, m, Standby)
	m.Released(at(4_000))
	m.Tick(at(4_000))
	expect(t, m, Standby, Claim)
}

// An order ends when the lease of a silent process has ended for sure, and its late success is given back.
func TestOrderToLeadExpires(t *testing.T) {
	m := New(Config{Lease: term}, start)
	if err := m.Lead(start); err != nil {
		t.Fatal(err)
	}
	m.Tick(start)
	expect(t, m, Standby, Claim)
	if m.Ordered(at(20_000)) || !m.Ordered(at(19_999)) {
		t.Error("the order is not in force for two terms")
	}
	m.Answered(at(20_001), Answer{Asked: at(20_000), Won: true})
	expect(t, m, Standby, Release)
}

// store is a lease with its server's clock, which runs up to 5 % faster than the machines' clocks.
type store struct {
	rate  float64
	by    int
	until time.Time
}

func (s *store) claim(now time.Time, by int) Answer {
	if s.by != by && now.Before(s.until) {
		return Answer{Holder: fmt.Sprint("rm", s.by), Left: s.until.Sub(now)}
	}
	s.by, s.until = by, now.Add(time.Duration(float64(term)/s.rate))
	return Answer{Won: true}
}

// Claims take any time to arrive, answers any time to come back, machines pause, and services take any time to start
// and to end. Whenever one of the pair leads, the lease is its own.
func TestTwoNeverLeadTogether(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		s := &store{rate: rapid.Float64Range(1, 1.05).Draw(t, "rate")}
		type event struct {
			at time.Time
			do func(now time.Time)
		}
		var pending [2][]event
		var machines [2]*Machine
		var pause [2]time.Time // until then a machine gets no event
		delay := func(label string) time.Duration {
			return time.Duration(rapid.IntRange(0, 15_000).Draw(t, label)) * time.Millisecond
		}
		for i := range machines {
			machines[i] = New(Config{Automatic: true, Lease: term}, start)
		}
		for now := start; now.Before(at(120_000)); now = now.Add(250 * time.Millisecond) {
			for i, m := range machines {
				if rapid.IntRange(0, 60).Draw(t, "pause") == 0 {
					pause[i] = now.Add(delay("length"))
				}
				due := pending[i]
				pending[i] = nil
				for _, e := range due { // a machine's events wait while it is paused, the store's do not
					if e.at.After(now) || now.Before(pause[i]) {
						pending[i] = append(pending[i], e)
					} else {
						e.do(now)
					}
				}
				if d := m.Deadline(); !now.Before(pause[i]) && !d.IsZero() && !now.Before(d) {
					m.Tick(now)
				}
				if !now.Before(pause[i]) && rapid.IntRange(0, 100).Draw(t, "order") == 0 {
					m.StandBy(now)
				}
				for _, a := range m.Actions() {
					switch a.Kind {
					case Claim:
						answer := s.claim(now, i)
						answer.Asked = now
						pending[i] = append(pending[i], event{now.Add(delay("answer")), func(now time.Time) {
							m.Answered(now, answer)
						}})
					case Begin:
						pending[i] = append(pending[i], event{now.Add(delay("begin")), func(now time.Time) { m.Began(now, nil) }})
					case End:
						pending[i] = append(pending[i], event{now.Add(delay("end")), m.Ended})
					case Release:
						pending[i] = append(pending[i], event{now.Add(delay("release")), func(now time.Time) {
							if s.by == i {
								s.until = now
							}
							m.Released(now)
						}})
					}
				}
			}
			for i, m := range machines {
				if m.Leads(now) && (s.by != i || !now.Before(s.until)) {
					t.Fatalf("rm%d leads at %v, and the lease is rm%d's until %v",
						i, now.Sub(start), s.by, s.until.Sub(start))
				}
			}
		}
	})
}
