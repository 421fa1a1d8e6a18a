// SPDX-License-Identifier: Apache-2.0

package subcluster_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// store handles a heartbeat's load as a store does.
type store struct {
	load  string
	parts map[string]string
}

func (s *store) take(b subcluster.Heartbeat) {
	if b.Load == nil {
		return
	}
	if b.AllParts {
		s.parts = map[string]string{}
	}
	s.load = string(b.Load)
	for _, p := range b.Parts {
		s.parts[p.Leaf] = string(p.Text)
	}
}

func (s *store) read(queues []string) string {
	texts := []string{s.parts[""]}
	for _, q := range queues {
		if rows, ok := s.parts[q]; ok {
			texts = append(texts, rows)
		}
	}
	return subcluster.JoinParts(texts)
}

// For any reports and any lost heartbeats, a reader of some queues has the same data of these, of the member's size,
// labels and resource types as one that reads all; and accepts it under the cluster's secret.
func TestPartialLoadMatchesWhole(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		r := &subcluster.Reporter{ID: "sc-1", Epoch: 7, Signer: signer(t, "0123456789abcdef")}
		member := r.Signer.Member(subcluster.Member{ID: "sc-1", Epoch: 7})
		believer := subcluster.NewBeliever(r.Signer)
		has := &store{}
		paths := []creel.QueuePath{"root.a", "root.b", "root.x.a", "root.b.c"}
		for range rapid.IntRange(1, 12).Draw(t, "heartbeats") {
			var l subcluster.Load
			l.Metrics.AvailableMB = rapid.Int64Range(0, 1).Draw(t, "available")
			l.Nodes = rapid.SampledFrom([]string{"", "digest"}).Draw(t, "nodes")
			l.Makes = rapid.SampledFrom([][]creel.QueuePath{nil, {"root.b", "root.x"}}).Draw(t, "makes")
			for _, q := range paths {
				for _, label := range []string{"", "gpu"} {
					size := rapid.Int64Range(-1, 1).Draw(t, string(q)+label)
					if size >= 0 {
						row := subcluster.QueueLoad{
							Queue: q, Label: label, Capacity: creel.Resource{MemoryMB: 5}.With("fpga", size),
						}
						if size > 0 {
							most, each := creel.NewResource(9, 2), creel.NewResource(4, 1)
							row.Most, row.EachUser, row.Opportunistic = &most, &each, each
							row.MostOpportunistic = new(7)
							row.Users = []subcluster.UserLoad{{User: "ann", Used: each, Pending: most, Most: each}}
						}
						l.Queues = append(l.Queues, row)
					}
				}
			}
			text, err := l.JSON()
			if err != nil {
				t.Fatal(err)
			}
			b := r.Next(text)
			if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
				r.Lost()
				if rapid.Bool().Draw(t, "on its way there") {
					continue
				}
			}
			has.take(b)
			queues := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID).Draw(t, "queues")
			read := has.read(queues)
			records, refused := believer.Believe(subcluster.Records{Members: []subcluster.Record{{Member: member, Load: read}}})
			if len(refused) > 0 || len(records.Members) != 1 || records.Members[0].Load != read {
				t.Fatalf("%q is not believed", read)
			}
			whole, err := subcluster.ParseLoad([]byte(has.load))
			part, err2 := subcluster.ParseLoad([]byte(read))
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if w, p := rows(whole, queues), rows(part, queues); !slices.Equal(w, p) ||
				whole.Metrics.Available().MemoryMB != part.Metrics.Available().MemoryMB || whole.Nodes != part.Nodes ||
				!slices.Equal(l.Makes, whole.Makes) || !slices.Equal(whole.Makes, part.Makes) {
				t.Fatalf("all of it says %q of them, and of the member %+v; the part %q, %+v", w, whole, p, part)
			}
			if w, p := kinds(whole), kinds(part); !slices.Equal(w, p) {
				t.Fatalf("it has %q, in part %q", w, p)
			}
		}
	})
}

func rows(l subcluster.Load, leaves []string) (out []string) {
	for _, q := range l.Queues {
		if slices.Contains(leaves, q.Queue.Leaf()) {
			text := ""
			for _, limit := range []**creel.Resource{&q.Most, &q.EachUser} {
				if *limit != nil {
					text, *limit = text+" "+(*limit).String(), nil
				}
			}
			if most := q.MostOpportunistic; most != nil {
				text, q.MostOpportunistic = text+" "+strconv.Itoa(*most), nil
			}
			out = append(out, fmt.Sprintf("%+v", q)+text)
		}
	}
	return out
}

// kinds are the labels of a member, and which further types it has there.
func kinds(l subcluster.Load) (out []string) {
	for _, q := range l.Queues {
		if kind := fmt.Sprintf("%s: %v", q.Label, q.Capacity.Get("fpga") > 0); !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	for _, label := range []string{"", "gpu"} { // a queue that has none is skipped where another has some
		if slices.Contains(out, label+": true") {
			out = slices.DeleteFunc(out, func(k string) bool { return k == label+": false" })
		}
	}
	return out
}

// Rows and heads that were replaced by older ones, by others', or by unsigned ones are refused, and the ones accepted
// before stay.
func TestPartsOfEarlierHeartbeatsAreNotBelievedAgain(t *testing.T) {
	r := &subcluster.Reporter{ID: "sc-1", Epoch: 7, Signer: signer(t, "0123456789abcdef")}
	other := &subcluster.Reporter{ID: "sc-2", Epoch: 7, Signer: r.Signer}
	member := r.Signer.Member(subcluster.Member{ID: "sc-1", Epoch: 7})
	believer := subcluster.NewBeliever(r.Signer)
	load := func(used int) []byte {
		return fmt.Appendf(nil, `{"clusterMetrics":{"totalMB":9},"creel":{"queues":[{"queue":"root.a","used":{"memory":%d}}]}}`, used)
	}
	var old, now, strange store
	old.take(r.Next(load(1)))
	now.take(r.Next(load(1))) // nothing
	now.parts = map[string]string{}
	r.Lost()
	now.take(r.Next(load(2)))
	strange.take(other.Next(load(3)))
	believed := func(load string) bool {
		records, refused := believer.Believe(subcluster.Records{Members: []subcluster.Record{{Member: member, Load: load}}})
		return len(refused) == 0 && records.Members[0].Load == load
	}
	if !believed(now.read([]string{"a"})) {
		t.Fatal("what it reported is refused")
	}
	for name, load := range map[string]string{
		"an old head":                subcluster.JoinParts([]string{old.parts[""], now.parts["a"]}),
		"old rows":                   subcluster.JoinParts([]string{now.parts[""], old.parts["a"]}),
		"an old whole":               old.load,
		"another's rows":             subcluster.JoinParts([]string{now.parts[""], strange.parts["a"]}),
		"rows in the place of heads": subcluster.JoinParts([]string{now.parts["a"]}),
		"a head twice":               subcluster.JoinParts([]string{now.parts[""], now.parts[""]}),
		"rows that nobody signed":    subcluster.JoinParts([]string{now.parts[""], `{"leaf":"a"}`}),
		"a whole in parts' place":    subcluster.JoinParts([]string{now.load}),
		"a part in a whole's place":  strings.TrimPrefix(now.read(nil), "\x1e"),
	} {
		if believed(load) {
			t.Errorf("%s: believed", name)
		}
	}
	if !believed(now.read(nil)) || !believed(now.load) {
		t.Error("less of it, or all, is refused")
	}
}

// A registration's load has no queues, however many the member has.
func TestAMemberRegistersWithoutQueues(t *testing.T) {
	load := []byte(`{"clusterMetrics":{"totalMB":9,"lostNodes":1},"creel":{"nodes":"x","queues":[{"queue":"root.a"}]}}`)
	l, err := subcluster.ParseLoad(subcluster.WithoutQueues(load))
	if err != nil || l.Metrics.TotalMB != 9 || l.Metrics.LostNodes != 1 || l.Nodes != "x" || len(l.Queues) > 0 {
		t.Errorf("it is %+v, %v", l, err)
	}
	for _, same := range []string{"", "{}", `{"totalMB":3}`, "no load"} {
		if got := string(subcluster.WithoutQueues([]byte(same))); got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
}

// Data that is not a load is not cut, and does not panic.
func FuzzCut(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(`{"clusterMetrics":{"totalMB":9},"creel":{"queues":[{"queue":"root.a","label":"x"}]}}`))
	f.Add([]byte(`{"totalMB":"9"}`))
	f.Add([]byte("\x1e{}\x1e{}"))
	f.Add([]byte(`{"cLusterMetrics":{"totalMB":9},"crEel":{"queues":[{"queue":"root.a"}]}}`))
	f.Add([]byte(`{"creel":{"queues":[{"queue":"root.a"}]},"creel":{"nodes":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := subcluster.ParseLoad(data)
		parts, err2 := subcluster.Cut(data)
		if err != nil || err2 != nil {
			return
		}
		var texts []string
		for _, p := range parts {
			texts = append(texts, string(p.Text))
		}
		joined, err := subcluster.ParseLoad([]byte(subcluster.JoinParts(texts)))
		if err != nil {
			t.Fatalf("the parts of %q cannot be read: %v", data, err)
		}
		if joined.Metrics.Total().MemoryMB != whole.Metrics.Total().MemoryMB || len(joined.Queues) < len(whole.Queues) {
			t.Fatalf("%q is in parts %+v", data, joined)
		}
	})
}

// What queues waited for is for routers: proxies read heads and rows.
func TestPartsHaveNoWaitsOfQueues(t *testing.T) {
	load := subcluster.Load{
		Queues:     []subcluster.QueueLoad{{Queue: "root"}, {Queue: "root.a"}},
		Waits:      []uint64{3, 4},
		QueueWaits: []subcluster.QueueWaits{{Queue: "root.a", Counts: []uint64{3, 4}}},
	}
	text, err := load.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := subcluster.ParseLoad(text); err != nil || !reflect.DeepEqual(back.QueueWaits, load.QueueWaits) {
		t.Errorf("%v: %+v", err, back.QueueWaits)
	}
	parts, err := subcluster.Cut(text)
	if err != nil || len(parts) != 3 {
		t.Fatalf("%v: %d parts", err, len(parts))
	}
	for _, p := range parts {
		if strings.Contains(strings.ToLower(string(p.Text)), "waits") {
			t.Errorf("the part %q has %s", p.Leaf, p.Text)
		}
	}
}
