// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// QueueTally counts a leaf queue's applications in all members, each at its home.
type QueueTally struct {
	Queue            creel.QueuePath
	Running, Waiting int64
	OldestWait       time.Duration // 0 if none waits, or if members do not report it
}

// Tallies counts the applications of each leaf queue for metrics, by the same list and rule as pages and /api/v1. It
// returns nil while no member has sent its applications. If members publish changes, the list is that of the last
// update: a scrape costs them nothing.
func Tallies(ctx context.Context, h *Handler) []QueueTally {
	var rows []*AppRow
	if h.feed.usable() {
		rows = h.fedApps.last("")
	} else {
		ctx, cancel := context.WithTimeout(ctx, countWait)
		defer cancel()
		list, parts, err := h.shownApps.list(ctx, url.Values{"user.name": {h.conf.User}}.Encode(), false)
		if err == nil && anyPart(parts) {
			rows = append([]*AppRow{}, list...)
		}
	}
	if rows == nil {
		return nil
	}
	now, by := time.Now(), countsBy[creel.QueuePath]{}
	for _, queue := range leafQueues(h.server.View()) {
		by[queue] = &AppCounts{}
	}
	for _, a := range rows {
		by.add(creel.QueuePath(a.Queue), a, now)
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

// Waiting counts the waiting applications in the last list, for the history; nil if members publish no changes, or if
// there is no list yet.
func Waiting(h *Handler, now time.Time) *router.Waiting {
	rows := h.fedApps.last("")
	if rows == nil || !h.feed.usable() {
		return nil
	}
	w := &router.Waiting{Members: map[creel.SubclusterID]int64{}, Queues: map[creel.QueuePath]int64{}}
	for _, a := range rows {
		var c AppCounts
		if c.add(a, false, now); c.Waiting == 0 {
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
