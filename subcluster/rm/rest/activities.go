// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// activityNode is an entry of an activity tree, as in YARN's documents. A nil number is left out.
type activityNode struct {
	name                                   string
	appPriority, requestPriority, requests *int64
	state                                  explain.Outcome
	diagnostic, nodeID                     string
	group                                  []string // nodes of a group; nil for a single entry
	children                               []activityNode
}

const allocated explain.Outcome = "ALLOCATED"

func (n *activityNode) write(w *writer) {
	w.OptText("name", n.name)
	for _, f := range []struct {
		name  string
		value *int64
	}{
		{"appPriority", n.appPriority}, {"requestPriority", n.requestPriority}, {"allocationRequestId", n.requests},
	} {
		if f.value != nil {
			w.Int(f.name, *f.value)
		}
	}
	w.Text("allocationState", string(n.state))
	w.OptText("diagnostic", n.diagnostic)
	w.OptText("nodeId", n.nodeID)
	if n.group != nil {
		w.Int("count", int64(len(n.group)))
		w.Texts("nodeIds", n.group)
	}
	w.List("children", len(n.children), func(w *writer, i int) { n.children[i].write(w) })
}

// grouped merges entries with the same outcome and diagnostic into one with the list of their nodes.
func grouped(list []activityNode) (out []activityNode) {
	for _, n := range list {
		i := slices.IndexFunc(out, func(g activityNode) bool {
			return g.state == n.state && g.diagnostic == n.diagnostic
		})
		if i < 0 {
			i = len(out)
			out = append(out, activityNode{state: n.state, diagnostic: n.diagnostic, group: []string{}})
		}
		out[i].group = append(out[i].group, n.nodeID)
	}
	return out
}

// request is the entry of an ask with its entries on nodes.
func request(priority int32, id int64, byDiagnostic bool, children ...activityNode) activityNode {
	n := activityNode{
		name:            "request_" + strconv.Itoa(int(priority)) + "_" + strconv.FormatInt(id, 10),
		requestPriority: new(int64(priority)), requests: &id, state: children[0].state,
	}
	for _, c := range children {
		if c.state == allocated {
			n.state = allocated
		}
	}
	if n.children = children; byDiagnostic {
		n.children = grouped(children)
	}
	return n
}

func onNode(a *explain.AskOn, node string) activityNode {
	return activityNode{state: a.Outcome, diagnostic: a.Text, nodeID: node}
}

func ofGrant(g *rm.GrantActivity, node string) activityNode {
	return activityNode{name: g.Container.String(), state: allocated, nodeID: node}
}

// groupBy reads the parameter groupBy. why is the error, "" for none.
func groupBy(q url.Values) (byDiagnostic bool, why string) {
	switch v := q.Get("groupBy"); {
	case v == "":
		return false, ""
	case strings.EqualFold(v, "diagnostic"):
		return true, ""
	default:
		return false, "Got invalid groupBy: " + v + ", valid groupBy types: [DIAGNOSTIC]"
	}
}

// activities serves the last record of a node's consideration, and requests the next one.
func (h *queuesAPI) activities(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name := q.Get("nodeId")
	byDiagnostic, why := groupBy(q)
	var last *rm.NodeActivity
	if why == "" {
		err := h.ask(r, func(m *rm.Machine, now time.Time) (err error) {
			id := creel.NodeID{}
			if name != "" {
				var known bool
				if id, known = nodeNamed(m, name); !known {
					why = "Cannot find node manager with given node id"
					return nil
				}
			}
			last, err = m.RecordNode(now, id)
			return err
		})
		if err != nil {
			h.refuse(w, r, err)
			return
		}
	}
	if why == "" && last == nil {
		if why = "waiting for next allocation"; name != "" {
			why = "waiting for display"
		}
	}
	h.reply(w, r, http.StatusOK, "activities", rooted, func(w *writer) {
		if last == nil {
			w.OptText("nodeId", name)
			w.Text("diagnostic", why)
			return
		}
		writeActivity(w, last, byDiagnostic)
	})
}

// nodeNamed finds a node by host:port, or by its host alone.
func nodeNamed(m *rm.Machine, name string) (creel.NodeID, bool) {
	if id, err := labelledNode(name); err == nil && m.HasNode(id) {
		return id, id.Port != 0 || hostNode(m, &id)
	}
	return creel.NodeID{}, false
}

// hostNode completes an id without a port.
func hostNode(m *rm.Machine, id *creel.NodeID) bool {
	for n := range m.Nodes {
		if n.ID.Host == id.Host {
			*id = n.ID
			return true
		}
	}
	return false
}

func writeActivity(w *writer, a *rm.NodeActivity, byDiagnostic bool) {
	w.Text("nodeId", a.Node.String())
	writeTime(w, a.At)
	if a.Full && len(a.Grants) == 0 && !a.Reserved {
		w.Text("diagnostic", "do not have available resources")
		return
	}
	w.List("allocations", len(a.Grants)+1, func(w *writer, i int) {
		w.Text("partition", a.Partition)
		root, final := activityNode{}, "SKIPPED"
		switch {
		case i < len(a.Grants):
			g := &a.Grants[i]
			w.Text("updatedContainerId", g.Container.String())
			if root, final = pathTo(g, a.Node.String(), byDiagnostic), "ALLOCATED"; g.FromReservation {
				final = "ALLOCATED_FROM_RESERVED"
			}
		default:
			if root = queueNode(&a.Root, a.Node.String(), byDiagnostic); a.Reserved {
				final = "RESERVED"
			}
		}
		w.Text("finalAllocationState", final)
		w.Object("root", root.write)
	})
}

func writeTime(w *writer, at time.Time) {
	w.Int("timestamp", at.UnixMilli())
	w.Text("dateTime", at.UTC().Format("Mon Jan 02 15:04:05 MST 2006"))
}

// pathTo is the tree from the root to one grant.
func pathTo(g *rm.GrantActivity, node string, byDiagnostic bool) activityNode {
	n := activityNode{
		name: g.Container.Attempt.Application.String(), appPriority: new(int64(g.AppPriority)), state: explain.Accepted,
		children: []activityNode{request(g.Priority, g.AllocationRequestID, byDiagnostic, ofGrant(g, node))},
	}
	for p := g.Queue; p != ""; p = p.Parent() {
		n = activityNode{name: string(p), state: explain.Accepted, children: []activityNode{n}}
	}
	return n
}

// queueNode is the tree of a queue's outcomes.
func queueNode(q *explain.QueueOn, node string, byDiagnostic bool) activityNode {
	n := activityNode{name: string(q.Path), state: q.Outcome, diagnostic: q.Text}
	for i := range q.Children {
		n.children = append(n.children, queueNode(&q.Children[i], node, byDiagnostic))
	}
	for _, a := range q.Apps {
		app := activityNode{
			name: a.App.String(), appPriority: new(int64(a.Priority)), state: a.Outcome, diagnostic: a.Text,
		}
		for i := range a.Asks {
			k := &a.Asks[i]
			asked := request(k.Priority, k.AllocationRequestID, byDiagnostic, onNode(k, node))
			app.children = append(app.children, asked)
		}
		n.children = append(n.children, app)
	}
	return n
}

// bulkActivities waits for the next considerations of any nodes.
func (h *queuesAPI) bulkActivities(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	byDiagnostic, why := groupBy(q)
	want := 10
	if v := q.Get("activitiesCount"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			why = "activitiesCount must be a number above 0"
		}
		want = min(n, rm.MaxBulk)
	}
	if why != "" {
		h.refuse(w, r, badRequest(cause+why))
		return
	}
	var b *rm.Bulk
	err := h.ask(r, func(m *rm.Machine, now time.Time) (err error) {
		b, err = m.RecordBulk(now, want)
		return err
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	defer h.read(context.WithoutCancel(r.Context()), func(m *rm.Machine, _ time.Time) { m.EndBulk(b) })
	var done []rm.NodeActivity
	for ready := false; !ready; {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		if err := h.read(r.Context(), func(m *rm.Machine, _ time.Time) { done, ready = m.Bulk(b) }); err != nil {
			h.refuse(w, r, err)
			return
		}
	}
	h.reply(w, r, http.StatusOK, "bulkActivities", rooted, func(w *writer) {
		w.List("activities", len(done), func(w *writer, i int) { writeActivity(w, &done[i], byDiagnostic) })
	})
}

// appQuery are the parameters of an application's activities.
type appQuery struct {
	maxTime                             time.Duration
	priorities, requests                map[int64]bool // nil: all
	limit                               int            // 0: none
	refresh, get, summarize, diagnostic bool
}

// readAppQuery reads the parameters. why is the error, "" for none.
func readAppQuery(q url.Values) (a appQuery, why string) {
	if a.diagnostic, why = groupBy(q); why != "" {
		return a, why
	}
	seconds := 3.0
	var err error
	if v := q.Get("maxTime"); v != "" {
		if seconds, err = strconv.ParseFloat(v, 64); err != nil || !(seconds >= 0) {
			return a, "maxTime must be a number of seconds"
		}
	}
	a.maxTime = time.Duration(min(seconds, 600) * float64(time.Second))
	for name, to := range map[string]*map[int64]bool{
		"requestPriorities": &a.priorities, "allocationRequestIds": &a.requests,
	} {
		for _, v := range listed(q[name]) {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return a, name + " must be numbers"
			}
			if *to == nil {
				*to = map[int64]bool{}
			}
			(*to)[n] = true
		}
	}
	if v := q.Get("limit"); v != "" {
		if a.limit, err = strconv.Atoi(v); err != nil || a.limit <= 0 {
			return a, "limit must be greater than 0!"
		}
	}
	actions := listed(q["actions"])
	a.refresh, a.get = len(actions) == 0, len(actions) == 0
	for _, v := range actions {
		switch strings.ToLower(v) {
		case "refresh":
			a.refresh = true
		case "get":
			a.get = true
		default:
			return a, "Got invalid action: " + v + ", valid actions: [REFRESH, GET]"
		}
	}
	a.summarize = strings.EqualFold(q.Get("summarize"), "true")
	return a, ""
}

// listed splits parameters that may be repeated, or separated by commas.
func listed(values []string) (out []string) {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			if one = strings.TrimSpace(one); one != "" {
				out = append(out, one)
			}
		}
	}
	return out
}

// appActivities serves the current reason why an application waits, and the recorded considerations of it. It records
// for some seconds if the request permits that.
func (h *queuesAPI) appActivities(w http.ResponseWriter, r *http.Request) {
	id, err := appOf(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	query, wrong := readAppQuery(r.URL.Query())
	var why rm.Why
	var at time.Time
	var all []rm.AppActivity
	err = h.ask(r, func(m *rm.Machine, now time.Time) error {
		a, ok := m.App(id)
		if !ok {
			return noApp(id)
		}
		if err := h.apps.inside(m, r, &a); err != nil {
			return err
		}
		at = now
		if wrong != "" {
			return nil
		}
		if why, _ = m.Why(id); query.get {
			all, _ = m.AppActivities(id)
		}
		if query.refresh && !a.State.Ended() {
			return m.RecordApp(now, id, query.maxTime)
		}
		return nil
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	list := query.allocations(all)
	h.reply(w, r, http.StatusOK, "appActivities", rooted, func(w *writer) {
		w.Text("applicationId", id.String())
		w.Text("diagnostic", cmp.Or(wrong, why.Sentence()))
		writeTime(w, at)
		w.List("allocations", len(list), func(w *writer, i int) { list[i].write(w) })
	})
}

// appAllocation is one consideration of an application, or the summary of several.
type appAllocation struct {
	node       string // "" for a summary
	queue      creel.QueuePath
	priority   int32
	at         time.Time
	state      explain.Outcome
	diagnostic string
	requests   []appRequest
}

// appRequest is an ask of an application with its entries on nodes.
type appRequest struct {
	priority int32
	id       int64
	on       []activityNode
}

func (a *appAllocation) add(priority int32, id int64, on activityNode, latestOnly bool) {
	i := slices.IndexFunc(a.requests, func(r appRequest) bool { return r.priority == priority && r.id == id })
	if i < 0 {
		i = len(a.requests)
		a.requests = append(a.requests, appRequest{priority: priority, id: id})
	}
	r := &a.requests[i]
	known := func(n activityNode) bool { return n.nodeID == on.nodeID && n.name == on.name }
	if !latestOnly || !slices.ContainsFunc(r.on, known) {
		r.on = append(r.on, on)
	}
}

// allocations selects and summarizes recorded considerations, newest first.
func (q *appQuery) allocations(all []rm.AppActivity) (out []entry) {
	var list []appAllocation
	for i := range all {
		a := &all[i]
		of := appAllocation{
			node: a.Node.String(), queue: a.On.Queue, priority: a.On.Priority, at: a.At, state: explain.Skipped,
			diagnostic: a.On.Text,
		}
		to := &of
		if q.summarize && len(list) > 0 {
			to = &list[0]
		}
		for _, g := range a.Grants {
			if q.wants(g.Priority, g.AllocationRequestID) {
				to.add(g.Priority, g.AllocationRequestID, ofGrant(&g, of.node), q.summarize)
			}
		}
		for _, k := range a.On.Asks {
			if q.wants(k.Priority, k.AllocationRequestID) {
				to.add(k.Priority, k.AllocationRequestID, onNode(&k, of.node), q.summarize)
			}
		}
		filtered := len(q.priorities) > 0 || len(q.requests) > 0
		if to == &of && (len(of.requests) > 0 || !filtered) {
			list = append(list, of)
		}
	}
	if q.limit > 0 {
		list = list[:min(q.limit, len(list))]
	}
	for i := range list {
		if q.summarize {
			list[i].node = ""
		}
		out = append(out, entry{&list[i], q.diagnostic})
	}
	return out
}

func (q *appQuery) wants(priority int32, id int64) bool {
	return (q.priorities == nil || q.priorities[int64(priority)]) && (q.requests == nil || q.requests[id])
}

// entry is an appAllocation as written.
type entry struct {
	*appAllocation
	byDiagnostic bool
}

func (a entry) write(w *writer) {
	var children []activityNode
	for _, r := range a.requests {
		c := request(r.priority, r.id, a.byDiagnostic, r.on...)
		c.name = ""
		if children = append(children, c); c.state == allocated || c.state == explain.Reserved && a.state != allocated {
			a.state = c.state
		}
	}
	w.OptText("nodeId", a.node)
	w.Text("queueName", string(a.queue))
	w.Int("appPriority", int64(a.priority))
	writeTime(w, a.at)
	w.Text("allocationState", string(a.state))
	w.OptText("diagnostic", a.diagnostic)
	w.List("children", len(children), func(w *writer, i int) { children[i].write(w) })
}
