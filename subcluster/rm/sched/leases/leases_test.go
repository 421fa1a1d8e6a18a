// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"pgregory.net/rapid"
)

func newBook(t testing.TB) *Book {
	t.Helper()
	types, err := amounts.NewTypes([]string{"gpu"}, false)
	if err != nil {
		t.Fatal(err)
	}
	least := creel.NewResource(1024, 1)
	sizes, err := amounts.NewSizes(types, least, creel.NewResource(64<<10, 64), least)
	if err != nil {
		t.Fatal(err)
	}
	return NewBook(&sizes)
}

func at(seconds int64) time.Time { return time.Unix(seconds, 0) }
func ns(seconds int64) int64     { return at(seconds).UnixNano() }

func vec(gib, vcores, gpus int64) amounts.Vec {
	v := amounts.Vec{Memory: gib << 10, VCores: vcores}
	v.Set(2, gpus)
	return v
}

func TestCapBoundsNamedTypesUntilItExpires(t *testing.T) {
	b := newBook(t)
	b.SetCap(QueueCap{Queue: "root.a", Cap: creel.NewResource(4<<10, 4), Until: at(10)})
	gpus := creel.NewResource(4<<10, 4).With("gpu", 1)
	b.SetCap(QueueCap{Queue: "root.gpu", Cap: gpus, Maximum: gpus, Until: at(10)})
	for _, c := range []struct {
		queue      creel.QueuePath
		now        int64
		have, need amounts.Vec
		want       bool
	}{
		{"root.a", 9, vec(2, 2, 0), vec(2, 2, 0), true},
		{"root.a", 9, vec(2, 2, 0), vec(3, 1, 0), false},
		{"root.a", 9, vec(2, 2, 0), vec(1, 3, 0), false},
		{"root.a", 9, vec(0, 0, 8), vec(1, 1, 8), true}, // its maximum names no gpu
		{"root.a", 10, vec(0, 0, 0), vec(1, 1, 0), false},
		{"root.gpu", 9, vec(0, 0, 0), vec(1, 1, 1), true},
		{"root.gpu", 9, vec(0, 0, 1), vec(1, 1, 1), false},
		{"root.gpu", 9, vec(0, 0, 2), vec(1, 1, 0), true}, // above the cap, but it needs no gpu
	} {
		if got := b.Cap(c.queue, "").Lease.Admits(b.sizes, ns(c.now), &c.have, &c.need); got != c.want {
			t.Errorf("%s at %d: %v and %v admitted %v", c.queue, c.now, c.have, c.need, got)
		}
	}
}

func TestOlderCapIsIgnored(t *testing.T) {
	b := newBook(t)
	first := QueueCap{Queue: "root.a", Label: "gpu", Cap: creel.NewResource(4096, 4), Version: 3}
	old, to := b.SetCap(first)
	if old != nil || to == nil || b.Cap("root.a", "gpu") != to || b.Cap("root.a", "") != nil {
		t.Fatalf("the first cap: old %v, new %v", old, to)
	}
	late := first
	late.Version, late.Cap = 2, creel.NewResource(8192, 8)
	if was, got := b.SetCap(late); was != to || got != nil || b.Cap("root.a", "gpu") != to {
		t.Errorf("version 2 after 3: %v replaced %v", got, was)
	}
	late.Version = 3
	if was, got := b.SetCap(late); was != to || b.Cap("root.a", "gpu") != got || got.Lease.Amount.Memory != 8192 {
		t.Errorf("version 3 after 3: %v, not in place of %v", got, was)
	}
	if b.NoCaps() {
		t.Error("a cap is in force, and the book has none")
	}
	if old := b.ClearCap("root.a", "gpu"); old == nil || b.Cap("root.a", "gpu") != nil || !b.NoCaps() {
		t.Errorf("cleared %v, left %v", old, b.Cap("root.a", "gpu"))
	}
	if old := b.ClearCap("root.a", "gpu"); old != nil {
		t.Errorf("cleared twice: %v", old)
	}
}

func TestUserWithoutOwnCapHasCommonOne(t *testing.T) {
	b := newBook(t)
	var none *Users
	if _, has := none.Of("bob"); has || none.Named("bob") {
		t.Error("a user has a cap where there is none")
	}
	old, to := b.SetUsers(UserCaps{
		Queue: "root.a", Each: UserCap{Cap: creel.NewResource(1024, 1), Until: at(10)},
		Users: map[string]UserCap{"alice": {Cap: creel.NewResource(4096, 4), Until: at(20)}},
	})
	if old != nil || to != b.Users("root.a", "") || b.NoCaps() {
		t.Fatalf("old %v, new %v", old, to)
	}
	alice, _ := to.Of("alice")
	bob, has := to.Of("bob")
	if !has || alice.Amount.Memory != 4096 || bob.Amount.Memory != 1024 || !to.Named("alice") || to.Named("bob") {
		t.Errorf("alice %v, bob %v", alice, bob)
	}
	if alice.Expired(ns(19)) || !alice.Expired(ns(20)) || !bob.Expired(ns(10)) {
		t.Error("a cap ends at another time than its lease")
	}
	if b.ClearUsers("root.a", "") != to || b.Users("root.a", "") != nil || b.ClearUsers("root.a", "") != nil {
		t.Error("the caps of users are not cleared once")
	}
}

func TestExpiredLeaseLeavesNothing(t *testing.T) {
	l := Lease{Amount: vec(4, 4, 0), Until: ns(10)}
	longer := Lease{Amount: vec(4, 4, 0), Until: ns(20)}
	v := vec(6, 2, 0)
	if l.Left(ns(9), &v); v.Memory != 4<<10 || v.VCores != 2 {
		t.Errorf("left %v before its end", v)
	}
	if l.Left(ns(10), &v); !v.IsZero() {
		t.Errorf("left %v at its end", v)
	}
	if !l.Same(&longer, ns(9)) || l.Same(&longer, ns(10)) || l.Same(&Lease{Amount: vec(5, 4, 0), Until: ns(20)}, ns(9)) {
		t.Error("only a lease in force is continued, by one of the same amount")
	}
}

// Budgets of one interval share their spending over any number of replacements, and those of the next begin at zero.
func TestBudgetKeepsSpendingWithinItsInterval(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		b := newBook(t)
		type place struct {
			queue creel.QueuePath
			label string
		}
		spent, began := map[place]int64{}, map[place]int64{}
		for range rapid.IntRange(1, 20).Draw(rt, "replacements") {
			var list []PreemptionBudget
			now := map[place]int64{}
			for _, p := range []place{{"root.a", ""}, {"root.a", "gpu"}, {"root.b", ""}} {
				begins := rapid.Int64Range(-1, 2).Draw(rt, "begins")
				if begins < 0 {
					continue // no budget for it
				}
				now[p] = begins
				list = append(list, PreemptionBudget{
					Queue: p.queue, Label: p.label, Share: creel.NewResource(8<<10, 8),
					Begins: at(begins), Ends: at(50), Until: at(100),
				})
			}
			b.SetBudgets(list)
			if b.NoBudgets() != (len(now) == 0) {
				rt.Fatalf("no budgets: %v of %d", b.NoBudgets(), len(now))
			}
			for p := range spent {
				if was, has := now[p]; !has || was != began[p] {
					delete(spent, p)
				}
			}
			began = now
			for _, x := range list {
				p := place{x.Queue, x.Label}
				k := b.Budget(x.Queue, x.Label, ns(40))
				more := vec(rapid.Int64Range(0, 3).Draw(rt, "GiB"), 0, 0)
				planned := vec(rapid.Int64Range(0, 3).Draw(rt, "planned"), 0, 0)
				want := more.Memory == 0 || spent[p]+planned.Memory+more.Memory <= 8<<10
				if got := k.Admits(b.sizes, ns(40), &planned, &more); got != want {
					rt.Fatalf("%v after %d and %v: admitted %v", more, spent[p], planned, got)
				}
				if k.Admits(b.sizes, ns(50), nil, &more) && more.Memory > 0 {
					rt.Fatal("a budget is in force after its interval")
				}
				left, after := k.Left(b.sizes, ns(40)), k.Left(b.sizes, ns(50))
				if left.Memory != max(8<<10-spent[p], 0) || !after.IsZero() {
					rt.Fatalf("left %v, then %v, after %d", left, after, spent[p])
				}
				k.Spent.Sum.Add(&more)
				spent[p] += more.Memory
				if b.Budget(x.Queue, x.Label, ns(100)) != nil {
					rt.Fatal("a budget is in force after its lease")
				}
			}
		}
	})
}
