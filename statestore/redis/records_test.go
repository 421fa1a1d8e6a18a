// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/signed"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// A reader that asks for changes ends up with the same records as one that reads all, whatever members do, also
// members from before changes were counted.
func TestPartialReadsFormWhole(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	propertytest.Check(t, func(t *rapid.T) {
		prefix := fmt.Sprintf("w%d", prefixes.Add(1))
		cfg := redis.Config{URL: server.URL(), Prefix: prefix}
		one := func() *redis.Store {
			s, err := redis.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		reader, writer := one(), one()
		defer reader.Close()
		defer writer.Close()
		epochs := map[creel.SubclusterID]int64{}
		reports := map[creel.SubclusterID]*subcluster.Reporter{}
		cuts := map[creel.SubclusterID]int64{} // epochs of processes of today
		wanted := []string{"a"}
		member := func() creel.SubclusterID {
			return creel.SubclusterID(rapid.SampledFrom([]string{"sc-1", "sc-2", "sc-3"}).Draw(t, "member"))
		}
		load := func() string {
			return rapid.SampledFrom([]string{"", `{"totalMB":1}`, `{"totalMB":2}`, `{"totalMB":3}`}).Draw(t, "load")
		}
		queues := func() []byte {
			var l subcluster.Load
			l.Metrics.TotalMB = rapid.Int64Range(0, 2).Draw(t, "total")
			for _, q := range []creel.QueuePath{"root.a", "root.b", "root.x.a", "root.c"} {
				if used := rapid.Int64Range(-1, 2).Draw(t, string(q)); used >= 0 { // else it has no such queue
					l.Queues = append(l.Queues, subcluster.QueueLoad{Queue: q, Used: creel.Resource{MemoryMB: used}})
				}
			}
			text, err := l.JSON()
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		key := func(name string) string { return "{" + prefix + ":c}:" + name }
		must := func(args ...any) {
			for i, a := range args {
				args[i] = fmt.Sprintf("%s", a)
			}
			server.Do(args...)
		}
		counted := func(key, id string) any {
			v, err := server.Try("HGET", key, id)
			if err != nil {
				return err
			}
			return v
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(*rapid.T) {
				id := member()
				epochs[id] += int64(rapid.IntRange(0, 1).Draw(t, "later"))
				if later := epochs[id] + 1; cuts[id] != epochs[id] {
					epochs[id] = later
				}
				cuts[id] = epochs[id]
				_ = writer.Register(t.Context(), subcluster.Member{ID: id, Epoch: epochs[id]})
			},
			"heartbeat": func(*rapid.T) {
				id := member()
				_ = writer.Heartbeat(t.Context(), subcluster.Heartbeat{ID: id, Epoch: epochs[id], Load: []byte(load())})
			},
			"heartbeat with parts": func(*rapid.T) {
				id := member()
				if cuts[id] != epochs[id] {
					return // its process is an older one
				}
				r := reports[id]
				if r == nil || r.Epoch != epochs[id] {
					r = &subcluster.Reporter{ID: id, Epoch: epochs[id]}
					reports[id] = r
				}
				if writer.Heartbeat(t.Context(), r.Next(queues())) != nil {
					r.Lost()
				}
			},
			"other queues": func(*rapid.T) {
				wanted = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID).Draw(t, "queues")
			},
			"drain":      func(*rapid.T) { _ = writer.Drain(t.Context(), member(), load()) },
			"deregister": func(*rapid.T) { id := member(); _ = writer.Deregister(t.Context(), id, epochs[id]) },
			"remove":     func(*rapid.T) { _ = writer.RemoveMember(t.Context(), member()) },
			// Changes by a creel that counted none: it notified its subscribers.
			"older registers": func(*rapid.T) {
				id := member()
				epochs[id]++
				record, err := json.Marshal(subcluster.Member{ID: id, Epoch: epochs[id]})
				if err != nil {
					t.Fatal(err)
				}
				must("HSET", key("m"), id, record)
				must("HSET", key("e"), id, fmt.Sprint(epochs[id]))
				must("HSET", key("b"), id, "17")
				must("HSET", key("r"), id, "17")
				must("HDEL", key("l"), id)
				must("HDEL", key("x"), id)
				reader.ReadAllNext()
			},
			"older heartbeats": func(*rapid.T) {
				id := member()
				if counted(key("v"), string(id)) == counted(key("e"), string(id)) || cuts[id] == epochs[id] {
					return // its process is a newer one
				}
				must("HSET", key("b"), id, fmt.Sprint(rapid.IntRange(1, 99).Draw(t, "at")))
				must("HSET", key("l"), id, load())
			},
			"one of before parts takes over": func(*rapid.T) { // it counts changes, and publishes no count
				id := member()
				epochs[id]++
				record, err := json.Marshal(subcluster.Member{ID: id, Epoch: epochs[id]})
				if err != nil {
					t.Fatal(err)
				}
				must("HSET", key("m"), id, record)
				must("HSET", key("e"), id, fmt.Sprint(epochs[id]))
				must("HSET", key("v"), id, fmt.Sprint(epochs[id]))
				must("HSET", key("l"), id, load())
				must("HDEL", key("x"), id)
				must("HINCRBY", key("v"), "@m", "1")
				must("ZADD", key("lv"), fmt.Sprint(server.Do("HINCRBY", key("v"), "@l", "1")), id)
				reader.ReadAllNext()
			},
			// A creel of before logs of loads counts a change, and nothing of it is in a log.
			"one that keeps no log reports": func(*rapid.T) {
				id := member()
				if epoch, _ := server.Try("HGET", key("e"), string(id)); epoch != fmt.Sprint(epochs[id]) || cuts[id] != epochs[id] {
					return
				}
				reports[id] = nil
				must("HSET", key("l"), id, load())
				must("HDEL", key("h"), id)
				must("ZADD", key("lv"), fmt.Sprint(server.Do("HINCRBY", key("v"), "@l", "1")), id)
			},
			"logs begin anew": func(*rapid.T) { must("HDEL", key("v"), "@b") },
			"logs are lost": func(*rapid.T) {
				names, _ := server.Do("KEYS", key("log:*")).([]any)
				for _, name := range names {
					must("DEL", name)
				}
			},
			"older drains": func(*rapid.T) {
				must("HSET", key("d"), member(), "a reason")
				reader.ReadAllNext()
			},
			"a count is lost": func(*rapid.T) {
				must("DEL", key(rapid.SampledFrom([]string{"v", "lv"}).Draw(t, "which")))
				reader.ReadAllNext() // else it would know so after wholeEvery
			},
			"": func(*rapid.T) {
				if !rapid.Bool().Draw(t, "looks") {
					return // several things happen between two looks
				}
				fresh := one()
				defer fresh.Close()
				whole := func(s *redis.Store) (subcluster.Records, error) { return s.Records(t.Context()) }
				some := func(s *redis.Store) (subcluster.Records, error) { return s.RecordsOf(t.Context(), wanted, true) }
				same(t, reader, fresh, whole)
				all, err := whole(fresh)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range []*redis.Store{reader, fresh} {
					part, err := some(s)
					if err != nil {
						t.Fatal(err)
					}
					samePart(t, all, part, wanted)
				}
			},
		})
	})
}

// oneMember is a store with a member, which reports, and a reader.
func oneMember(t *testing.T) (server *redistest.Server, reader *redis.Store, report func(load []byte)) {
	server = redistest.Start(t)
	writer := open(t, redis.Config{URL: server.URL()})
	if err := writer.Register(t.Context(), subcluster.Member{ID: "sc-1", Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	reporter := subcluster.Reporter{ID: "sc-1", Epoch: 1}
	return server, open(t, redis.Config{URL: server.URL()}), func(load []byte) {
		t.Helper()
		if err := writer.Heartbeat(t.Context(), reporter.Next(load)); err != nil {
			t.Fatal(err)
		}
	}
}

// knows: the reader of queue team1 has the one member's last report.
func knows(t *testing.T, reader *redis.Store, load []byte) {
	t.Helper()
	r, err := reader.RecordsOf(t.Context(), []string{"team1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	want, err := subcluster.ParseLoad(load)
	if err != nil {
		t.Fatal(err)
	}
	known, used := r.Members[0].Parsed, want.Find("root.team1").Used.MemoryMB
	q, _ := known.Queue("root.team1")
	if known.Metrics.TotalMB != want.Metrics.TotalMB || q.Used.MemoryMB != used {
		t.Fatalf("%d MB are known, and of the queue %+v; reported was %s", known.Metrics.TotalMB, q, load)
	}
}

// A reader continues across new generations of logs, and there are only as many logs as one reads.
func TestLogsOfLoadsAreBounded(t *testing.T) {
	t.Parallel()
	server, reader, report := oneMember(t)
	loads := changing(2)
	for n := range 1000 {
		load := bytes.Replace(loads[n%len(loads)], []byte(`"totalMB":67108864`), fmt.Appendf(nil, `"totalMB":%d`, n), 1)
		report(load)
		if n%100 <= 50 { // it is not always there
			knows(t, reader, load)
		}
	}
	names := server.Do("KEYS", "{creel:c}:log:*").([]any)
	if len(names) > 2*3 {
		t.Fatalf("there are the logs %q", names)
	}
	for _, name := range names {
		if ms := server.Do("PTTL", name.(string)).(int64); ms <= 0 {
			t.Fatalf("%s goes in %d ms", name, ms)
		}
	}
}

// A report by an older creel is in no log. A reader of the next report there sees that one is missing.
func TestIncompleteLogIsRejected(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	writer, reader := open(t, redis.Config{URL: server.URL()}), open(t, redis.Config{URL: server.URL()})
	report := func(id creel.SubclusterID, mb int64) {
		load := fmt.Appendf(nil, `{"clusterMetrics":{"totalMB":%d}}`, mb)
		if err := writer.Heartbeat(t.Context(), (&subcluster.Reporter{ID: id, Epoch: 1}).Next(load)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
		if err := writer.Register(t.Context(), subcluster.Member{ID: id, Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		report(id, 1)
	}
	known := func() (mb []int64) {
		r, err := reader.RecordsOf(t.Context(), nil, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Members {
			mb = append(mb, m.Parsed.Metrics.TotalMB)
		}
		return mb
	}
	known()
	report("sc-1", 2)
	if is := known(); !slices.Equal(is, []int64{2, 1}) {
		t.Fatalf("%v are known", is)
	}
	server.Do("HSET", "{creel:c}:l", "sc-1", `{"clusterMetrics":{"totalMB":3}}`)
	server.Do("HDEL", "{creel:c}:h", "sc-1")
	count := fmt.Sprint(server.Do("HINCRBY", "{creel:c}:v", "@l", "1"))
	server.Do("ZADD", "{creel:c}:lv", count, "sc-1")
	report("sc-2", 3)
	if is := known(); !slices.Equal(is, []int64{3, 3}) {
		t.Fatalf("%v are known", is)
	}
}

// If a log of rows was lost while that of heads was not, as by a store that evicts keys, a reader that had read it
// asks whose loads have changed.
func TestLostRowLogIsDetected(t *testing.T) {
	t.Parallel()
	server, reader, report := oneMember(t)
	for n, load := range changing(2)[:8] {
		report(load)
		if n == 5 {
			for _, name := range server.Do("KEYS", "{creel:c}:log:*:team1").([]any) {
				server.Do("DEL", name.(string))
			}
		}
		knows(t, reader, load)
	}
}

// same compares the records of an incremental reader with those of one that reads for the first time.
func same(t *rapid.T, reader, fresh *redis.Store, read func(*redis.Store) (subcluster.Records, error)) {
	got, err := read(reader)
	want, err2 := read(fresh)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	got.Now, want.Now = time.Time{}, time.Time{}
	got.Members, want.Members = unparsed(got.Members), unparsed(want.Members)
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Fatalf("read in turns:\n%s\nread at once:\n%s", g, w)
	}
}

// memberRecord is the text of a member's record in the store.
func memberRecord(t *testing.T, m subcluster.Member) string {
	t.Helper()
	text, err := statestore.EncodeMember(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A record without an epoch beside it was not written by a registration: it has no heartbeat of its own, and gets none
// of another member. It is a problem that readers report.
func TestRecordWithoutEpochIsRejected(t *testing.T) {
	t.Parallel()
	server, reader, report := oneMember(t)
	report([]byte(`{"totalMB":1}`))
	var problems []string
	read := func(s *redis.Store) []subcluster.Record {
		t.Helper()
		records, err := s.Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		problems = records.Problems
		return records.Members
	}
	if read(reader); len(problems) != 0 {
		t.Fatalf("problems are %q", problems)
	}
	server.Do("HSET", "{creel:c}:m", "sc-2", memberRecord(t, subcluster.Member{ID: "sc-2"}))
	reader.ReadAllNext()
	for _, epoch := range []string{"", "x", " 0"} {
		if epoch != "" {
			server.Do("HSET", "{creel:c}:e", "sc-2", epoch)
		}
		for _, s := range []*redis.Store{reader, open(t, redis.Config{URL: server.URL()})} {
			if members := read(s); len(members) != 1 || members[0].ID != "sc-1" ||
				len(problems) != 1 || !strings.Contains(problems[0], "sc-2") {
				t.Errorf("with epoch %q members are %+v, problems %q", epoch, members, problems)
			}
		}
		reader.ReadAllNext()
	}
	// With an epoch it is a member; without a readable place it has its own heartbeat.
	server.Do("HSET", "{creel:c}:e", "sc-2", "0")
	for _, place := range []string{" 0", "x 0", "-1 0", "7 0", "99999999999999999999 0"} {
		server.Do("HSET", "{creel:c}:s", "sc-2", place)
		members := read(open(t, redis.Config{URL: server.URL()}))
		if len(members) != 2 || members[1].Heartbeat.Unix() > 0 {
			t.Errorf("with place %q members are %+v", place, members)
		}
	}
}

// A restored record of an earlier epoch has a valid signature. A reader that starts rejects it, since the store knows
// the later registration.
func TestSignedRecordOfEarlierEpochIsRejected(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	writer := open(t, redis.Config{URL: server.URL()})
	signer, err := subcluster.NewSigner([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	member := func(epoch int64, client string) subcluster.Member {
		return signer.Member(subcluster.Member{ID: "sc-1", Epoch: epoch, Addresses: subcluster.Addresses{Client: client}})
	}
	register := func(m subcluster.Member) error { return writer.Register(t.Context(), m) }
	before, now := member(7, "before:1"), member(8, "now:1")
	for _, m := range []subcluster.Member{before, now} {
		if err := register(m); err != nil {
			t.Fatal(err)
		}
	}
	type sees struct {
		client  string
		refused int64
	}
	look := func(r *signed.Reader) (is sees) {
		t.Helper()
		records, err := r.Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range records.Members {
			is.client = m.Addresses.Client
		}
		is.refused = r.Refused()
		return is
	}
	reader := func(s *redis.Store) *signed.Reader { return signed.New(s, signer, slog.New(slog.DiscardHandler)) }
	known := open(t, redis.Config{URL: server.URL()})
	running := reader(known)
	if is := look(running); is != (sees{"now:1", 0}) {
		t.Fatalf("a reader sees %+v", is)
	}
	server.Do("HSET", "{creel:c}:m", "sc-1", memberRecord(t, before))
	server.Do("HSET", "{creel:c}:e", "sc-1", "7")
	known.ReadAllNext()
	if is := look(running); is != (sees{"now:1", 1}) {
		t.Errorf("a reader that knows the later epoch sees %+v", is)
	}
	if is := look(reader(open(t, redis.Config{URL: server.URL()}))); is != (sees{"", 1}) {
		t.Errorf("a reader that starts sees %+v", is)
	}
	if err := register(before); !errors.Is(err, creel.ErrStale) {
		t.Errorf("the earlier epoch registers: %v", err)
	}
	if err := writer.Heartbeat(t.Context(), subcluster.Heartbeat{ID: "sc-1", Epoch: 7}); !errors.Is(err, creel.ErrStale) {
		t.Errorf("the earlier epoch's heartbeat: %v", err)
	}
	if err := register(now); err != nil {
		t.Fatal(err)
	}
	if is := look(reader(open(t, redis.Config{URL: server.URL()}))); is != (sees{"now:1", 0}) {
		t.Errorf("after the later epoch's registration a reader sees %+v", is)
	}
}

// samePart: a reader of loads in part has the same members, sizes, and rows of its queues as one that reads all.
func samePart(t *rapid.T, all, part subcluster.Records, queues []string) {
	if len(all.Members) != len(part.Members) || fmt.Sprint(all.Problems) != fmt.Sprint(part.Problems) {
		t.Fatalf("%d members, problems %q; of parts %d, %q", len(all.Members), all.Problems,
			len(part.Members), part.Problems)
	}
	for i := range all.Members {
		a, p := all.Members[i], part.Members[i]
		whole, err := subcluster.ParseLoad([]byte(a.Load))
		known, err2 := subcluster.ParseLoad([]byte(p.Load))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		var has, hasPart []string
		of := func(l subcluster.Load) (rows []string) {
			for _, q := range l.Queues {
				if slices.Contains(queues, q.Queue.Leaf()) {
					rows = append(rows, fmt.Sprintf("%+v", q))
				}
			}
			return rows
		}
		has, hasPart = of(whole), of(known)
		if !slices.Equal(has, hasPart) || whole.Metrics.TotalMB != known.Metrics.TotalMB {
			t.Fatalf("%s has %q of %d MB; in part %q of %d MB, read from %q", a.ID, has, whole.Metrics.TotalMB,
				hasPart, known.Metrics.TotalMB, p.Load)
		}
		a.Load, p.Load, a.Parsed, p.Parsed = "", "", nil, nil
		if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", p) {
			t.Fatalf("%+v is in part %+v", a, p)
		}
	}
}

// unparsed copies records without their parsed loads, which are pointers.
func unparsed(records []subcluster.Record) (out []subcluster.Record) {
	for _, r := range records {
		r.Parsed = nil
		out = append(out, r)
	}
	return out
}
