// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
)

// size is a benchmark's size: modest, or from the environment (CREEL_BENCH_APPS=1000000).
func size(name string, modest int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return modest
}

const callers = 64

// race runs n operations by 64 callers, and returns operations a second and the 99th percentile of their durations.
func race(b *testing.B, n int, op func(i int) error) (perSecond float64, p99 time.Duration) {
	b.Helper()
	took := make([]time.Duration, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				at := time.Now()
				if err := op(i); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(at)
			}
		})
	}
	wg.Wait()
	perSecond = float64(n) / time.Since(began).Seconds()
	slices.Sort(took)
	return perSecond, took[n*99/100]
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// Claims of 64 callers through the store, against the same script sent bare in the same run: by 64 callers with a
// connection each, and in pipelines of 32 that two senders have made beforehand. Rounds alternate; medians are
// reported.
func BenchmarkClaims(b *testing.B) {
	s := open(b, redis.Config{URL: redistest.Start(b).URL()})
	bare := s.Client()
	ctx := b.Context()
	if _, _, err := s.Claim(ctx, storetest.App(0), "sc-1", nil); err != nil { // the server knows the script now
		b.Fatal(err)
	}
	n := size("CREEL_BENCH_CLAIMS", 20_000)
	at := 0
	next := func() int { at += n; return at - n }
	for b.Loop() {
		var ours, single, piped, p99s []float64
		for range 3 {
			from := next()
			rate, p99 := race(b, n, func(i int) error {
				_, _, err := s.Claim(ctx, storetest.App(from+i), "sc-1", nil)
				return err
			})
			ours, p99s = append(ours, rate), append(p99s, float64(p99)/1e6)
			from = next()
			rate, _ = race(b, n, func(i int) error {
				return bare.Do(ctx, s.ClaimCommand(storetest.App(from+i), "sc-1")...).Err()
			})
			single = append(single, rate)
			from = next()
			began := time.Now()
			var wg sync.WaitGroup
			for half := range 2 {
				wg.Go(func() {
					const depth = callers / 2
					for i := half * depth; i+depth <= n; i += 2 * depth {
						pipe := bare.Pipeline()
						for k := range depth {
							pipe.Do(ctx, s.ClaimCommand(storetest.App(from+i+k), "sc-1")...)
						}
						if _, err := pipe.Exec(ctx); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			piped = append(piped, float64(n)/time.Since(began).Seconds())
		}
		b.ReportMetric(median(ours), "claims/s")
		b.ReportMetric(median(p99s), "p99-ms")
		b.ReportMetric(median(ours)/median(single), "of-bare-EVALSHA")
		b.ReportMetric(median(ours)/median(piped), "of-bare-pipelines")
		b.ReportMetric(0, "ns/op")
	}
}

// The cost of storing with a claim why the home was chosen, 250 bytes as of three members: claims with and without,
// turn by turn in the same run, by 64 callers and by one. The server's own time for a claim is reported, too.
func BenchmarkPlacement(b *testing.B) {
	server := redistest.Start(b)
	s := open(b, redis.Config{URL: server.URL()})
	ctx, n, at := b.Context(), size("CREEL_BENCH_CLAIMS", 10_000), 0
	kinds := [2][]byte{nil, bytes.Repeat([]byte("p"), 250)}
	for b.Loop() {
		var rates, alone, spent [2][]float64
		for range 5 {
			for kind, placement := range kinds {
				from := at
				at += n
				busy := info(server, "cpu", "used_cpu_user") + info(server, "cpu", "used_cpu_sys")
				rate, _ := race(b, n, func(i int) error {
					_, _, err := s.Claim(ctx, storetest.App(from+i), "sc-1", placement)
					return err
				})
				busy = info(server, "cpu", "used_cpu_user") + info(server, "cpu", "used_cpu_sys") - busy
				rates[kind], spent[kind] = append(rates[kind], rate), append(spent[kind], busy/float64(n)*1e6)
			}
		}
		for i := range 2 * n { // turn by turn: other load of the machine affects both
			began := time.Now()
			if _, _, err := s.Claim(ctx, storetest.App(at+i), "sc-1", kinds[i%2]); err != nil {
				b.Fatal(err)
			}
			alone[i%2] = append(alone[i%2], float64(time.Since(began).Nanoseconds())/1000)
		}
		at += 2 * n
		b.ReportMetric(median(alone[0]), "us/without")
		b.ReportMetric(median(alone[1]), "us/with")
		b.ReportMetric(median(rates[1])/median(rates[0]), "rate-of-without-64")
		b.ReportMetric(median(spent[0]), "server-us/without")
		b.ReportMetric(median(spent[1]), "server-us/with")
		b.ReportMetric(0, "ns/op")
	}
}

// A lookup that is not cached, against a bare GET of a string of the same size
// in the same run, by one caller (medians of single calls) and by 64.
func BenchmarkHome(b *testing.B) {
	s := open(b, redis.Config{URL: redistest.Start(b).URL()})
	bare := s.Client()
	ctx := b.Context()
	const apps = 5000
	for i := range apps {
		if _, _, err := s.Claim(ctx, storetest.App(i), "sc-1", nil); err != nil {
			b.Fatal(err)
		}
		if err := bare.Set(ctx, "bare"+strconv.Itoa(i), "sc-1 68000000", 0).Err(); err != nil {
			b.Fatal(err)
		}
	}
	home := func(i int) error { _, err := s.Home(ctx, storetest.App(i%apps)); return err }
	get := func(i int) error { return bare.Get(ctx, "bare"+strconv.Itoa(i%apps)).Err() }
	timed := func(i int, op func(int) error) float64 {
		began := time.Now()
		if err := op(i); err != nil {
			b.Fatal(err)
		}
		return float64(time.Since(began).Nanoseconds()) / 1000
	}
	for b.Loop() {
		var h1, g1, h64, g64 []float64
		for i := range 10_000 { // turn by turn: other load of the machine affects both
			h1, g1 = append(h1, timed(i, home)), append(g1, timed(i, get))
		}
		for range 5 {
			rate, _ := race(b, 10_000, home)
			h64 = append(h64, rate)
			rate, _ = race(b, 10_000, get)
			g64 = append(g64, rate)
		}
		b.ReportMetric(median(h1), "us/alone")
		b.ReportMetric(median(h1)/median(g1), "of-GET-time-alone")
		b.ReportMetric(median(h64), "homes/s-64")
		b.ReportMetric(median(h64)/median(g64), "of-GET-rate-64")
		b.ReportMetric(0, "ns/op")
	}
}

func info(s *redistest.Server, section, field string) float64 {
	for l := range strings.SplitSeq(s.Do("INFO", section).(string), "\r\n") {
		if v, ok := strings.CutPrefix(l, field+":"); ok {
			f, _ := strconv.ParseFloat(v, 64)
			return f
		}
	}
	return -1
}

// Memory of an application, and the longest that a listing of one home of a
// tenth of them holds the server. Full size: CREEL_BENCH_APPS=1000000.
func BenchmarkMemoryAndListing(b *testing.B) {
	server := redistest.Start(b)
	s := open(b, redis.Config{URL: server.URL()})
	ctx := b.Context()
	if err := s.CheckSchema(ctx); err != nil {
		b.Fatal(err)
	}
	n := size("CREEL_BENCH_APPS", 50_000)
	before := info(server, "memory", "used_memory")
	race(b, n, func(i int) error {
		m := creel.SubclusterID(fmt.Sprintf("subcluster-%02d", i%10))
		_, _, err := s.Claim(ctx, storetest.App(i), m, nil)
		return err
	})
	each := (info(server, "memory", "used_memory") - before) / float64(n)
	// The server reports how long each command held it, by the wall clock. Other load of the machine adds to one
	// listing or another; a command's own time is in all. So the least of the longest blocks, and the median of the
	// long commands (those that read the index), are reported too.
	var scans []float64
	longest := func() (block, took time.Duration) {
		server.Do("CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "300000")
		server.Do("SLOWLOG", "RESET")
		lines := 0
		began := time.Now()
		for cursor := ""; ; {
			page, next, err := s.HomesAt(ctx, "subcluster-03", cursor, statestore.MaxPage)
			if err != nil {
				b.Fatal(err)
			}
			lines += len(page)
			if cursor = next; next == "" {
				break
			}
		}
		took = time.Since(began)
		server.Do("CONFIG", "SET", "slowlog-log-slower-than", "-1")
		var worst int64
		for _, e := range server.Do("SLOWLOG", "GET", "-1").([]any) {
			line := e.([]any)
			command := line[3].([]any)[0]
			if command == "SLOWLOG" || command == "CONFIG" {
				continue // ours: emptying the log takes longer than any page
			}
			worst = max(worst, line[2].(int64))
			if command == "ZRANGEBYLEX" {
				scans = append(scans, float64(line[2].(int64))/1000)
			}
		}
		if lines != n/10 {
			b.Fatalf("%d lines, want %d", lines, n/10)
		}
		return time.Duration(worst) * time.Microsecond, took
	}
	for b.Loop() {
		var blocks, times []float64
		for range 7 {
			block, took := longest()
			blocks, times = append(
				blocks,
				float64(block.Microseconds())/1000,
			), append(
				times,
				float64(took.Milliseconds()),
			)
		}
		b.ReportMetric(each, "bytes/application")
		b.ReportMetric(median(blocks), "ms-longest-block")
		b.ReportMetric(slices.Min(blocks), "ms-longest-block-least")
		b.ReportMetric(median(scans), "ms-index-read-median")
		b.ReportMetric(scans[len(scans)*99/100], "ms-index-read-p99")
		b.ReportMetric(median(times)*100_000/float64(n/10), "ms/100000-lines")
		b.ReportMetric(0, "ns/op")
	}
}

// From the write of a policy to the view of 1,000 subscribers, each with a
// connection of its own. Polls are too rare to help.
func BenchmarkPolicyChange(b *testing.B) {
	server := redistest.Start(b)
	writer := open(b, redis.Config{URL: server.URL()})
	n := size("CREEL_BENCH_SUBSCRIBERS", 1000)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	seen := make(chan int64, n*64)
	ready := make(chan struct{}, n)
	for range n {
		s := open(b, redis.Config{URL: server.URL(), MaxWait: time.Hour, Timeout: 30 * time.Second})
		w := watch.New(
			s,
			watch.Config{
				Poll:    time.Hour,
				Timeout: time.Minute,
				OnView:  func(v *subcluster.View) { seen <- v.Policies.Version },
				OnChange: func(c statestore.Change) {
					if c.Kind == statestore.ChangeResync {
						ready <- struct{}{}
					}
				},
			},
		)
		wg.Go(func() { _ = w.Run(ctx) })
	}
	for range n {
		<-ready
	}
	var version int64
	for b.Loop() {
		began := time.Now()
		p, err := writer.PutPolicy(
			ctx,
			statestore.PolicyWrite{
				Queue:    "root",
				Expect:   version,
				Document: []byte(`{"weights":{"sc-1":1}}`),
				Comment:  strconv.FormatInt(version, 10),
			},
		)
		if err != nil {
			b.Fatal(err)
		}
		version = p.Version
		took := make([]time.Duration, 0, n)
		for len(took) < n {
			if v := <-seen; v == version {
				took = append(took, time.Since(began))
			}
		}
		b.ReportMetric(float64(took[n*99/100].Microseconds())/1000, "ms-p99")
		b.ReportMetric(float64(took[n-1].Microseconds())/1000, "ms-last")
		b.ReportMetric(0, "ns/op")
	}
	cancel()
	wg.Wait()
}

// The share of one core that the heartbeats of 100 members a second cost Redis and
// their sender, from the processor time of many of them.
func BenchmarkHeartbeats(b *testing.B) {
	server := redistest.Start(b)
	s := open(b, redis.Config{URL: server.URL()})
	ctx := b.Context()
	load := subcluster.Load{}
	for q := range 20 {
		load.Queues = append(
			load.Queues,
			subcluster.QueueLoad{
				Queue: creel.QueuePath(fmt.Sprintf("root.team%d", q)),
				Free:  creel.Resource{MemoryMB: 1 << 20, VCores: 100},
			},
		)
	}
	text, err := load.JSON()
	if err != nil {
		b.Fatal(err)
	}
	const members = 100
	id := func(i int) creel.SubclusterID { return creel.SubclusterID(fmt.Sprintf("sc-%d", i)) }
	for i := range members {
		if err := s.Register(ctx, subcluster.Member{ID: id(i)}); err != nil {
			b.Fatal(err)
		}
	}
	cpu := func() float64 { return info(server, "cpu", "used_cpu_user") + info(server, "cpu", "used_cpu_sys") }
	for b.Loop() {
		const rounds = 20
		redisBefore, ownBefore := cpu(), ownCPU()
		for range rounds {
			var wg sync.WaitGroup
			for i := range members {
				wg.Go(func() {
					if err := s.Heartbeat(ctx, subcluster.Heartbeat{ID: id(i), Load: text}); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
		}
		b.ReportMetric((cpu()-redisBefore)/rounds*100, "%core-redis")
		b.ReportMetric((ownCPU()-ownBefore)/rounds*100, "%core-senders")
		b.ReportMetric(float64(len(text)), "bytes/heartbeat")
		b.ReportMetric(0, "ns/op")
	}
}

// The share of one core that 5,000 daemons cost Redis which keep their records each 10
// seconds, as they are, and one look at all of them, from the processor time of many.
func BenchmarkDaemons(b *testing.B) {
	server := redistest.Start(b)
	s := open(b, redis.Config{URL: server.URL()})
	const daemons, senders, every = 5000, 8, 10 // seconds
	keep := func() {
		var all sync.WaitGroup
		for part := range senders {
			all.Go(func() {
				for i := part; i < daemons; i += senders {
					d := statestore.Daemon{
						Kind: "proxy", Name: fmt.Sprintf("node%d.example.com/4711", i), Host: fmt.Sprintf("node%d.example.com", i),
						PID: 4711, Version: "v1.2.3", Started: time.UnixMilli(1700000000000),
						Addresses: map[string]string{"proxy": fmt.Sprintf("node%d.example.com:8049", i), "web": "0.0.0.0:8099"},
					}
					if err := s.KeepDaemon(b.Context(), d, 30*time.Second); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	keep()
	busy := func() float64 { return info(server, "cpu", "used_cpu_user") + info(server, "cpu", "used_cpu_sys") }
	for b.Loop() {
		before := busy()
		keep()
		after := busy()
		looks, seen := 5, 0
		for range looks {
			for cursor, more := "", true; more; more = cursor != "" {
				page, next, err := s.Daemons(b.Context(), cursor, statestore.MaxPage)
				if err != nil {
					b.Fatal(err)
				}
				seen, cursor = seen+len(page), next
			}
		}
		if seen != looks*daemons {
			b.Fatalf("%d daemons were listed in %d looks", seen, looks)
		}
		b.ReportMetric((after-before)/every*100, "%core-redis")
		b.ReportMetric((after-before)/daemons*1e6, "us-redis/record")
		b.ReportMetric((busy()-after)/float64(looks)*1e3, "ms-redis/look")
		b.ReportMetric(0, "ns/op")
	}
}

// The cost for Redis and the reader when a router or proxy checks 100 members. Cases: all of them; the changes when
// only heartbeats came; the changes when each tenth member has another load. For loads in part, two queues of 300:
// two of three members have another load, as between two checks. Also the heartbeat of a member with another load.
// Turn by turn, in one run.
func BenchmarkRecords(b *testing.B) {
	server := redistest.Start(b)
	writer := open(b, redis.Config{URL: server.URL()})
	reader := open(b, redis.Config{URL: server.URL()})
	ctx := b.Context()
	const members = 100
	loads := changing(300)
	id := func(i int) creel.SubclusterID { return creel.SubclusterID(fmt.Sprintf("sc-%d", i)) }
	reporters := make([]subcluster.Reporter, members)
	report := func(i, used int) {
		reporters[i].ID, reporters[i].Epoch = id(i), 1
		if err := writer.Heartbeat(ctx, reporters[i].Next(loads[used%len(loads)])); err != nil {
			b.Fatal(err)
		}
	}
	for i := range members {
		if err := writer.Register(ctx, subcluster.Member{ID: id(i), Epoch: 1}); err != nil {
			b.Fatal(err)
		}
		report(i, 0)
	}
	var view *subcluster.View
	look := func() {
		records, err := reader.Records(ctx)
		if err != nil {
			b.Fatal(err)
		}
		view = subcluster.Build(view, records, records.Now)
	}
	parts := redis.Looker{Store: reader, Queues: []string{"team3", "team17"}}
	lookInPart := func() {
		if _, _, err := parts.Look(ctx, true); err != nil {
			b.Fatal(err)
		}
	}
	busy := func() float64 { return info(server, "cpu", "used_cpu_user") + info(server, "cpu", "used_cpu_sys") }
	type cost struct{ redis, own float64 }
	spent := map[string]cost{}
	measure := func(kind string, before, look func()) {
		before()
		r, o := busy(), ownCPU()
		look()
		spent[kind] = cost{spent[kind].redis + (busy()-r)*1e6, spent[kind].own + (ownCPU()-o)*1e6}
	}
	n := 0
	for b.Loop() {
		look()
		lookInPart()
		clear(spent)
		const times, often = 20, 100
		for range times {
			n++
			measure("none", func() {}, func() {}) // the control: the cost of asking for the times
			measure("all", reader.ReadAllNext, look)
			measure("heartbeats", func() {}, func() {
				for range often { // else the control is as large as the measured work
					look()
				}
			})
			measure("a-tenth", func() {
				for i := range members / 10 {
					report((10*i+n)%members, n)
				}
			}, look)
			measure("parts-of-heartbeats", lookInPart, func() {
				for range often {
					lookInPart()
				}
			})
			measure("report", func() {}, func() {
				for i := range members * 2 / 3 {
					report(i, n+1)
				}
			})
			before := parts
			measure("parts-of-two-thirds", func() {}, func() {
				for range often / 4 { // the reader's old state is put back: each check fetches all of it
					parts = before
					lookInPart()
				}
			})
			measure("parts-of-all", func() {}, func() {
				for range often / 4 {
					parts = redis.Looker{Store: reader, Queues: parts.Queues}
					lookInPart()
				}
			})
		}
		control := spent["none"]
		delete(spent, "none")
		for kind, c := range spent {
			looks := float64(times)
			switch kind {
			case "heartbeats", "parts-of-heartbeats":
				looks *= often
			case "parts-of-two-thirds", "parts-of-all":
				looks *= often / 4
			case "report":
				looks *= members * 2 / 3
			}
			b.ReportMetric((c.redis-control.redis)/looks, kind+"-redis-us")
			b.ReportMetric((c.own-control.own)/looks, kind+"-reader-us")
		}
		b.ReportMetric(0, "ns/op")
	}
}

// The cost that proxies on 5,000 nodes cause for the store of 100 members with 300 queues, where each member reports
// another load in all of its queues with each heartbeat. Measured: the share of a core that Redis needs, and when 99
// percent of the proxies know of an announced change (a drain, say).
//
// Each has a connection to read by and one to listen on, and renews its daemon record (over one connection for all,
// since a process may have no more). One in fifty is a real Watcher of two queues; the others send the same commands,
// and do not parse the answers. No proxy knows the members at first: how long that takes is reported, too.
func BenchmarkWatchers(b *testing.B) {
	const members, queues, every, poll, realOnes = 100, 300, 10 * time.Second / 3, 2 * time.Second, 50
	n := size("CREEL_BENCH_WATCHERS", 5000)
	server := redistest.Start(b, "--maxclients", strconv.Itoa(3*n+2000))
	writer := open(b, redis.Config{URL: server.URL(), MaxWait: time.Minute, Timeout: 30 * time.Second})
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	loads := changing(queues)
	id := func(i int) creel.SubclusterID { return creel.SubclusterID(fmt.Sprintf("sc-%d", i)) }
	for i := range members {
		m := subcluster.Member{ID: id(i), Epoch: 1, Version: "creel of a benchmark", Addresses: subcluster.Addresses{
			Client: "rm.example.com:8032", Scheduler: "rm.example.com:8030", Admin: "rm.example.com:8033",
			Tracker: "rm.example.com:8031", Web: "rm.example.com:8088", Proxy: "rm.example.com:8049"}}
		if err := writer.Register(ctx, m); err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			r := &subcluster.Reporter{ID: id(i), Epoch: 1}
			sleep(ctx, time.Duration(i)*every/members)
			for n := i; ctx.Err() == nil; n++ {
				if err := writer.Heartbeat(ctx, r.Next(loads[n%len(loads)])); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				sleep(ctx, every)
			}
		})
	}
	var known, looks, bytes atomic.Int64 // proxies that know all of the members; bytes read
	var mu sync.Mutex
	seen := map[int64][]time.Time{} // of each change, when it was known
	knows := make([]int64, n)
	learnt := func(i int, changes int64) {
		mu.Lock()
		defer mu.Unlock()
		if knows[i] == 0 {
			known.Add(1)
			knows[i] = changes
		}
		for ; knows[i] < changes; knows[i]++ {
			seen[knows[i]+1] = append(seen[knows[i]+1], time.Now())
		}
	}
	began := time.Now()
	for i := range n {
		s := open(b, redis.Config{URL: server.URL(), MaxWait: time.Hour, Timeout: 30 * time.Second})
		wg.Go(func() { keepRecord(ctx, b, writer, i) })
		mine := []string{fmt.Sprintf("team%d", i%queues), fmt.Sprintf("team%d", (7*i+1)%queues)}
		if i%realOnes == 0 {
			drained := int64(members)
			w := watch.New(s, watch.Config{
				Poll: poll, Timeout: time.Minute, Queues: func() []string { return mine },
				OnView: func(v *subcluster.View) {
					for _, m := range v.Members {
						if at, ok := strings.CutPrefix(m.Draining, "change "); ok {
							c, _ := strconv.ParseInt(at, 10, 64)
							drained = max(drained, c)
						}
					}
					if len(v.Members) == members {
						learnt(i, drained)
					}
				},
			})
			wg.Go(func() { _ = w.Run(ctx) })
			continue
		}
		kick := make(chan struct{}, 1)
		wg.Go(func() {
			_ = s.Watch(ctx, func(c statestore.Change) {
				select {
				case kick <- struct{}{}:
				default:
				}
			})
		})
		wg.Go(func() {
			l := redis.Looker{Store: s, Queues: mine}
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			wait := time.NewTimer(0)
			defer wait.Stop()
			for ctx.Err() == nil {
				loads := false
				select {
				case <-kick:
				case <-wait.C:
					loads = true
				case <-ctx.Done():
				}
				changes, came, err := l.Look(ctx, loads)
				if err != nil {
					if ctx.Err() == nil {
						b.Error(err)
					}
					return
				}
				if loads {
					wait.Reset(poll - poll/5 + time.Duration(rnd.Int64N(int64(2*poll/5))))
					looks.Add(1)
					bytes.Add(int64(came))
				}
				learnt(i, changes)
			}
		})
	}
	for known.Load() < int64(n) && time.Since(began) < 5*time.Minute {
		sleep(ctx, 10*time.Millisecond)
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-until-all-know")
	sleep(ctx, 5*time.Second)
	busy := func() float64 { return info(server, "cpu", "used_cpu_user") + info(server, "cpu", "used_cpu_sys") }
	for b.Loop() {
		const long = 20 * time.Second
		cpu, own, at, read, came := busy(), ownCPU(), time.Now(), looks.Load(), bytes.Load()
		sleep(ctx, long)
		took := time.Since(at).Seconds()
		b.ReportMetric(100*(busy()-cpu)/took, "%core-redis")
		b.ReportMetric(100*(ownCPU()-own)/took, "%core-watchers")
		b.ReportMetric(float64(looks.Load()-read)/took, "looks/s")
		b.ReportMetric(float64(bytes.Load()-came)/float64(looks.Load()-read), "bytes/look")
		b.ReportMetric((busy()-cpu)/float64(looks.Load()-read)*1e6, "us-redis/look")
		var waits []time.Duration
		cpu, at = busy(), time.Now()
		for range 6 {
			changed := time.Now()
			mu.Lock()
			next := knows[1] + 1 // the looker before it has had time to know of all
			mu.Unlock()
			if err := writer.Drain(ctx, id(int(next)%members), fmt.Sprintf("change %d", next)); err != nil {
				b.Fatal(err)
			}
			sleep(ctx, 5*time.Second)
			mu.Lock()
			if len(seen[next]) < n {
				b.Errorf("%d of %d know of a change after 5 s", len(seen[next]), n)
			}
			for _, t := range seen[next] {
				waits = append(waits, t.Sub(changed))
			}
			delete(seen, next)
			mu.Unlock()
		}
		b.ReportMetric(100*(busy()-cpu)/time.Since(at).Seconds(), "%core-redis-with-a-change-each-5s")
		slices.Sort(waits)
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "ms-p50")
		b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "ms-p99")
		b.ReportMetric(0, "ns/op")
	}
}

// keepRecord keeps the record of a daemon as daemons do (app/daemon/role), until ctx ends.
func keepRecord(ctx context.Context, b *testing.B, s *redis.Store, i int) {
	const every = 10 * time.Second
	d := statestore.Daemon{
		Kind: "proxy", Name: fmt.Sprintf("node%d.example.com:8049", i), Host: fmt.Sprintf("node%d.example.com", i),
		PID: i + 1, Version: "creel of a benchmark", Started: time.Now().UTC(),
		Addresses: map[string]string{"client": fmt.Sprintf("node%d.example.com:8049", i)},
	}
	rnd := rand.New(rand.NewPCG(uint64(i), 2))
	for sleep(ctx, time.Duration(rnd.Int64N(int64(every)))); ctx.Err() == nil; sleep(ctx, every) {
		if err := s.KeepDaemon(ctx, d, 3*every); err != nil && ctx.Err() == nil {
			b.Error(err)
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// changing are loads of which each differs from the next in all queues.
func changing(queues int) (loads [][]byte) {
	for used := range 16 {
		l := subcluster.Load{BeginsAgain: true, Metrics: subcluster.ClusterMetrics{
			TotalMB: 64 << 20, TotalVirtualCores: 16 << 10, AvailableMB: 32<<20 + int64(used), AvailableVirtualCores: 8 << 10,
			AllocatedMB: 32<<20 - int64(used), AllocatedVirtualCores: 8 << 10, AppsRunning: 3000, ActiveNodes: 1000,
		}}
		for q := range queues {
			size := creel.Resource{MemoryMB: 1 << 20, VCores: 100}
			used := creel.Resource{MemoryMB: 1<<10 + int64(used), VCores: 1}
			l.Queues = append(l.Queues, subcluster.QueueLoad{
				Queue: creel.QueuePath(fmt.Sprintf("root.team%d", q)), Capacity: size, Used: used, Free: size.Sub(used),
			})
		}
		text, err := l.JSON()
		if err != nil {
			panic(err)
		}
		loads = append(loads, text)
	}
	return loads
}

// The cost of losing nothing: claims of 64 callers with each setting that bounds or closes the loss, against none in
// the same run. Rounds alternate; medians are reported.
func BenchmarkDurability(b *testing.B) {
	primary := redistest.Start(b)
	redistest.Start(b, "--replicaof", "127.0.0.1 "+strconv.Itoa(primary.Port()))
	redistest.AwaitReplica(primary)
	logged := func(fsync string) string {
		return redistest.Start(b, "--appendonly", "yes", "--appendfsync", fsync).URL()
	}
	settings := []struct {
		name  string
		store *redis.Store
		rates []float64
		p99s  []float64
	}{
		{name: "none", store: open(b, redis.Config{URL: redistest.Start(b).URL()})},
		{name: "replica", store: open(b, redis.Config{URL: primary.URL()})},
		{name: "wait1", store: open(b, redis.Config{URL: primary.URL(), Wait: 1})},
		{name: "everysec", store: open(b, redis.Config{URL: logged("everysec")})},
		{name: "always", store: open(b, redis.Config{URL: logged("always")})},
	}
	n := size("CREEL_BENCH_CLAIMS", 10_000)
	at := 0
	for b.Loop() {
		for range 5 {
			for i := range settings {
				from, s := at, &settings[i]
				at += n
				rate, p99 := race(b, n, func(i int) error {
					_, _, err := s.store.Claim(b.Context(), storetest.App(from+i), "sc-1", nil)
					return err
				})
				s.rates, s.p99s = append(s.rates, rate), append(s.p99s, float64(p99)/1e6)
			}
		}
		for i := range settings {
			s := &settings[i]
			b.ReportMetric(median(s.rates), "claims/s-"+s.name)
			b.ReportMetric(median(s.p99s), "p99-ms-"+s.name)
			if i > 0 {
				b.ReportMetric(median(s.rates)/median(settings[0].rates), "of-none-"+s.name)
			}
		}
		b.ReportMetric(0, "ns/op")
	}
}
