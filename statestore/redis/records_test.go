// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// A reader that asks for what has changed knows what one knows that reads all,
// whatever members do, also those of before changes were counted.
func TestWhatIsReadInPartsIsTheWhole(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rapid.Check(t, func(t *rapid.T) {
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
		member := func() creel.SubclusterID {
			return creel.SubclusterID(rapid.SampledFrom([]string{"sc-1", "sc-2", "sc-3"}).Draw(t, "member"))
		}
		load := func() string {
			return rapid.SampledFrom([]string{"", `{"a":1}`, `{"a":2}`, `{"a":3}`}).Draw(t, "load")
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
				_ = writer.Register(t.Context(), subcluster.Member{ID: id, Epoch: epochs[id]})
			},
			"heartbeat": func(*rapid.T) {
				id := member()
				_ = writer.Heartbeat(t.Context(), subcluster.Heartbeat{ID: id, Epoch: epochs[id], Load: []byte(load())})
			},
			"drain":      func(*rapid.T) { _ = writer.Drain(t.Context(), member(), load()) },
			"deregister": func(*rapid.T) { id := member(); _ = writer.Deregister(t.Context(), id, epochs[id]) },
			"remove":     func(*rapid.T) { _ = writer.RemoveMember(t.Context(), member()) },
			// What a creel did that counted nothing: it told its subscribers.
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
				if counted(key("v"), string(id)) == counted(key("e"), string(id)) {
					return // its process is a newer one
				}
				must("HSET", key("b"), id, fmt.Sprint(rapid.IntRange(1, 99).Draw(t, "at")))
				must("HSET", key("l"), id, load())
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
				got, err := reader.Records(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				fresh := one()
				defer fresh.Close()
				want, err := fresh.Records(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got.Now, want.Now = time.Time{}, time.Time{}
				got.Members, want.Members = unparsed(got.Members), unparsed(want.Members)
				if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
					t.Fatalf("read in parts:\n%s\nread as a whole:\n%s", g, w)
				}
			},
		})
	})
}

// unparsed copies records without what their loads were read as, which is an address.
func unparsed(records []subcluster.Record) (out []subcluster.Record) {
	for _, r := range records {
		r.Parsed = nil
		out = append(out, r)
	}
	return out
}
