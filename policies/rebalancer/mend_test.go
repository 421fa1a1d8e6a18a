// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// queueConf reads "root.queues=a,b root.a.capacity=30 ...".
func queueConf(text string) QueueConf {
	out := QueueConf{}
	for _, f := range strings.Fields(text) {
		key, value, _ := strings.Cut(f, "=")
		out[capacityPrefix+key] = value
	}
	return out
}

// member returns one of a size, whose queues have their configured parts of the parent.
func member(id string, size creel.Resource, conf QueueConf) subcluster.Status {
	s := subcluster.Status{
		Member: subcluster.Member{ID: creel.SubclusterID(id), Version: "creel"}, State: subcluster.StateActive,
	}
	s.Load.Metrics.TotalMB, s.Load.Metrics.TotalVirtualCores = size.MemoryMB, size.VCores
	tell(&s, "", size, conf)
	return s
}

// tell makes a member report the queues that may use some nodes.
func tell(s *subcluster.Status, label string, size creel.Resource, conf QueueConf) {
	x := mender{conf: conf, size: size, label: label}
	var walk func(path creel.QueuePath, has creel.Resource)
	walk = func(path creel.QueuePath, has creel.Resource) {
		if !x.accesses(path) {
			return
		}
		s.Load.Queues = append(s.Load.Queues, subcluster.QueueLoad{Queue: path, Label: label, Capacity: has})
		weights := 0.0
		for _, c := range x.children(path) {
			if kind, v := unit(x.own(c, "capacity")); kind == weightUnit && x.accesses(c) {
				weights += v
			}
		}
		for _, c := range x.children(path) {
			switch kind, v := unit(x.own(c, "capacity")); kind {
			case amountUnit:
				walk(c, amountsIn(x.own(c, "capacity"), creel.Resource{}))
			case weightUnit:
				walk(c, partOf(has, v/weights))
			default:
				walk(c, partOf(has, v/100))
			}
		}
	}
	walk(creel.RootQueue, size)
	slices.SortFunc(s.Load.Queues, func(a, b subcluster.QueueLoad) int {
		return cmp.Or(strings.Compare(string(a.Queue), string(b.Queue)), strings.Compare(a.Label, b.Label))
	})
}

// applied is a configuration after changes.
func applied(conf QueueConf, changes []QueueChange) QueueConf {
	out := maps.Clone(conf)
	for _, c := range changes {
		if above := capacityPrefix + string(c.Queue.Parent()) + ".queues"; c.Add {
			names, name := splitNames(out[above]), c.Queue.Parts()[len(c.Queue.Parts())-1]
			if !slices.Contains(names, name) {
				out[above] = strings.Join(append(names, name), ",")
			}
		}
		if c.Remove {
			names := slices.DeleteFunc(splitNames(out[capacityPrefix+"root.queues"]), func(n string) bool {
				return "root."+n == string(c.Queue)
			})
			out[capacityPrefix+"root.queues"] = strings.Join(names, ",")
			delete(out, capacityPrefix+string(c.Queue)+".capacity")
			continue
		}
		if out[capacityPrefix+string(c.Queue)+"."+c.Key] = c.Is; c.Is == "" {
			delete(out, capacityPrefix+string(c.Queue)+"."+c.Key)
		}
	}
	return out
}

func splitNames(text string) (out []string) {
	for _, name := range strings.Split(text, ",") {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

func TestDriftChanges(t *testing.T) {
	big, small := creel.NewResource(100_000, 100), creel.NewResource(50_000, 50)
	for _, c := range []struct{ name, document, a, b, want string }{
		{
			"nothing where all is as the document says",
			`{"queues":[{"queue":"root.x","guarantee":"30%"}]}`,
			"root.queues=x,y root.x.capacity=30 root.y.capacity=70",
			"root.queues=x,y root.x.capacity=30 root.y.capacity=70",
			"",
		},
		{
			"everywhere the same part, and neighbours make room",
			`{"queues":[{"queue":"root.x","guarantee":"40%"}]}`,
			"root.queues=x,y,z root.x.capacity=15 root.y.capacity=75 root.z.capacity=10",
			"root.queues=x,y root.x.capacity=30 root.y.capacity=70",
			`a root.x capacity 15 > 40
			a root.y capacity 75 > 52.94
			a root.z capacity 10 > 7.06
			b root.x capacity 30 > 40
			b root.y capacity 70 > 60`,
		},
		{
			"a queue that a member lacks, with the one above it",
			`{"queues":[{"queue":"root.x","guarantee":"30%"},{"queue":"root.x.new","guarantee":"30%","maximum":"60%"}]}`,
			"root.queues=x,y root.x.capacity=30 root.y.capacity=70 root.x.queues=new root.x.new.capacity=100",
			"root.queues=y root.y.capacity=100",
			`b + root.x capacity  > 30
			b + root.x.new capacity  > 100
			b root.y capacity 100 > 70`,
		},
		{
			"a maximum, of what the queue above may use, but none that is written below a capacity",
			`{"queues":[{"queue":"root.x","guarantee":"30%"},{"queue":"root.x.n","guarantee":"15%","maximum":"60%"}]}`,
			"root.queues=x,y root.x.capacity=30 root.y.capacity=70 root.x.queues=n,o root.x.n.capacity=50 " +
				"root.x.o.capacity=50",
			"root.queues=x,y root.x.capacity=30 root.y.capacity=70 root.x.queues=n,o root.x.n.capacity=50 " +
				"root.x.o.capacity=50 root.x.n.maximum-capacity=100",
			`a root.x.n maximum-capacity  > 90`,
		},
		{
			"weights keep their unit, and those that make room their value",
			`{"queues":[{"queue":"root.x","guarantee":"50%"}]}`,
			"root.queues=x,y root.x.capacity=1w root.y.capacity=3w",
			"root.queues=x,y root.x.capacity=1w root.y.capacity=3w",
			`a root.x capacity 1w > 3w
			b root.x capacity 1w > 3w`,
		},
		{
			"amounts keep theirs, and other types",
			`{"queues":[{"queue":"root.x","guarantee":{"memory":30000,"vCores":30}}]}`,
			"root.queues=x root.x.capacity=[memory=10000,vcores=10,gpu=2]",
			"root.queues=x root.x.capacity=[memory=5000,vcores=5]",
			`a root.x capacity [memory=10000,vcores=10,gpu=2] > [memory=20000,vcores=20,gpu=2]
			b root.x capacity [memory=5000,vcores=5] > [memory=10000,vcores=10]`,
		},
		{
			"maxima that keep the queue from what the document leaves it, or promise more",
			`{"queues":[{"queue":"root.x","maximum":{"memory":75000}}]}`,
			"root.queues=x root.x.capacity=100 root.x.maximum-capacity=100",
			"root.queues=x root.x.capacity=20 root.x.maximum-capacity=40",
			`b root.x maximum-capacity 40 > 100`, // in a it is guaranteed all there is
		},
		{
			"guarantees that cannot be written are told",
			`{"queues":[{"queue":"root.x","guarantee":"20%"},{"queue":"root.y","guarantee":"40%"}]}`,
			"root.queues=x,y root.x.capacity=50 root.y.capacity=50",
			"root.queues=x,y root.x.capacity=50 root.y.capacity=50",
			`a root.x capacity 50 > 33.33
			a root.y capacity 50 > 66.67
			a the document guarantees the queues below root 60.0% of it here
			b root.x capacity 50 > 33.33
			b root.y capacity 50 > 66.67
			b the document guarantees the queues below root 60.0% of it here`,
		},
		{
			"a leaf with applications of its own gets no queue below it",
			`{"queues":[{"queue":"root.x.y","guarantee":"20%"},{"queue":"root.p.q"}]}`,
			"root.queues=x root.x.capacity=100",
			"root.queues=x root.x.capacity=100",
			`a root.p.q is not added: root.p is neither there nor in the document
			a root.x.y is not added: root.x is a leaf queue here
			b root.p.q is not added: root.p is neither there nor in the document
			b root.x.y is not added: root.x is a leaf queue here`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			confs := map[creel.SubclusterID]QueueConf{"a": queueConf(c.a), "b": queueConf(c.b)}
			view := &subcluster.View{Members: []subcluster.Status{
				member("a", big, confs["a"]), member("b", small, confs["b"]),
			}}
			tree, err := ParseTree([]byte(c.document), 1)
			if err != nil {
				t.Fatal(err)
			}
			tree.Resolve(Total(view), 0)
			var got []string
			for _, m := range Mend(view, tree, confs) {
				before := refused(confs[m.Member], false)
				if err := refused(applied(confs[m.Member], m.Changes), false); err != nil && before == nil {
					t.Errorf("%s refuses: %v", m.Member, err)
				}
				for _, x := range m.Changes {
					plus := ""
					if x.Add {
						plus = "+ "
					}
					got = append(got, fmt.Sprintf("%s %s%s %s %s > %s", m.Member, plus, x.Queue, x.Key, x.Was, x.Is))
				}
				for _, n := range m.Notes {
					got = append(got, string(m.Member)+" "+n)
				}
			}
			var want []string
			for line := range strings.Lines(c.want) {
				want = append(want, strings.TrimSpace(line))
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Whatever the members have: percentages sum to 100 afterwards, guarantees add up to the document's unless the mend
// reports that they cannot, a second run finds nothing to change, and an undo restores the original.
func TestAMendEndsTheDrift(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		names := []string{"p", "q", "r", "s"}
		confs := map[creel.SubclusterID]QueueConf{}
		sizes := map[creel.SubclusterID]creel.Resource{}
		for i := range rapid.IntRange(1, 3).Draw(t, "members") {
			id := creel.SubclusterID(fmt.Sprint("m", i))
			n := rapid.Int64Range(1, 9).Draw(t, "size")
			sizes[id] = creel.NewResource(n*100_000, n*100)
			unit := rapid.SampledFrom([]string{"", "w"}).Draw(t, "unit")
			conf := QueueConf{}
			there := rapid.IntRange(1, 4).Draw(t, "queues")
			left := 100
			conf[capacityPrefix+"root.queues"] = strings.Join(names[:there], ",")
			for k, name := range names[:there] {
				part := left
				if k < there-1 {
					part = rapid.IntRange(0, left).Draw(t, "part")
				}
				left -= part
				if unit == "w" {
					part++
				}
				conf[capacityPrefix+"root."+name+".capacity"] = strconv.Itoa(part) + unit
			}
			confs[id] = conf
		}
		view := func() *subcluster.View {
			v := &subcluster.View{}
			for _, id := range slices.Sorted(maps.Keys(confs)) {
				v.Members = append(v.Members, member(string(id), sizes[id], confs[id]))
			}
			return v
		}
		tree, left := &Tree{}, 100
		for _, name := range names {
			if rapid.Bool().Draw(t, "named") {
				g := rapid.IntRange(0, left).Draw(t, "guarantee")
				left -= g
				tree.Queues = append(tree.Queues, Queue{Path: creel.QueuePath("root." + name), GuaranteePercent: float64(g)})
			}
		}
		tree.Resolve(Total(view()), 0)
		told, before := false, maps.Clone(confs)
		mends := Mend(view(), tree, confs)
		for _, m := range mends {
			told = told || len(m.Notes) > 0
			before := refused(confs[m.Member], false)
			confs[m.Member] = applied(confs[m.Member], m.Changes)
			if err := refused(confs[m.Member], false); err != nil && before == nil {
				t.Fatalf("%s refuses what mends it: %v", m.Member, err)
			}
		}
		total := Total(view())
		for id, conf := range confs {
			sum, percent := 0.0, false
			x := mender{conf: conf}
			for _, c := range x.children(creel.RootQueue) {
				kind, v := unit(x.get(c, "capacity"))
				percent = percent || kind == percentUnit
				sum += v
			}
			if percent && math.Abs(sum-100) > 1e-6 {
				t.Fatalf("capacities of %s sum to %v: %v", id, sum, conf)
			}
		}
		for i := range tree.Queues {
			q, sum := &tree.Queues[i], 0.0
			for _, m := range view().Members {
				if load := m.Load.Find(q.Path); load != nil {
					sum += Share(load.Capacity, total)
				}
			}
			if want := Share(q.Guarantee, total); !told && q.GuaranteePercent > 0 && math.Abs(sum-want) > 2*driftBand {
				t.Fatalf("%s has %.3f of the federation, and is guaranteed %.3f: %v", q.Path, sum, want, confs)
			}
		}
		for _, m := range Mend(view(), tree, confs) {
			if len(m.Changes) > 0 {
				t.Fatalf("a second look at %s finds %+v", m.Member, m.Changes)
			}
		}
		for i := range mends {
			m := &mends[i]
			if len(m.Changes) == 0 {
				continue
			}
			back, err := m.Undo(confs[m.Member])
			if err != nil {
				t.Fatal(err)
			}
			conf := applied(confs[m.Member], back)
			if !maps.Equal(conf, before[m.Member]) {
				t.Fatalf("undone it is %v and was %v", conf, before[m.Member])
			}
			confs[m.Member][capacityPrefix+string(m.Changes[0].Queue)+"."+m.Changes[0].Key] = "other"
			if _, err := m.Undo(confs[m.Member]); !errors.Is(err, creel.ErrConflict) {
				t.Fatalf("what was changed since is undone: %v", err)
			}
		}
	})
}
