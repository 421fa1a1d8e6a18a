// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// AppsDoc is /api/v1/apps: all applications in the order of their submission. With ?limit= it is a page of the matching
// applications, newest first.
type AppsDoc struct {
	Apps []subcluster.AppLine `json:"apps"`
	Now  int64                `json:"now"` // ms of this ResourceManager's clock
	// Matching counts the applications of all pages by state; Next is the cursor of the next page.
	Matching map[string]int64 `json:"matching,omitempty"`
	Next     string           `json:"next,omitempty"`
}

// lines serves applications for routers' lists: a fifth of YARN's document, plus the code of each application's wait
// reason, which YARN's document lacks.
func (h *appsAPI) lines(w http.ResponseWriter, r *http.Request) {
	f, err := readLineFilter(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	doc, who := AppsDoc{}, h.caller(r)
	err = h.read(r.Context(), func(m *rm.Machine, now time.Time) {
		doc.Now, doc.Apps = millis(now), []subcluster.AppLine{}
		var look explain.Scan
		if f.limit == 0 {
			for a := range m.Apps {
				if listed, viewable := h.s.Lists(m, who, a); listed {
					doc.Apps = append(doc.Apps, h.line(m, a, &look, viewable))
				}
			}
			return
		}
		found, next := f.page(m, &doc, func(a *rm.AppView) bool {
			listed, _ := h.s.Lists(m, who, a)
			return listed
		})
		for _, a := range found {
			doc.Apps = append(doc.Apps, h.line(m, a, &look, h.s.MayView(m, who, a)))
		}
		doc.Next = next
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.sendDocument(w, r, doc)
}

// line returns one application, with its guarded fields only if viewable.
func (h *appsAPI) line(m *rm.Machine, a *rm.AppView, look *explain.Scan, viewable bool) subcluster.AppLine {
	l := subcluster.AppLine{
		ID: a.ID.String(), Name: a.Name, User: a.User, Queue: string(a.Queue), Type: a.Type,
		State: a.State.String(), Outcome: a.Final.String(), Priority: int64(a.Priority), Tags: a.Tags,
		Unmanaged: a.Unmanaged,
	}
	// Visible to all, like YARN's diagnostics of a waiting application.
	if limit, where := m.Waits(a.ID, look); limit != explain.LimitNone {
		l.Waits, l.WaitsIn = limit.Code(), string(where)
	}
	l.WaitsSince = millis(m.WaitsSince(a.ID))
	if viewable {
		l.Started, l.Finished = millis(a.Submitted), millis(a.Finished)
		if a.InScheduler {
			l.Containers, l.MemoryMB, l.VCores = int64(a.Containers), a.Used.MemoryMB, a.Used.VCores
		}
	}
	return l
}

// lineFilter is the query of a page of applications.
type lineFilter struct {
	states      []creel.ApplicationState
	queue, user string
	search      string // in lower case: in id, name, user, queue or a tag
	limit       int    // 0: all, and no filter
	after       creel.ApplicationID
	hasAfter    bool
}

// stateGroups are names for several states. Routers' list accepts them too.
var stateGroups = map[string][]creel.ApplicationState{
	"running": {creel.AppRunning},
	"waiting": {creel.AppNew, creel.AppNewSaving, creel.AppSubmitted, creel.AppAccepted},
	"ended":   {creel.AppFinished, creel.AppFailed, creel.AppKilled},
}

// maxLines is the longest page.
const maxLines = 1000

func readLineFilter(r *http.Request) (f lineFilter, err error) {
	q := r.URL.Query()
	if f.limit, err = pageLimit(r); err != nil || f.limit == 0 {
		return f, err
	}
	f.queue, f.user, f.search = q.Get("queue"), q.Get("user"), strings.ToLower(strings.TrimSpace(q.Get("q")))
	for _, s := range set(r, "state") {
		if group, ok := stateGroups[strings.ToLower(s)]; ok {
			f.states = append(f.states, group...)
			continue
		}
		state, err := parseState(s)
		if err != nil {
			return f, err
		}
		f.states = append(f.states, state)
	}
	if text := q.Get("cursor"); text != "" {
		f.hasAfter = true
		if f.after, err = creel.ParseApplicationID(text); err != nil {
			return f, badRequest("unknown cursor: leave it out to start at the beginning")
		}
	}
	return f, nil
}

// pageLimit returns the number of items on a page, 0 if the query requests no page.
func pageLimit(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLines {
		return 0, badRequest("limit is not a number from 1 to " + strconv.Itoa(maxLines))
	}
	return n, nil
}

func (f *lineFilter) keeps(a *rm.AppView) bool {
	if f.queue != "" && string(a.Queue) != f.queue && !strings.HasPrefix(string(a.Queue), f.queue+".") &&
		a.Queue.Leaf() != f.queue || f.user != "" && a.User != f.user {
		return false
	}
	if f.search == "" {
		return true
	}
	for _, text := range append([]string{a.ID.String(), a.Name, a.User, string(a.Queue)}, a.Tags...) {
		if strings.Contains(strings.ToLower(text), f.search) {
			return true
		}
	}
	return false
}

// page returns a page of applications, newest first, and the cursor of the next page. It counts all matching
// applications among the listed ones.
func (f *lineFilter) page(m *rm.Machine, doc *AppsDoc, listed func(*rm.AppView) bool) (
	found []*rm.AppView, next string,
) {
	newest := func(a, b *rm.AppView) int {
		return cmp.Or(b.Submitted.Compare(a.Submitted), b.ID.Compare(a.ID))
	}
	doc.Matching = map[string]int64{}
	for a := range m.Apps {
		if !f.keeps(a) || !listed(a) {
			continue
		}
		doc.Matching[a.State.String()]++
		if len(f.states) == 0 || slices.Contains(f.states, a.State) {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, newest)
	if f.hasAfter {
		last, _ := m.App(f.after) // a forgotten application was the last: nothing follows
		found = slices.DeleteFunc(found, func(a *rm.AppView) bool { return newest(a, &last) <= 0 })
	}
	if len(found) > f.limit {
		found = found[:f.limit]
		next = found[f.limit-1].ID.String()
	}
	return found, next
}

// NodesDoc is /api/v1/nodes: a page of the nodes, by id.
type NodesDoc struct {
	Nodes    []subcluster.NodeLine `json:"nodes"`
	Matching int64                 `json:"matching"`
	States   map[string]int64      `json:"states"` // of all nodes that match the filters other than state
	Next     string                `json:"next,omitempty"`
}

// nodeLines serves a page of the nodes, because a subcluster may have 50,000.
func (h *nodesAPI) nodeLines(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := pageLimit(r)
	if limit == 0 {
		limit = 50
	}
	state, search := strings.ToUpper(q.Get("state")), strings.ToLower(strings.TrimSpace(q.Get("q")))
	if err == nil && state != "" {
		if _, unknown := creel.ParseNodeState(state); unknown != nil {
			err = badRequest("there is no node state " + strconv.Quote(state))
		}
	}
	doc := NodesDoc{Nodes: []subcluster.NodeLine{}, States: map[string]int64{}}
	var found []rm.NodeView
	if err == nil {
		err = h.read(r.Context(), func(m *rm.Machine, _ time.Time) {
			for n := range m.Nodes {
				if search != "" && !strings.Contains(strings.ToLower(n.ID.String()+" "+n.Rack+" "+n.Label), search) {
					continue
				}
				if doc.States[n.State.String()]++; state == "" || n.State.String() == state {
					found = append(found, n)
				}
			}
		})
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	doc.Matching = int64(len(found))
	slices.SortFunc(found, func(a, b rm.NodeView) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	for i := range found {
		n := &found[i]
		if n.ID.String() <= q.Get("cursor") {
			continue
		}
		if len(doc.Nodes) == limit {
			doc.Next = doc.Nodes[limit-1].ID
			break
		}
		line := subcluster.NodeLine{
			ID: n.ID.String(), Rack: n.Rack, State: n.State.String(), Web: n.HTTPAddress, Health: n.HealthReport,
			Label: n.Label, Containers: int64(n.Containers), UsedMB: n.Used.MemoryMB, UsedVCores: n.Used.VCores,
		}
		u := &n.Utilization
		line.Queued, line.Opportunistic = int64(u.OpportunisticQueued), int64(u.OpportunisticRunning)
		line.LentMB, line.LentVCores = u.OpportunisticMB<<10, int64(u.OpportunisticVCores)
		line.MeasuredMB, line.MeasuredVCores = int64(u.ContainersPhysicalMB), float64(u.ContainersCPU)
		if o := n.Overallocation; o != (rm.Overallocation{}) {
			line.Overallocation = subcluster.Overallocation{
				Memory: o.Memory, CPU: o.CPU, PredictedMB: int64(u.PeakMB), PredictedVCores: float64(u.PeakCPU),
			}
		}
		if n.State.Usable() {
			free := n.Total.Sub(n.Used)
			line.FreeMB, line.FreeVCores = free.MemoryMB, free.VCores
		}
		doc.Nodes = append(doc.Nodes, line)
	}
	h.sendDocument(w, r, doc)
}
