// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// gb is an amount of so many GiB and as many vcores.
func gb(n int64) amounts.Vec { return amounts.Vec{Memory: n << 10, VCores: n} }

// cluster is a snapshot written by hand: queue a waits, queue b uses too much.
type cluster struct {
	sizes amounts.Sizes
	terms Terms
	a, b  *Queue
	bob   *App // of queue b
	over  *Budget
	nodes []*Node
	have  []Container // in the order of loss
	of    map[int64]*amounts.Size
}

func newCluster() *cluster {
	w := &cluster{sizes: amounts.Sizes{Types: amounts.Types{N: 2, Check: 2}}, of: map[int64]*amounts.Size{}}
	w.a, w.b = &Queue{Owner: "a", Serial: 1}, &Queue{Owner: "b", Serial: 2, Use: 2}
	w.bob = w.app(w.b)
	w.over = &Budget{Queue: w.b, Hard: gb(100), Even: gb(100), Soft: gb(100), Types: 3}
	w.terms = Terms{
		Sizes: &w.sizes, Total: gb(100), Now: int64(time.Hour), Wait: 15 * time.Second,
		Suits: func(*Ask, *Node) bool { return true },
	}
	return w
}

func (w *cluster) app(q *Queue) *App { return &App{Queue: q, User: &User{}} }

// size returns the one size of so many GiB.
func (w *cluster) size(n int64) *amounts.Size {
	if w.of[n] == nil {
		w.of[n] = &amounts.Size{V: gb(n)}
	}
	return w.of[n]
}

// node adds a node with so much free, and containers of bob's.
func (w *cluster) node(free int64, sizes ...int64) *Node {
	n := &Node{Owner: fmt.Sprintf("n%d", len(w.nodes)+1), Free: gb(free)}
	w.nodes = append(w.nodes, n)
	for _, size := range sizes {
		w.container(n, w.bob, size)
	}
	return n
}

// container adds a container, which loses after those before it. It is named by its node and size.
func (w *cluster) container(n *Node, a *App, size int64) *Container {
	w.have = append(w.have, Container{
		Owner: fmt.Sprintf("%s/%d#%d", n.Owner, size, len(w.have)), App: a, Node: n, Size: w.size(size),
	})
	return &w.have[len(w.have)-1]
}

// ask is an ask of queue a.
func (w *cluster) ask(count int32, size int64) *Ask {
	return &Ask{App: w.app(w.a), Size: w.size(size), Count: count}
}

// need is what queue a lacks.
func (w *cluster) need(rest int64, asks ...*Ask) Need {
	return Need{Queue: w.a, Rest: gb(rest), Rule: Guarantee, Types: 3, Asks: asks}
}

// round claims for needs from the containers, and returns the round.
func (w *cluster) round(needs ...Need) *Round { return w.run(nil, false, needs...) }

func (w *cluster) run(prepare func(*Round), reservedFirst bool, needs ...Need) *Round {
	r := NewRound(&w.terms)
	r.Lose(w.over)
	r.Needs = needs
	if prepare != nil {
		prepare(r)
	}
	o := r.Offers(w.b.LeastWork, &Memory{})
	for i := range w.have {
		o.Add(&w.have[i], w.over, 1)
	}
	r.ClaimAll(o, reservedFirst)
	return r
}

// told lists claims: node, containers of the ask, and the victims' sizes.
func told(claims []*Claim) string {
	var out []string
	for _, c := range claims {
		s := fmt.Sprintf("%s for %d:", c.Node.Owner, c.Count)
		for _, v := range c.Victims {
			s += fmt.Sprintf(" %d", v.Size.V.Memory>>10)
			if v.AM {
				s += "am"
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func want(t *testing.T, r *Round, claims string) {
	t.Helper()
	if got := told(r.Made()); got != claims {
		t.Errorf("claims %q, want %q", got, claims)
	}
}

func TestFirstContainerThatFreesEnoughIsTaken(t *testing.T) {
	w := newCluster()
	w.node(0, 1, 1)
	w.node(0, 4, 2)
	want(t, w.round(w.need(10, w.ask(1, 2))), "n2 for 1: 4")
}

func TestNodeClearedByFewestIsTaken(t *testing.T) {
	w := newCluster()
	w.node(0, 1, 1, 1)
	w.node(1, 1, 1)
	want(t, w.round(w.need(10, w.ask(1, 3))), "n2 for 1: 1 1")
}

// Containers are added until the ask fits: the last one may free so much that others stay.
func TestUnneededVictimsAreSpared(t *testing.T) {
	w := newCluster()
	w.node(0, 1, 2, 2)
	want(t, w.round(w.need(10, w.ask(1, 4))), "n1 for 1: 2 2")
}

func TestOneClaimServesAllThatFit(t *testing.T) {
	w := newCluster()
	w.node(0, 4)
	w.node(0, 1)
	want(t, w.round(w.need(10, w.ask(5, 1))), "n1 for 4: 4, n2 for 1: 1")
}

func TestClaimsEndWithNeed(t *testing.T) {
	w := newCluster()
	w.node(0, 1, 1, 1, 1)
	want(t, w.round(w.need(2, w.ask(4, 1))), "n1 for 1: 1, n1 for 1: 1")
}

func TestAskThatFitsNowTakesNothing(t *testing.T) {
	w := newCluster()
	w.node(2, 1)
	want(t, w.round(w.need(10, w.ask(1, 2))), "")
}

func TestAMsAreLastAndWithinTheirLimit(t *testing.T) {
	w := newCluster()
	n := w.node(0)
	w.container(n, w.bob, 2).AM = true
	w.node(0, 1, 1)
	w.over.AMs = gb(2)
	w.container(w.node(0), w.bob, 2).AM = true
	r := w.round(w.need(10, w.ask(3, 2)))
	want(t, r, "n2 for 1: 1 1, n1 for 1: 2am")
	if why := r.Made()[1].Victims[0].Choice.Why(0); why != "only AMs are left" {
		t.Errorf("an AM is taken because %s", why)
	}
}

func TestNothingIsTakenFromThoseThatWait(t *testing.T) {
	w := newCluster()
	n := w.node(0)
	w.container(n, w.app(w.a), 2)
	want(t, w.round(w.need(10, w.ask(1, 2))), "")
	own := w.ask(1, 2)
	w.have[0].App, own.App = w.bob, w.bob
	r := NewRound(&w.terms)
	within := &Need{Queue: w.b, Rest: gb(10), Rule: AppPriority, Asks: []*Ask{own}}
	o := r.Offers(false, &Memory{})
	if o.Add(&w.have[0], w.over, 1); len(r.ClaimWithin(within, o)) != 0 {
		t.Error("an application loses a container to its own ask")
	}
	own.App = w.app(w.b)
	o = r.Offers(false, &Memory{})
	if o.Add(&w.have[0], w.over, 1); told(r.ClaimWithin(within, o)) != "n1 for 1: 2" {
		t.Error("an application of the same leaf loses nothing")
	}
}

func TestBudgetsLimitTheirTypes(t *testing.T) {
	for name, c := range map[string]struct {
		b         Budget
		rule      Rule
		may, soon bool
	}{
		"enough":                {Budget{Hard: gb(2), Soft: gb(1), Types: 3}, Guarantee, true, true},
		"too little":            {Budget{Hard: gb(1), Soft: gb(1), Types: 3}, Guarantee, false, false},
		"not in this round":     {Budget{Hard: gb(2), Types: 3}, Guarantee, true, false},
		"balance takes no more": {Budget{Hard: gb(2), Even: gb(1), Soft: gb(1), Types: 3}, Balance, false, false},
		"another type too":      {Budget{Hard: gb(2), Soft: gb(1), Types: 1}, Guarantee, true, true},
		"strict":                {Budget{Hard: gb(2), Soft: gb(1), Types: 1, Strict: true}, Guarantee, false, false},
		"a guarantee of the type": {
			Budget{Hard: amounts.Vec{Memory: 4096}, Soft: gb(1), Types: 1, Least: 2}, Guarantee, false, false,
		},
	} {
		two := gb(2)
		if may, soon := c.b.takes(2, &two, c.rule); may != c.may || soon != c.soon {
			t.Errorf("%s: may %v, soon %v", name, may, soon)
		}
	}
}

func TestLimitOfRoundPermitsFirstClaim(t *testing.T) {
	w := newCluster()
	w.node(0, 2, 2)
	bound := func(elsewhere int64) func(*Round) {
		return func(r *Round) { r.Bound(gb(1), gb(elsewhere)) }
	}
	want(t, w.run(bound(0), false, w.need(10, w.ask(2, 2))), "n1 for 1: 2")
	want(t, w.run(bound(1), false, w.need(10, w.ask(2, 2))), "")
}

func TestBudgetOfFederationLimitsClaims(t *testing.T) {
	w := newCluster()
	w.node(0, 2, 2, 2)
	types, err := amounts.NewTypes(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	w.sizes.Types = types
	book := leases.NewBook(&w.sizes)
	end := time.Unix(0, 0).Add(2 * time.Hour)
	book.SetBudgets([]leases.PreemptionBudget{
		{Queue: "root.a", Share: creel.NewResource(4096, 4), Ends: end, Until: end},
	})
	b := book.Budget("root.a", "", w.terms.Now)
	w.a.Budgets = []*leases.Budget{b}
	r := w.round(w.need(10, w.ask(3, 2)))
	want(t, r, "n1 for 1: 2, n1 for 1: 2")
	if !b.Spent.Sum.IsZero() || len(r.Made()[0].Spent) != 1 {
		t.Error("a round charges a budget, or its claim does not name it")
	}
}

func TestRoomLeftByClaimServesNextAsk(t *testing.T) {
	w := newCluster()
	w.node(0, 4, 1)
	w.node(0, 1)
	first, second := w.ask(1, 3), w.ask(1, 1)
	want(t, w.round(w.need(10, first, second)), "n1 for 1: 4")
	if second.claimed != 1 {
		t.Error("the second ask is not served")
	}
}

func TestUserAboveLimitClaimsNothing(t *testing.T) {
	w := newCluster()
	w.node(0, 1, 1, 1)
	limited, free := w.ask(2, 1), w.ask(1, 1)
	*limited.App.User = User{Used: gb(3), Limit: gb(4), Limited: true}
	r := w.round(w.need(10, limited, free))
	if want(t, r, "n1 for 1: 1, n1 for 1: 1"); limited.claimed != 1 || free.claimed != 1 {
		t.Errorf("%d for the user at the limit, %d for the other", limited.claimed, free.claimed)
	}
}

func TestReservedNodesAreKeptForTheirAsk(t *testing.T) {
	w := newCluster()
	n := w.node(1, 2)
	w.node(0, 1, 1)
	other := &Queue{Owner: "c", Kept: true}
	ask := w.ask(1, 2)
	n.Hold = &Hold{Queue: other, Size: w.size(3), Node: n}
	want(t, w.round(w.need(10, ask)), "n2 for 1: 1 1")
	other.Kept, ask.claimed = false, 0 // a queue with its guarantee yields
	want(t, w.round(w.need(10, ask)), "n1 for 1: 2")
	ask.claimed = 0
	mine := w.nodes[1]
	n.Hold, mine.Hold = nil, &Hold{Queue: w.a, Size: w.size(2), Node: mine}
	ask.Hold = mine.Hold
	want(t, w.run(nil, true, w.need(10, ask)), "n2 for 1: 1 1")
}

func TestReservationYieldsByType(t *testing.T) {
	w := newCluster()
	r := NewRound(&w.terms)
	r.Needs = []Need{w.need(4)}
	h := &Hold{Queue: w.a, Size: w.size(1)}
	if r.Yields(h) {
		t.Error("a reservation of a queue in need yields")
	}
	if r.Needs[0].Types = 1; !r.Yields(h) {
		t.Error("a reservation of a type that its queue does not lack stays")
	}
}

func TestLeastWorkEndsYoungest(t *testing.T) {
	w := newCluster()
	w.b.LeastWork = true
	now := int64(time.Hour / time.Millisecond)
	w.node(0, 2)
	w.have[0].Created = now - 60_000
	w.node(0, 1, 1)
	w.have[1].Created, w.have[2].Created = now-1000, now-1000
	r := w.round(w.need(10, w.ask(1, 2)))
	want(t, r, "n2 for 1: 1 1")
	why := r.Made()[0].Victims[0].Choice.Why(w.terms.Wait)
	if why != "clearing its node of 2 containers loses the least work" {
		t.Errorf("because %s", why)
	}
}

// The first claim is cheapest with the small containers, but the large one alone frees enough for both.
func TestClaimsAreExchangedForCheaperOnes(t *testing.T) {
	w := newCluster()
	w.b.LeastWork = true
	now := int64(time.Hour / time.Millisecond)
	w.node(0, 1, 1, 4)
	for i, age := range []int64{20_000, 20_000, 25_000} {
		w.have[i].Created = now - age
	}
	w.node(0, 3)
	w.have[3].Created = now - 600_000
	want(t, w.round(w.need(10, w.ask(2, 2))), "n1 for 2: 4")
}

func TestClaimIsRenewedWhileNeedAndExcessLast(t *testing.T) {
	w := newCluster()
	n := w.node(0, 2, 2)
	ask := w.ask(2, 2)
	old := w.round(w.need(10, ask)).Made()
	if told(old) != "n1 for 1: 2, n1 for 1: 2" {
		t.Fatal(told(old))
	}
	again := func(rest, hard int64) (*Round, []bool) {
		*ask, *w.bob, n.Free = Ask{App: w.app(w.a), Size: w.size(2), Count: 2}, App{Queue: w.b, User: &User{}}, gb(0)
		w.over = &Budget{Queue: w.b, Hard: gb(hard), Soft: gb(hard), Types: 3}
		var renewed []bool
		r := NewRound(&w.terms)
		r.Lose(w.over)
		r.Needs = []Need{w.need(rest, ask)}
		for _, c := range old {
			renewed = append(renewed, r.Renew(c))
		}
		return r, renewed
	}
	for _, c := range []struct {
		rest, hard int64
		want       [2]bool
	}{{4, 4, [2]bool{true, true}}, {2, 4, [2]bool{true, false}}, {4, 3, [2]bool{true, false}}, {4, 1, [2]bool{}}} {
		r, got := again(c.rest, c.hard)
		if [2]bool(got) != c.want {
			t.Errorf("need %d, excess %d: renewed %v", c.rest, c.hard, got)
		}
		count := int32(0)
		for _, is := range got {
			if is {
				count++
			}
		}
		under := gb(int64(count) * 2)
		if ask.claimed != count || !w.bob.Lost.Is(&under) || !r.taken.Is(&under) {
			t.Errorf("need %d, excess %d: %d claimed, %v lost", c.rest, c.hard, ask.claimed, w.bob.Lost)
		}
	}
	// In a plan, even a claim that is no longer needed is under notice.
	r, _ := again(0, 0)
	if r.Assume(old[0]); ask.claimed != 1 || !r.taken.Is(&w.size(2).V) {
		t.Error("a claim that is under notice is not counted")
	}
}

func TestNeedsAreServedByRulePriorityAndUse(t *testing.T) {
	w := newCluster()
	q := func(serial int, priority int32, use float64) *Queue {
		return &Queue{Owner: serial, Serial: serial, Priority: priority, Use: use}
	}
	r := NewRound(&w.terms)
	r.Needs = []Need{
		{Queue: q(1, 9, 0), Rule: Balance}, {Queue: q(2, 0, 0.5), Rule: Guarantee},
		{Queue: q(3, 0, 0.2), Rule: Guarantee}, {Queue: q(4, 1, 0.9), Rule: Guarantee},
		{Queue: q(5, 0, 0.2), Rule: FairShare},
	}
	for _, use := range []float64{1, 3, 2} {
		r.Lose(&Budget{Queue: q(int(use), 0, use)})
	}
	r.Sort()
	var needs, over []any
	for _, n := range r.Needs {
		needs = append(needs, n.Queue.Owner)
	}
	for _, b := range r.Over {
		over = append(over, b.Queue.Owner)
	}
	if got := fmt.Sprint(needs, over); got != "[4 3 5 2 1] [3 2 1]" {
		t.Errorf("the order is %s", got)
	}
}

// Random rounds keep the promises of the package, and equal rounds make equal claims.
func TestPromisesHoldInRandomRounds(t *testing.T) {
	made := 0
	for seed := range uint64(300) {
		first := random(t, seed)
		if again := random(t, seed); first != again {
			t.Fatalf("seed %d: %s, and again %s", seed, first, again)
		}
		made += strings.Count(first, "for")
	}
	if made < 300 {
		t.Errorf("%d claims in all", made)
	}
}

// random makes the claims of one random round and checks them.
func random(t *testing.T, seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newCluster()
	w.b.LeastWork = rnd.IntN(2) == 0
	for range 1 + rnd.IntN(6) {
		n := w.node(rnd.Int64N(2))
		for range rnd.IntN(5) {
			c := w.container(n, w.bob, 1+rnd.Int64N(4))
			c.Created, c.AM, c.Lent = rnd.Int64N(3_600_000), rnd.IntN(8) == 0, rnd.IntN(4) == 0
		}
	}
	hard, rest := gb(rnd.Int64N(20)), rnd.Int64N(20)
	w.over.Hard, w.over.Even, w.over.Soft, w.over.AMs = hard, hard, hard, gb(4)
	asks := []*Ask{w.ask(1+rnd.Int32N(4), 1+rnd.Int64N(3)), w.ask(1+rnd.Int32N(4), 1+rnd.Int64N(3))}
	claims := w.round(w.need(rest, asks...)).Made()
	ended, served := map[any]bool{}, map[*Node]amounts.Vec{}
	var lost amounts.Vec
	for _, c := range claims {
		room, is := served[c.Node]
		if !is {
			room = c.Node.Free
		}
		if c.Count < 1 || len(c.Victims) == 0 {
			t.Errorf("seed %d: a claim for %d containers has %d victims", seed, c.Count, len(c.Victims))
		}
		for _, v := range c.Victims {
			if ended[v.Owner] || v.Node != c.Node {
				t.Errorf("seed %d: %v ends twice, or on another node", seed, v.Owner)
			}
			ended[v.Owner] = true
			room.Add(&v.Size.V)
			lost.Add(&v.Size.V)
		}
		if room.AddTimes(&c.Size.V, -int64(c.Count)); room.Memory < 0 {
			t.Errorf("seed %d: %s does not fit", seed, told([]*Claim{c}))
		}
		served[c.Node] = room
	}
	claimed := int64(0)
	for _, a := range asks {
		if claimed += int64(a.claimed) * a.Size.V.Memory >> 10; a.claimed > a.Count {
			t.Errorf("seed %d: %d claimed of %d", seed, a.claimed, a.Count)
		}
	}
	if !w.sizes.Fits(&lost, &hard) || claimed > rest+2 {
		t.Errorf("seed %d: %v lost of %v, %d claimed of %d", seed, lost, hard, claimed, rest)
	}
	return told(claims)
}
