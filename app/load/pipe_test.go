// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

const pipedProtocol = "creel.test.Counter"

// counter serves a method that echoes its request.
func counter(t *testing.T) (address string, stop func()) {
	t.Helper()
	echo := func(_ context.Context, m proto.Message) (proto.Message, error) { return m, nil }
	s, err := hrpc.NewServer(
		hrpc.Config{
			Simple: true,
			Services: []hrpc.Service{{Protocol: pipedProtocol, Version: 1, Methods: map[string]hrpc.Method{
				"echo": {
					NewRequest: func() proto.Message { return new(wrapperspb.StringValue) },
					Serve:      echo,
					Inline:     true,
				},
			}}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Run(ctx, l); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

func measurePiped(t *testing.T, p Plan, kind pipedRequests) *Result {
	t.Helper()
	o := &Options{Logger: nil}
	clients, end := o.clients(p.Connections)
	defer end()
	m := newMeter(nil)
	drive := drivePiped
	if p.Rate > 0 {
		drive = driveOpenPiped
	}
	if err := drive(t.Context(), p, m, clients, kind); err != nil {
		t.Fatal(err)
	}
	return m.result("test", "here", p)
}

// Each ticket is asked for once, by a slot that waits for nothing else, and its
// own answer comes back to it.
func TestAPipedLoopKeepsItsCount(t *testing.T) {
	address, _ := counter(t)
	var mu sync.Mutex
	var tickets []int64
	waits := map[int]bool{}
	kind := pipedRequests{
		target: hrpc.Target{Address: address, Protocol: pipedProtocol, Login: hrpc.Login{User: "load"}},
		method: "echo",
		slots:  10,
		request: func(b []byte, slot int, ticket int64) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if waits[slot] || slot < 0 || slot >= 10 {
				t.Errorf("slot %d asks while it waits, or there is none", slot)
			}
			waits[slot] = true
			return append(b, 1<<3|2, 1, byte('0'+ticket%10)), nil
		},
		answer: func(_ context.Context, slot int, ticket int64, body []byte) error {
			mu.Lock()
			defer mu.Unlock()
			waits[slot] = false
			tickets = append(tickets, ticket)
			if len(body) != 3 || body[2] != byte('0'+ticket%10) {
				t.Errorf("ticket %d was answered %v", ticket, body)
			}
			return nil
		},
	}
	r := measurePiped(t, Plan{Count: 1000, InFlight: 7, Connections: 3}, kind)
	slices.Sort(tickets)
	if r.Answered != 1000 || r.Failed != 0 || len(tickets) != 1000 || len(slices.Compact(tickets)) != 1000 {
		t.Errorf(
			"of 1000 requests %d were answered and %d failed (%v), %d tickets",
			r.Answered,
			r.Failed,
			r.Failures,
			len(tickets),
		)
	}
}

// A server that disappears fails the requests in flight and later ones, and the load ends with its count.
func TestPipelinedLoopStopsWithServer(t *testing.T) {
	address, stop := counter(t)
	var once sync.Once
	kind := pipedRequests{
		target:  hrpc.Target{Address: address, Protocol: pipedProtocol, Login: hrpc.Login{User: "load"}},
		method:  "echo",
		slots:   4,
		request: func(b []byte, _ int, _ int64) ([]byte, error) { return b, nil },
		answer: func(_ context.Context, _ int, ticket int64, _ []byte) error {
			if ticket >= 50 {
				once.Do(func() { go stop() })
				time.Sleep(time.Millisecond)
			}
			return nil
		},
	}
	r := measurePiped(t, Plan{Count: 20_000, Duration: 10 * time.Second, InFlight: 4, Connections: 2}, kind)
	if r.Answered < 50 || r.Failed == 0 || r.Failures["connection: dial"] == 0 {
		t.Errorf("%d answered, failures %v; want both", r.Answered, r.Failures)
	}
}

// A response that lacks requested content is a failure, not a fast success.
func TestShortAnswersAreFailures(t *testing.T) {
	ids := []creel.ApplicationID{{ClusterTimestamp: 1, ID: 1}, {ClusterTimestamp: 1, ID: 2}}
	report := func(id creel.ApplicationID) *pb.ApplicationReportProto {
		return &pb.ApplicationReportProto{ApplicationId: pb.FromApplicationID(id), Name: new("a")}
	}
	encode := func(m interface{ MarshalVT() ([]byte, error) }) []byte {
		b, err := m.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		call   string
		answer []byte
		good   bool
	}{
		{"report", encode(&pb.GetApplicationReportResponseProto{ApplicationReport: report(ids[1])}), true},
		{"report", encode(&pb.GetApplicationReportResponseProto{ApplicationReport: report(ids[0])}), false},
		{"report", nil, false},
		{"list", encode(&pb.GetApplicationsResponseProto{Applications: []*pb.ApplicationReportProto{report(ids[0]), report(ids[1])}}), true},
		{"list", encode(&pb.GetApplicationsResponseProto{Applications: []*pb.ApplicationReportProto{report(ids[0])}}), false},
		{"metrics", nil, false},
	} {
		r, err := reading(c.call, ids)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.check(1, c.answer); (err == nil) != c.good {
			t.Errorf("%s: %x: %v", c.call, c.answer, err)
		}
	}
}

// The result of reading without decoding equals the decoded message.
func TestPlainAnswersOfATracker(t *testing.T) {
	plain := func() *pb.NodeHeartbeatResponseProto {
		return &pb.NodeHeartbeatResponseProto{
			ResponseId:            new(int32(77)),
			NodeAction:            pb.NodeActionProto_NORMAL.Enum(),
			NextHeartBeatInterval: new(int64(1000)),
		}
	}
	for name, c := range map[string]struct {
		change func(*pb.NodeHeartbeatResponseProto)
		plain  bool
	}{
		"go on":        {func(*pb.NodeHeartbeatResponseProto) {}, true},
		"come again":   {func(m *pb.NodeHeartbeatResponseProto) { m.NodeAction = pb.NodeActionProto_RESYNC.Enum() }, false},
		"a key":        {func(m *pb.NodeHeartbeatResponseProto) { m.NmTokenMasterKey = &pb.MasterKeyProto{KeyId: new(int32(1))} }, false},
		"one to stop":  {func(m *pb.NodeHeartbeatResponseProto) { m.ContainersToCleanup = []*pb.ContainerIdProto{{}} }, false},
		"no action":    {func(m *pb.NodeHeartbeatResponseProto) { m.NodeAction = nil }, false},
		"a diagnostic": {func(m *pb.NodeHeartbeatResponseProto) { m.DiagnosticsMessage = new("x") }, false},
	} {
		m := plain()
		c.change(m)
		b, err := m.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		id, ok := plainAnswer(b)
		if ok != c.plain || ok && id != 77 {
			t.Errorf("%s: %d, %v", name, id, ok)
		}
	}
}

// An open loop whose server pauses for a while: every request is accounted for, latency counts from each due time,
// and no slot has two requests in flight.
func TestAnOpenPipedLoopThroughAStall(t *testing.T) {
	t.Run("slots that share a connection", func(t *testing.T) {
		if r := throughStall(t, false, 0); r.Unsent < 50 || r.Latency.Max < 190 {
			t.Errorf(
				"the longest wait is %g ms and %d were unsent; the server stood still for 200 ms, in which each slot was due 4 times",
				r.Latency.Max,
				r.Unsent,
			)
		}
	})
	t.Run("slots with their own, and patience", func(t *testing.T) {
		if r := throughStall(t, true, 500); r.Unsent != 0 || r.Latency.Max < 140 {
			t.Errorf(
				"the longest wait is %g ms and %d were unsent, though all may be late; a slot that stood still was due again after 50 ms",
				r.Latency.Max,
				r.Unsent,
			)
		}
	})
}

func throughStall(t *testing.T, own bool, behind int) *Result {
	address, _ := counter(t)
	var mu sync.Mutex
	waits, stalled := map[int]bool{}, false
	target := hrpc.Target{Address: address, Protocol: pipedProtocol, Login: hrpc.Login{User: "load"}}
	kind := pipedRequests{target: target, method: "echo", slots: 50, behind: behind,
		request: func(b []byte, slot int, _ int64) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if waits[slot] {
				t.Errorf("slot %d asks while it waits", slot)
			}
			waits[slot] = true
			return b, nil
		},
		answer: func(_ context.Context, slot int, ticket int64, _ []byte) error {
			mu.Lock()
			waits[slot] = false
			stall := ticket >= 100 && !stalled
			stalled = stalled || stall
			mu.Unlock()
			if stall {
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		}}
	if own {
		kind.target, kind.own = hrpc.Target{}, slices.Repeat([]hrpc.Target{target}, kind.slots)
	}
	o := &Options{}
	clients, end := o.clients(1)
	defer end()
	m := newMeter(nil)
	p := Plan{Rate: 1000, Count: 500, Duration: time.Hour, InFlight: 1, Connections: 1}
	if err := driveOpenPiped(t.Context(), p, m, clients, kind); err != nil {
		t.Fatal(err)
	}
	r := m.result("test", "here", p)
	if r.Answered+r.Unsent != 500 || r.Failed != 0 || r.Latency.Count != 500 {
		t.Errorf(
			"of 500 requests %d were answered, %d not sent, %d failed: %v",
			r.Answered,
			r.Unsent,
			r.Failed,
			r.Failures,
		)
	}
	return r
}

// Requests that were due while the server was down are counted as unsent.
func TestAnOpenPipedLoopWithoutAServer(t *testing.T) {
	address, stop := counter(t)
	stop()
	kind := pipedRequests{
		target:  hrpc.Target{Address: address, Protocol: pipedProtocol, Login: hrpc.Login{User: "load"}},
		method:  "echo",
		slots:   5,
		request: func(b []byte, _ int, _ int64) ([]byte, error) { return b, nil },
		answer:  func(context.Context, int, int64, []byte) error { return nil },
	}
	o := &Options{}
	clients, end := o.clients(2)
	defer end()
	m := newMeter(nil)
	p := Plan{Rate: 1000, Count: 20, Duration: time.Hour, InFlight: 1, Connections: 2, Grace: 50 * time.Millisecond}
	if err := driveOpenPiped(t.Context(), p, m, clients, kind); err != nil {
		t.Fatal(err)
	}
	if r := m.result("test", "here", p); r.Answered != 0 || r.Unsent != 20 {
		t.Errorf("nobody listened: %d answered, %d unsent, %v", r.Answered, r.Unsent, r.Failures)
	}
}

// A request of several calls is answered by the last of them, counted once and
// timed as a whole.
func TestAPipedRequestOfSeveralCalls(t *testing.T) {
	for name, p := range map[string]Plan{
		"closed": {Count: 100, InFlight: 5, Connections: 2},
		"open":   {Rate: 500, Count: 100, Duration: time.Hour, InFlight: 100, Connections: 2},
	} {
		t.Run(name, func(t *testing.T) { severalCalls(t, p) })
	}
}

func severalCalls(t *testing.T, p Plan) {
	address, _ := counter(t)
	var mu sync.Mutex
	calls := map[int64]string{}
	kind := pipedRequests{
		target: hrpc.Target{Address: address, Protocol: pipedProtocol, Login: hrpc.Login{User: "load"}},
		method: "echo",
		slots:  p.InFlight,
		request: func(b []byte, _ int, ticket int64) ([]byte, error) {
			return append(b, 1<<3|2, 1, byte('a'+ticket%3)), nil
		},
		next: func(b []byte, _ int, ticket int64, body []byte) (string, []byte, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[ticket] += string(body[2:])
			switch {
			case len(calls[ticket]) < 3:
				return "echo", append(b, 1<<3|2, 1, byte('0'+len(calls[ticket]))), nil
			case ticket == 7:
				return "", nil, errors.New("seven")
			}
			return "", nil, nil
		},
		answer: func(_ context.Context, _ int, ticket int64, _ []byte) error {
			mu.Lock()
			defer mu.Unlock()
			calls[ticket] += "!"
			return nil
		},
	}
	r := measurePiped(t, p, kind)
	if r.Answered != 99 || r.Failed != 1 || len(calls) != 100 {
		t.Errorf(
			"of 100 requests %d were answered, %d failed (%v), %d began",
			r.Answered,
			r.Failed,
			r.Failures,
			len(calls),
		)
	}
	for ticket, body := range calls {
		want := string(rune('a'+ticket%3)) + "12!"
		if ticket == 7 {
			want = want[:3]
		}
		if body != want {
			t.Errorf("ticket %d: %q, want %q", ticket, body, want)
		}
	}
}
