// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel"
	rebalance "github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// Measures the time from a change of a queue's pending demand in one member to the resulting plan in the views of
// 1,000 proxies and routers: 100 members' agents, a rebalancer and watchers as in the daemons, over a real Redis,
// each with its own connections, all in this process. There are 100 queues, each in five members. A proxy reads the
// demand of two queues; one watcher in ten is a router and reads all.
func BenchmarkFromDemandToWeights(b *testing.B) {
	const members, queues, each = 100, 100, 5
	n := 1000
	if s := os.Getenv("CREEL_BENCH_PROXIES"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	server := redistest.Start(b, "--maxclients", "15000")
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	open := func() *redis.Store {
		s, err := redis.Open(redis.Config{URL: server.URL(), MaxWait: time.Minute, Timeout: 10 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s
	}
	path := func(q int) creel.QueuePath { return creel.QueuePath(fmt.Sprintf("root.team%d", q)) }
	var pending [members]atomic.Int64 // GB, of the member's first queue
	for i := range members {
		told := int64(0)
		load := func() []byte {
			told = pending[i].Load()
			l := subcluster.Load{BeginsAgain: true, Metrics: subcluster.ClusterMetrics{
				TotalMB: 100 << 10, TotalVirtualCores: 100, AllocatedMB: 50 << 10, AllocatedVirtualCores: 50,
				AvailableMB: 50 << 10, AvailableVirtualCores: 50,
			}}
			for k := range each {
				q := subcluster.QueueLoad{
					Queue: path((i + k*20) % queues), Capacity: creel.NewResource(20<<10, 20), Used: creel.NewResource(10<<10, 10),
				}
				if k == 0 {
					q.Pending = creel.NewResource(told<<10, told)
				}
				l.Queues = append(l.Queues, q)
			}
			text, err := l.JSON()
			if err != nil {
				panic(err)
			}
			return text
		}
		a := &remote.Agent{
			Store: open(), Every: time.Second, Logger: slog.New(slog.DiscardHandler),
			Probe:   func(context.Context) ([]byte, error) { return load(), nil },
			Changed: func(context.Context) bool { return pending[i].Load() != told },
			Member: subcluster.Member{ID: creel.SubclusterID(fmt.Sprintf("sc-%03d", i)), Version: "creel", Lease: 10 * time.Second,
				Addresses: subcluster.Addresses{Client: "h:1", Scheduler: "h:2", Admin: "h:3", Tracker: "h:4", Web: "h:5"}},
		}
		wg.Go(func() { _ = a.Run(ctx) })
	}
	store := open()
	for {
		if r, err := store.Records(ctx); err != nil {
			b.Fatal(err)
		} else if len(r.Members) == members {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	leader := &rebalance.Leader{
		Name: "a", Store: store, Every: 10 * time.Second, Lease: 15 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
	wg.Go(func() { _ = leader.Run(ctx) })

	var mu sync.Mutex
	var queue creel.QueuePath // whose change is awaited
	var least float64
	type sight struct {
		version int64 // of a plan
		at      time.Time
	}
	saw, latest := make([][]sight, n), make([]int64, n) // by watcher, since the change
	var follows int64                                   // version of the first plan that follows from it; 0: not seen yet
	all := make(chan struct{}, 1)
	for i := range n {
		store := open()
		conf := watch.Config{Poll: 2 * time.Second, Plan: store, Timeout: 10 * time.Second}
		if i%10 != 0 {
			mine := []string{path(i % queues).Leaf(), path((7*i + 1) % queues).Leaf()}
			conf.Queues = func() []string { return mine }
		}
		conf.OnView = func(v *subcluster.View) {
			mu.Lock()
			defer mu.Unlock()
			if v.Plan == nil || v.Plan.Version == latest[i] {
				return
			}
			latest[i] = v.Plan.Version
			saw[i] = append(saw[i], sight{v.Plan.Version, time.Now()})
			// A router reads all: it knows of which version the plan is that follows.
			if q := v.Plan.Queue(queue); conf.Queues == nil && q != nil && q.Wants > least &&
				(follows == 0 || v.Plan.Version < follows) {
				follows = v.Plan.Version
			}
			if follows == 0 || slices.ContainsFunc(latest, func(version int64) bool { return version < follows }) {
				return
			}
			select {
			case all <- struct{}{}:
			default: // it was published already
			}
		}
		w := watch.New(store, conf)
		wg.Go(func() { _ = w.Run(ctx) })
	}
	// change has a member want so much more in its first queue, and waits until all know.
	change := func(member int, gb int64) (out []time.Duration) {
		mu.Lock()
		queue, least, follows = path(member%queues), float64(50+gb-1)/(members*100), 0
		clear(saw)
		mu.Unlock()
		select {
		case <-all: // late publication of the previous change
		default:
		}
		began := time.Now()
		pending[member].Store(gb)
		select {
		case <-all:
		case <-time.After(2 * time.Minute):
			b.Fatal("not all know after two minutes")
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range saw {
			first := slices.IndexFunc(saw[i], func(s sight) bool { return s.version >= follows })
			out = append(out, saw[i][first].at.Sub(began))
		}
		return out
	}
	change(0, 300) // all have begun
	busy, used := ownCPU(), redisCPU(server)
	var waits []time.Duration
	for b.Loop() {
		for i := range 20 {
			time.Sleep(time.Second + time.Duration(i*37)*time.Millisecond)
			waits = append(waits, change(1+i*4, 300)...)
		}
	}
	changes := float64(len(waits) / n)
	b.ReportMetric((ownCPU()-busy)/changes/float64(n)*1000, "ms-own-cpu/proxy")
	b.ReportMetric((redisCPU(server)-used)/changes*1000, "ms-redis-cpu/change")
	slices.Sort(waits)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(waits[len(waits)/2]), "ms-p50")
	b.ReportMetric(ms(waits[len(waits)*99/100]), "ms-p99")
	b.ReportMetric(ms(waits[len(waits)-1]), "ms-last")
	b.ReportMetric(0, "ns/op")
}

// ownCPU is the processor time of this process, in seconds.
func ownCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// redisCPU returns the CPU time of a Redis server.
func redisCPU(server *redistest.Server) (sum float64) {
	client := server.Client() // a client of its own: an idle connection may be closed
	defer client.Close()
	text, _ := client.Info(context.Background(), "cpu").Result()
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			v, _ := strconv.ParseFloat(value, 64)
			sum += v
		}
	}
	return sum
}
