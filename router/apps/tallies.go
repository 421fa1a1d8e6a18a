// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster"
)

// QueueTally counts a leaf queue's applications in all members, each at its home.
type QueueTally struct {
	Queue            creel.QueuePath
	Running, Waiting int64
	OldestWait       time.Duration // 0 if none waits, or if members do not report it
}

// Tallies counts the applications of each leaf queue for metrics, by the same list and rule as pages and the API. It
// returns nil while no member has sent its applications. The applications of members that publish changes are those of
// the last update: a scrape costs these members nothing.
func (l *List) Tallies(ctx context.Context, view *subcluster.View) []QueueTally {
	v := l.forCounts(ctx)
	if v == nil || !snapshot.Sent(v.Parts) {
		return nil
	}
	now, by := time.Now(), CountsBy[creel.QueuePath]{}
	for _, queue := range leafQueues(view) {
		by[queue] = &Counts{}
	}
	for _, a := range v.Rows {
		by.Add(creel.QueuePath(a.Queue), a, now)
	}
	out := make([]QueueTally, 0, len(by))
	for queue, c := range by {
		out = append(out, QueueTally{
			queue, c.Running, c.Waiting, time.Duration(c.OldestWait * float64(time.Second)),
		})
	}
	slices.SortFunc(out, func(a, b QueueTally) int { return strings.Compare(string(a.Queue), string(b.Queue)) })
	return out
}

// forCounts returns the last list for this router, nil if there is none.
func (l *List) forCounts(ctx context.Context) *View {
	by := Reader{Identity: url.Values{"user.name": {l.conf.User}}.Encode(), User: l.conf.User}
	if !l.shares() {
		v, err := l.Read(ctx, by)
		if err != nil {
			return nil
		}
		return v
	}
	v := &View{}
	rows, parts, ok := l.shared.Last(struct{}{})
	if !ok || l.complete(ctx, by, v, rows, parts) != nil {
		return nil
	}
	return v
}

// leafQueues returns the leaf queues that members report, so that a queue without applications counts as zero.
func leafQueues(view *subcluster.View) (leaves []creel.QueuePath) {
	if view == nil {
		return nil
	}
	parents, all := map[creel.QueuePath]bool{creel.RootQueue: true}, map[creel.QueuePath]bool{}
	for i := range view.Members {
		m := &view.Members[i]
		if !router.Counted(m) {
			continue
		}
		for k := range m.Load.Queues {
			if queue := m.Load.Queues[k].Queue; queue != creel.RootQueue {
				all[queue], parents[queue.Parent()] = true, true
			}
		}
	}
	for queue := range all {
		if !parents[queue] {
			leaves = append(leaves, queue)
		}
	}
	return leaves
}

// Waiting counts the waiting applications in the last list, for the history; nil if a member publishes no changes, or
// if there is no list yet.
func (l *List) Waiting(now time.Time) *router.Waiting {
	rows, parts, ok := l.shared.Last(struct{}{})
	if !ok || apartOf(parts) != "" {
		return nil
	}
	w := &router.Waiting{Members: map[creel.SubclusterID]int64{}, Queues: map[creel.QueuePath]int64{}}
	for _, a := range rows {
		if a.rank != waiting {
			continue
		}
		w.All++
		w.Members[a.Home]++
		for queue := creel.QueuePath(a.Queue); queue != ""; queue = queue.Parent() {
			w.Queues[queue]++
		}
	}
	return w
}
