// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// placed returns the numbers of an AM's containers that a proxy placed, and that its ResourceManager granted.
func (m *am) placed() (here, there int) {
	for c := range m.has {
		if c.Sequence() >= 1<<39 {
			here++
		} else {
			there++
		}
	}
	return here, there
}

// opportunistic returns the number of opportunistic containers of the AM's attempt that a member lists.
func (m *am) opportunistic(id creel.SubclusterID) (n int) {
	list, err := m.f.as(id, "ann").GetContainers(context.Background(), &pb.GetContainersRequestProto{
		ApplicationAttemptId: pb.FromAttemptID(creel.AttemptID{Application: m.app, Attempt: 1}),
	})
	if err != nil {
		return 0
	}
	for _, c := range list.GetContainers() {
		if c.GetExecutionType() == pb.ExecutionTypeProto_OPPORTUNISTIC {
			n++
		}
	}
	return n
}

// The proxy places opportunistic containers itself, and the ResourceManager grants the guaranteed ones. A second proxy
// continues with other ids, and so does the same proxy after a restart of the ResourceManager.
func TestProxyPlacesOpportunisticContainers(t *testing.T) {
	f := foundWith(t, true, byHeadroom, 3)
	p := f.proxy()
	m := f.submit("sc-a", p)
	m.register()
	m.ask(1, 2)
	m.ask(60, 5)
	m.heartbeatUntil("all are granted", func() bool { return m.want[1]+m.want[60] == 0 })
	if here, there := m.placed(); here != 5 || there != 2 {
		t.Errorf("the proxy placed %d containers, the ResourceManager %d", here, there)
	}
	if n := m.opportunistic("sc-a"); n != 5 {
		t.Errorf("the ResourceManager lists %d opportunistic containers", n)
	}

	p.stop()
	p = f.proxy()
	m.connect(p.address)
	m.ask(60, 3)
	m.heartbeatUntil("three more are granted", func() bool { return m.want[60] == 0 })
	if here, there := m.placed(); here != 8 || there != 2 {
		t.Errorf("the proxies placed %d containers, the ResourceManager %d", here, there)
	}
	if n := m.opportunistic("sc-a"); n != 8 {
		t.Errorf("the ResourceManager lists %d opportunistic containers", n)
	}
	m.finish()
	m.noRecords()
}

// BenchmarkPlaceHundred is the time of an allocate that grants 100 opportunistic containers: placed by the proxy, and
// granted by the ResourceManager without a proxy (central). relay is an idle allocate through the proxy. The three take
// turns in one run. Containers are released between the turns. The proxy places at most one container on a node for
// each call of the AM, so the member has more nodes than containers are asked for, and all are listed before the first
// turn.
func BenchmarkPlaceHundred(b *testing.B) {
	const n, p = 100, 60
	f := foundWith(b, true, byHeadroom, n+n/4)
	proxy := f.proxy()
	type way struct {
		name  string
		m     *am
		asks  bool
		calls int // that granted
		times []time.Duration
	}
	ways := []*way{
		{name: "placed", m: f.submit("sc-a", proxy), asks: true},
		{name: "relay", m: f.submit("sc-a", proxy)},
		{name: "central", m: f.submit("sc-a", nil), asks: true},
	}
	for _, w := range ways {
		w.m.register()
		for calls := 0; calls != 1; {
			w.m.ask(p, n)
			calls = 0
			w.m.heartbeatUntil("all are granted", func() bool { calls++; return w.m.want[p] == 0 })
			w.m.releaseAll()
		}
	}
	for b.Loop() {
		for _, w := range ways {
			if w.asks {
				w.m.ask(p, n)
			}
			start := time.Now()
			w.m.heartbeat()
			for w.calls++; w.m.want[p] > 0; w.calls++ {
				w.m.heartbeat()
			}
			w.times = append(w.times, time.Since(start))
			w.m.releaseAll()
		}
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	for _, w := range ways {
		slices.Sort(w.times)
		b.ReportMetric(us(w.times[len(w.times)/2]), w.name+"-p50-us")
		b.ReportMetric(us(w.times[len(w.times)*99/100]), w.name+"-p99-us")
		b.ReportMetric(float64(w.calls)/float64(len(w.times)), w.name+"-calls")
	}
	b.ReportMetric(0, "ns/op")
}

// releaseAll releases all containers of the AM, and waits for their ends.
func (m *am) releaseAll() {
	m.f.t.Helper()
	for c := range m.has {
		m.release = append(m.release, pb.FromContainerID(c))
	}
	m.heartbeatUntil("all are released", func() bool { return len(m.has) == 0 })
}
