// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"hash/maphash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Routers cache a list of all members' applications for all their clients. A full fetch each second would be expensive.
// So this ResourceManager numbers the changes of its lines, and sends the changes since a number. A router receives
// each application with all fields and its list of viewers.

// changes numbers the changes of the applications' lines.
type changes struct {
	mu    sync.Mutex
	life  string // identifies this process; numbers of other processes do not apply
	seed  maphash.Seed
	last  uint64 // number of the last change
	round uint64 // number of comparisons of all applications
	lines map[creel.ApplicationID]*lineState
	gone  []goneLine // newest last
	from  uint64     // removals before this number are forgotten
}

// lineState is an application's line with the number of its last change.
type lineState struct {
	line subcluster.AppLine
	view *rm.AppView // view of an ended application; the same while unchanged
	sum  uint64
	at   uint64
	look uint64 // the last round with this application
}

type goneLine struct {
	id string
	at uint64
}

// keptGone limits the number of recorded removals.
const keptGone = 10_000

// appChanges serves the lines that changed since ?since=, to routers.
func (h *appsAPI) appChanges(w http.ResponseWriter, r *http.Request) {
	who := h.caller(r)
	if !h.s.IsRouter(who.User) {
		h.refuse(w, r, &refusal{http.StatusForbidden, classAuthorization,
			"User " + who.User + " is not a router: it is neither a proxy user nor an administrator"})
		return
	}
	c := &h.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	var now time.Time
	if err := h.read(r.Context(), func(m *rm.Machine, at time.Time) { now = at; h.number(m) }); err != nil {
		h.refuse(w, r, err)
		return
	}
	doc := subcluster.AppChanges{
		At: c.life + "-" + strconv.FormatUint(c.last, 10), Now: millis(now), Apps: []*subcluster.AppLine{},
	}
	life, text, _ := strings.Cut(r.URL.Query().Get("since"), "-")
	since, err := strconv.ParseUint(text, 10, 64)
	doc.Whole = err != nil || life != c.life || since < c.from || since > c.last
	if doc.Whole {
		since = 0
	}
	for _, n := range c.lines {
		if n.at > since {
			doc.Apps = append(doc.Apps, &n.line)
		}
	}
	for i := len(c.gone) - 1; i >= 0 && !doc.Whole && c.gone[i].at > since; i-- {
		doc.Gone = append(doc.Gone, c.gone[i].id)
	}
	h.sendDocument(w, r, doc)
}

// number compares all applications with their last lines. It runs in the machine's goroutine and under mu.
func (h *appsAPI) number(m *rm.Machine) {
	c := &h.changes
	if c.lines == nil {
		c.lines, c.seed = map[creel.ApplicationID]*lineState{}, maphash.MakeSeed()
		c.life = strconv.FormatInt(h.s.Started().UnixNano(), 36)
	}
	c.last++
	c.round++
	changed := false
	var look explain.Scan
	viewers := h.s.Viewers(m)
	for a := range m.Apps {
		n := c.lines[a.ID]
		if n == nil {
			n = &lineState{}
			c.lines[a.ID] = n
		}
		n.look = c.round
		may := viewers(a)
		if n.view == a && a.Over && may == n.line.Viewers {
			continue
		}
		line := h.line(m, a, &look, true)
		line.Viewers, line.Hidden = may, h.s.HidesApps()
		b, err := json.Marshal(&line)
		if err != nil {
			continue // cannot fail: the line has only texts and numbers
		}
		n.view = a
		if sum := maphash.Bytes(c.seed, b); sum != n.sum || n.at == 0 {
			n.line, n.sum, n.at, changed = line, sum, c.last, true
		}
	}
	for id, n := range c.lines {
		if n.look != c.round {
			delete(c.lines, id)
			c.gone, changed = append(c.gone, goneLine{id.String(), c.last}), true
		}
	}
	if over := len(c.gone) - keptGone; over > 0 {
		c.from = c.gone[over-1].at
		c.gone = slices.Delete(c.gone, 0, over)
	}
	if !changed {
		c.last-- // so that the next query returns the same number
	}
}
