// SPDX-License-Identifier: Apache-2.0

package servlets

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
)

// Ports are the RPC ports of a daemon. /jmx has two beans for each, as Hadoop's daemons do.
type Ports struct {
	mu    sync.Mutex
	ports []*rpcPort
}

type rpcPort struct {
	number string
	server *hrpc.Server
	rates  map[string]*Mean
	total  Mean // of the requests, for their number in a second
}

// Add adds the server that listens at an address.
func (p *Ports) Add(address string, s *hrpc.Server) {
	_, number, err := net.SplitHostPort(address)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports = append(p.ports, &rpcPort{number: number, server: s, rates: map[string]*Mean{}})
}

// beans returns the two beans of each port. A nil Ports has none.
func (p *Ports) beans(service string, now time.Time) (all []Bean) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range p.ports {
		all = append(all, port.activity(service, now), port.detailed(service, now))
	}
	return all
}

// rate sets the number of operations and their mean time, under Hadoop's names.
func (p *rpcPort) rate(b *Bean, name string, now time.Time, n uint64, sum time.Duration) {
	m := p.rates[name]
	if m == nil {
		m = &Mean{}
		p.rates[name] = m
	}
	b.SetRate(name, n, m.At(now, n, sum))
}

// activity is the bean about all calls. The processing time includes the wait for the journal and other members: it
// ends with the answer.
func (p *rpcPort) activity(service string, now time.Time) Bean {
	b := Metrics(service, "RpcActivityForPort"+p.number, "rpc")
	b.Set("tag.port", p.number)
	s, total := p.server.Stats(), hrpc.MethodStats{}
	for _, m := range p.server.Methods() {
		total.Calls += m.Calls
		total.Failed += m.Failed
		total.Time += m.Time
	}
	b.Set("ReceivedBytes", s.BytesIn)
	b.Set("SentBytes", s.BytesOut)
	p.rate(&b, "RpcQueueTime", now, total.Calls, s.Waited)
	p.rate(&b, "RpcProcessingTime", now, total.Calls, max(total.Time-s.Waited, 0))
	p.rate(&b, "DeferredRpcProcessingTime", now, s.Deferred, s.DeferredTime)
	b.Set("RpcAuthenticationFailures", s.AuthFailed)
	b.Set("RpcClientBackoff", s.Busy)
	b.Set("RpcCallSuccesses", total.Calls-total.Failed)
	b.Set("NumOpenConnections", s.Connections)
	b.Set("NumInProcessHandler", s.CallsInFlight)
	b.Set("CallQueueLength", s.Waiting)
	b.Set("NumDroppedConnections", s.Refused+s.Slow)
	b.Set("TotalRequests", total.Calls)
	b.Set("TotalRequestsPerSecond", int64(p.total.PerSecond(now, total.Calls)))
	return b
}

// detailed is the bean with the rates of each method, under its name with a capital.
func (p *rpcPort) detailed(service string, now time.Time) Bean {
	b := Metrics(service, "RpcDetailedActivityForPort"+p.number, "rpcdetailed")
	b.Set("tag.port", p.number)
	for _, m := range p.server.Methods() {
		if m.Method != "" {
			p.rate(&b, strings.ToUpper(m.Method[:1])+m.Method[1:], now, m.Calls, m.Time)
		}
	}
	return b
}

// SetRate sets the number of operations and their mean time in milliseconds.
func (b *Bean) SetRate(name string, operations uint64, mean time.Duration) {
	b.Set(name+"NumOps", operations)
	b.Set(name+"AvgTime", float64(mean)/float64(time.Millisecond))
}

// Mean is the mean of a sum over its latest period. Hadoop's metrics have periods of 10 s. A period without a change
// keeps the last mean. The zero Mean begins with the sums 0.
type Mean struct {
	since time.Time
	count uint64
	sum   time.Duration
	last  time.Duration
	rate  float64
}

// period is the default period of Hadoop's metrics system.
const period = 10 * time.Second

// At returns the mean, given the present sums.
func (m *Mean) At(now time.Time, count uint64, sum time.Duration) time.Duration {
	if n := count - m.count; n > 0 {
		m.last = (sum - m.sum) / time.Duration(n)
	}
	if now.Sub(m.since) >= period {
		m.since, m.count, m.sum = now, count, sum
	}
	return m.last
}

// PerSecond returns the growth of a count in a second, 0 before a second has passed.
func (m *Mean) PerSecond(now time.Time, count uint64) float64 {
	if m.since.IsZero() {
		m.since, m.count = now, count
		return 0
	}
	d := now.Sub(m.since)
	if d >= time.Second {
		m.rate = float64(count-m.count) / d.Seconds()
	}
	if d >= period {
		m.since, m.count = now, count
	}
	return m.rate
}
