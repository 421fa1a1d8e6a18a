// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
)

// The ledger has the AM's table of asks, and the part of it that was sent to each member.
//
// Asks are absolute, and a ResourceManager lowers its count with each grant (ApplicationMasterProtocol). When an ask
// arrives, grants may still be on their way to the proxy. A repeated ask raises the count by these grants again, so
// that too many containers are granted. Therefore the ledger stores for each line and member the intended count
// (share) and the member's assumed count (table). It sends an ask only if the two differ.

// anywhere is the resource name of the line with a group's total.
const anywhere = "*"

// groupKey identifies asks that a scheduler treats as one group.
type groupKey struct {
	priority  int32
	request   int64
	execution yarnpb.ExecutionTypeProto
}

func (k groupKey) compare(o groupKey) int {
	return cmp.Or(
		cmp.Compare(k.priority, o.priority),
		cmp.Compare(k.request, o.request),
		cmp.Compare(k.execution, o.execution),
	)
}

// group is one group of asks. need is the number of containers that the AM still wants and no member has granted,
// from the line "*".
type group struct {
	key    groupKey
	lines  []*line // by name; "*" sorts before hosts and racks
	need   int64
	size   creel.Resource
	label  string
	named  bool // the ask names the label, which may be ""
	strict bool

	hedged bool
	rooms  bool // the policy uses free capacity, see policies.Plan
	adrift bool // some asks are unplaced, see policies.Plan
	dirty  bool // needs a split
	fresh  bool // the AM has sent asks of the group since the last split
	unsent int  // accepted grants not yet sent to the AM
	reason policies.Reason
	barred []*link   // members that refused this group's size
	left   []*link   // asks waited too long for their places there; until a grant, or new places from the AM
	asked  int64     // mean time of the asks for the needed containers (waitstats.Since); ns
	empty  time.Time // time since which the group is empty
}

// line is one resource name of a group.
type line struct {
	name string
	ask  *yarnpb.ResourceRequestProto // the AM's last ask; cloned when sent
	body int                          // rises with each change other than of the number
	want int64                        // the AM's number, less grants there since
	at   map[*link]*cell
}

// cell is one line at one member.
type cell struct {
	share, table int64 // table -1: unknown
	body         int   // version of the ask that the member has
	unconfirmed  bool  // the member's count may have changed: send the ask when the AM repeats the line
	carried      bool  // the request under way has the ask
	prior        int64 // the member's count before that: so many grants in the answer may be older than the ask
	lazy         bool  // table exceeds share only by such grants: an immediate correction would over-grant again
	unsure       bool  // such grants may also be newer than the ask: the member's count may be below table
	hold         bool  // the member refused the ask: not sent until the AM repeats the line

	since time.Time // start of its waiting time: when it was raised, or its last grant
	tried time.Time // time of the last attempt to place it again
}

func keyOfAsk(a *yarnpb.ResourceRequestProto) groupKey {
	return groupKey{
		a.GetPriority().GetPriority(),
		a.GetAllocationRequestId(),
		a.GetExecutionTypeRequest().GetExecutionType(),
	}
}

func keyOfGrant(c *yarnpb.ContainerProto) groupKey {
	return groupKey{c.GetPriority().GetPriority(), c.GetAllocationRequestId(), c.GetExecutionType()}
}

// ledger has the AM's asks and containers. The groups are sorted by key, except while the asks of one call are added:
// sorted insertion of each would cost the square of their number.
type ledger struct {
	cfg      *Config
	links    *links
	restored bool // another proxy served this attempt before
	spoken   bool // the AM has sent all its asks since it registered here

	groups     []*group
	byKey      map[groupKey]*group
	visits     int // of groups in splits, for tests
	scheduling scheduling
	blacklist  map[string]bool

	held     containers
	returned map[creel.ContainerID]struct{}        // released before the granting member was known; see learn
	changes  []*yarnpb.UpdateContainerRequestProto // to change containers whose member is unknown; see change

	// Times from the AM's ask to the grant, since the last takeWaits.
	waits   waitstats.Histogram
	granted bool
}

// sort sorts the groups after asks were added.
func (l *ledger) sort() {
	byKey := func(a, b *group) int { return a.key.compare(b.key) }
	if !slices.IsSortedFunc(l.groups, byKey) {
		slices.SortFunc(l.groups, byKey)
	}
}

// of returns the group that a granted container belongs to; o is its entry, nil if it has none. A ResourceManager may
// grant another execution type than requested.
func (l *ledger) of(c *yarnpb.ContainerProto, o *heldContainer) *group {
	k := keyOfGrant(c)
	if o != nil && o.swapped {
		k.execution = otherType(k.execution)
	}
	if g := l.byKey[k]; g != nil {
		return g
	}
	for _, k.execution = range executions {
		if g := l.byKey[k]; g != nil {
			return g
		}
	}
	return nil
}

var executions = [...]yarnpb.ExecutionTypeProto{
	yarnpb.ExecutionTypeProto_GUARANTEED, yarnpb.ExecutionTypeProto_OPPORTUNISTIC,
}

func otherType(t yarnpb.ExecutionTypeProto) yarnpb.ExecutionTypeProto {
	if t == executions[0] {
		return executions[1]
	}
	return executions[0]
}

// swaps reports whether a new grant of a member serves an ask of the other execution type, although the AM has asks of
// both: the member has no open ask of the container's type, and one of the other. That is so for a container on lent
// resources: it is opportunistic, and serves an ask for a guaranteed one.
func (l *ledger) swaps(c *yarnpb.ContainerProto, m *link) bool {
	k := keyOfGrant(c)
	own := l.byKey[k]
	k.execution = otherType(k.execution)
	other := l.byKey[k]
	return own != nil && other != nil && !own.mayGrant(m) && other.mayGrant(m)
}

// mayGrant reports whether a member may have an open ask of the group.
func (g *group) mayGrant(m *link) bool {
	c := g.star().at[m]
	return c != nil && (c.table != 0 || c.carried && c.prior > 0)
}

// ask adds one line of the AM's request and returns its group. blank has the members whose tables are unknown, since
// another proxy sent asks there. early returns the number of grants for a new group that came before its ask and wait
// to be sent to the AM.
func (l *ledger) ask(
	a *yarnpb.ResourceRequestProto,
	blank []*link,
	early func(groupKey) int,
	now time.Time,
) *group {
	k := keyOfAsk(a)
	g := l.byKey[k]
	if g == nil {
		g = &group{key: k, unsent: early(k)}
		if l.byKey == nil {
			l.byKey = map[groupKey]*group{}
		}
		l.byKey[k] = g
		l.groups = append(l.groups, g)
	}
	n := max(0, int64(a.GetNumContainers()))
	ln := g.line(a.GetResourceName())
	if ln.ask == nil {
		for _, m := range blank {
			ln.cell(m).table = -1
		}
	} else if !sameBody(ln.ask, a) {
		ln.body++
		g.barred = nil
	}
	ln.ask = a
	for _, c := range ln.at {
		c.hold = false
		if c.unconfirmed {
			c.table, c.unconfirmed = -1, false
		}
	}
	g.dirty, g.fresh = true, true
	if ln.name != anywhere {
		ln.want = n
		return g
	}
	g.asked = waitstats.Since(g.asked, now.UnixNano(), g.need, n-int64(g.unsent))
	g.need = n - int64(g.unsent)
	g.size = resource(a.GetCapability())
	g.label, g.named = strings.TrimSpace(a.GetNodeLabelExpression()), a.NodeLabelExpression != nil
	g.strict = !a.GetRelaxLocality()
	return g
}

func (g *group) line(name string) *line {
	i, ok := slices.BinarySearchFunc(g.lines, name, func(l *line, n string) int { return cmp.Compare(l.name, n) })
	if !ok {
		g.lines = slices.Insert(g.lines, i, &line{name: name, at: map[*link]*cell{}})
		g.left = nil
	}
	return g.lines[i]
}

func (g *group) star() *line { return g.line(anywhere) }

func (l *line) cell(m *link) *cell {
	c := l.at[m]
	if c == nil {
		c = &cell{body: -1}
		l.at[m] = c
	}
	return c
}

// sameBody compares two asks in all fields but their number, unknown fields included. It compares their encodings, in
// a fifth of proto.Equal's time; this matters since each call of an AM has asks. Equal encodings mean equal asks. If
// the encodings of equal asks differ, the ask is sent once more, which does no harm.
func sameBody(a, b *yarnpb.ResourceRequestProto) bool {
	if a == b {
		return true
	}
	an, bn := a.NumContainers, b.NumContainers
	a.NumContainers, b.NumContainers = nil, nil
	as, errA := a.MarshalVT()
	bs, errB := b.MarshalVT()
	a.NumContainers, b.NumContainers = an, bn
	return errA == nil && errB == nil && bytes.Equal(as, bs)
}

// held returns the members' shares of the group.
func (g *group) held(members []*link) []policies.Share {
	var out []policies.Share
	star := g.star()
	for _, m := range members {
		if c := star.at[m]; c != nil && c.share > 0 {
			out = append(out, policies.Share{Member: m.id, Count: c.share})
		}
	}
	return out
}

// placesChanged marks groups with hosts and racks for a new split: other members may have these now.
func (l *ledger) placesChanged() {
	for _, g := range l.groups {
		g.dirty = g.dirty || len(g.lines) > 1
	}
}

// keptEmpty is the time that an empty group stays, so that late grants are recognised as surplus.
const keptEmpty = time.Minute

// leave marks the groups with asks in a member for a new split.
func (l *ledger) leave(m *link) {
	for _, g := range l.groups {
		c := g.star().at[m]
		g.dirty = g.dirty || c != nil && c.share > 0
	}
}

// sweep removes groups that have been empty for keptEmpty.
func (l *ledger) sweep(now time.Time) {
	l.groups = slices.DeleteFunc(l.groups, func(g *group) bool {
		left := g.need > 0 || g.unsent > 0
		for _, ln := range g.lines {
			for _, c := range ln.at {
				left = left || c.share != 0 || c.table != 0 || c.carried
			}
		}
		switch {
		case left:
			g.empty = time.Time{}
		case g.empty.IsZero():
			g.empty = now
		}
		if !left && now.Sub(g.empty) > keptEmpty {
			delete(l.byKey, g.key)
			return true
		}
		return false
	})
}

// outstanding returns the number of containers that a member is asked for, over all groups.
func (l *ledger) outstanding(m *link) (n int64) {
	for _, g := range l.groups {
		if c := g.star().at[m]; c != nil {
			n += c.share
		}
	}
	return n
}

// placing returns the part of outstanding that the session places itself.
func (l *ledger) placing(m *link) (n int64) {
	for _, g := range l.groups {
		if c := g.star().at[m]; c != nil && m.places(g) {
			n += c.share
		}
	}
	return n
}

// onPlaces reports whether containers of the group are wanted on hosts or racks.
func (g *group) onPlaces() bool {
	return slices.ContainsFunc(g.lines, func(ln *line) bool { return ln.name != anywhere && ln.want > 0 })
}

// apply sets the members' shares of a group. Hosts and racks go to the members that have them.
func (g *group) apply(
	members []*link,
	shares []policies.Share,
	owners func(string) []creel.SubclusterID,
	now time.Time,
) {
	for _, ln := range g.lines {
		if ln.ask == nil {
			continue
		}
		var has []creel.SubclusterID
		if ln.name != anywhere {
			has = owners(ln.name)
		}
		for _, m := range members {
			var n int64
			if i := slices.IndexFunc(shares, func(s policies.Share) bool { return s.Member == m.id }); i >= 0 {
				n = shares[i].Count
				if ln.name != anywhere {
					n = ln.want
					if len(has) > 0 && !slices.Contains(has, m.id) {
						n = 0
					}
				}
			}
			c := ln.at[m]
			if c == nil {
				if n == 0 {
					continue
				}
				c = ln.cell(m)
			}
			if c.share != n {
				if n > c.share {
					c.since = now
				}
				c.share, c.lazy = n, false
			}
		}
	}
}

// forget drops the record of everything sent to a member: its ResourceManager has lost it.
func (l *ledger) forget(m *link) {
	for _, g := range l.groups {
		for _, ln := range g.lines {
			if c := ln.at[m]; c != nil {
				*c = cell{share: c.share, body: -1, since: c.since}
			}
		}
	}
}

// collect returns the asks to send to a member, as clones of the AM's asks with the member's share as their number.
// quiet: the member's last answer granted nothing, so a correction does not race with grants on their way. A member
// that refused a request with several groups gets one group at a time.
func (l *ledger) collect(m *link, quiet bool) []*yarnpb.ResourceRequestProto {
	var out []*yarnpb.ResourceRequestProto
	for _, g := range l.groups {
		if m.singly && len(out) > 0 {
			return out
		}
		for _, ln := range g.lines {
			c := ln.at[m]
			if !m.outdated(g, ln, quiet) {
				continue
			}
			n := c.share
			if m.places(g) {
				n = 0
			}
			a := ln.ask.CloneVT()
			a.NumContainers = proto.Int32(int32(min(n, 1<<31-1)))
			if n == 0 && a.NodeLabelExpression != nil {
				a.NodeLabelExpression = proto.String("") // the member may no longer have the label
			}
			out = append(out, a)
			c.prior = max(c.table, 0)
			c.table, c.body, c.carried, c.lazy, c.unconfirmed, c.unsure = n, ln.body, true, false, false, false
		}
	}
	m.singly = false
	return out
}

// settled reports whether the member has received all its asks and refused none.
func (l *ledger) settled(m *link) bool {
	for _, g := range l.groups {
		for _, ln := range g.lines {
			if c := ln.at[m]; c != nil && (c.hold || c.carried) || m.outdated(g, ln, true) {
				return false
			}
		}
	}
	return true
}

// differs reports whether collect would return any asks.
func (l *ledger) differs(m *link, quiet bool) bool {
	for _, g := range l.groups {
		for _, ln := range g.lines {
			if m.outdated(g, ln, quiet) {
				return true
			}
		}
	}
	return false
}

// outdated reports whether a member's line must be sent. Of a group whose containers the session places, the member
// must have none.
func (m *link) outdated(g *group, ln *line, quiet bool) bool {
	c := ln.at[m]
	switch {
	case c == nil || ln.ask == nil || c.hold:
		return false
	case m.places(g):
		return c.table != 0
	}
	return c.differs(ln.body, quiet)
}

// isClear reports whether a member has none of the group's asks. Otherwise it may grant containers of them too.
func (g *group) isClear(m *link) bool {
	return !slices.ContainsFunc(g.lines, func(ln *line) bool {
		c := ln.at[m]
		return c != nil && (c.table != 0 || c.carried)
	})
}

func (c *cell) differs(body int, quiet bool) bool {
	switch {
	case c.share > 0 && c.body != body:
		return true
	case c.table == c.share:
		return c.unsure && c.share > 0
	case c.lazy && c.table > c.share && c.share > 0:
		return quiet
	}
	return true
}

// landed records that a member has processed its last request.
func (l *ledger) landed(m *link) {
	for _, g := range l.groups {
		for _, ln := range g.lines {
			if c := ln.at[m]; c != nil {
				c.carried, c.prior = false, 0
			}
		}
	}
}

// refused records that the member refused its last request as a whole, so the member has none of its asks. It returns
// the refused group, which is not sent again until the AM repeats it. If the request had several groups, the refused
// one is unknown. Then the result is nil, and the groups are sent one by one, except to home, whose refusal the AM
// receives.
func (l *ledger) refused(m *link) *group {
	var of []*group
	for _, g := range l.groups {
		if slices.ContainsFunc(g.lines, func(ln *line) bool { return ln.at[m] != nil && ln.at[m].carried }) {
			of = append(of, g)
		}
	}
	m.singly = len(of) > 1 && !m.home
	for _, g := range of {
		for _, ln := range g.lines {
			if c := ln.at[m]; c != nil && c.carried {
				c.carried, c.table, c.hold = false, -1, !m.singly
			}
		}
	}
	if len(of) != 1 {
		return nil
	}
	return of[0]
}

// lower subtracts a grant from the member's assumed count.
func (c *cell) lower() {
	switch {
	case c.carried && c.prior > 0:
		c.prior-- // granted before the ask arrived, so the ask overwrote the lower count
		c.lazy, c.unsure = true, true
	case c.table > 0:
		c.table--
	}
}

// granted counts one grant of a member for the group, and reports whether the AM still wants it.
func (g *group) granted(m *link, host string, now time.Time) bool {
	star := g.star()
	c := star.cell(m)
	before := c.share
	c.lower()
	c.since, m.grants, m.wanted = now, now, time.Time{}
	if i := slices.Index(g.left, m); i >= 0 {
		g.left = slices.Delete(g.left, i, i+1)
	}
	if c.share > 0 {
		c.share--
	}
	for _, ln := range g.lines {
		p := ln.at[m]
		switch {
		case ln.name == anywhere || p == nil:
		case ln.name == host:
			// Granted on a requested host: the ResourceManager lowered that line too, and the AM will lower it.
			ln.want = max(0, ln.want-1)
			p.share = max(0, p.share-1)
			p.lower()
		case strings.HasPrefix(ln.name, "/"):
			p.unconfirmed = true // it may have lowered the rack's line; the AM's next ask of the line corrects it
		}
	}
	if g.need <= 0 {
		return false
	}
	g.need--
	g.unsent++
	if g.hedged || before == 0 {
		g.dirty = true // other members are asked for one too many now
	}
	return true
}

// ungrant undoes granted for a grant that the AM will not receive.
func (g *group) ungrant(host string) {
	if g.unsent > 0 {
		g.unsent--
	}
	g.need++
	g.dirty = true
	for _, ln := range g.lines {
		if ln.name == host {
			ln.want++
		}
	}
}

// resource converts a resource message. Memory and cores have separate fields; Java repeats them in the map.
func resource(p *yarnpb.ResourceProto) creel.Resource {
	r := creel.Resource{MemoryMB: p.GetMemory(), VCores: int64(p.GetVirtualCores())}
	for _, v := range p.GetResourceValueMap() {
		if k := v.GetKey(); k != creel.MemoryName && k != creel.VCoresName {
			n, err := creel.ConvertUnits(v.GetValue(), v.GetUnits(), "")
			if err != nil {
				n = v.GetValue()
			}
			r = r.With(k, n)
		}
	}
	return r
}

func sortIDs(ids []creel.ContainerID) {
	slices.SortFunc(ids, func(a, b creel.ContainerID) int { return a.Compare(b) })
}
