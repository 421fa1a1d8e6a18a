// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// FitDoc reports whether a container of a size could ever run in a queue, by the present nodes and limits.
type FitDoc struct {
	// Fits is false only if each member that may run it has no node of this size, or a lower limit of the queue.
	Fits    bool        `json:"fits"`
	Members []FitMember `json:"members"` // with the queue, whose nodes are known
}

// FitMember is a member's answer for a container of a size.
type FitMember struct {
	ID      creel.SubclusterID `json:"id"`
	Fits    bool               `json:"fits"`
	Largest Size               `json:"largest_node"`    // the node with the most memory
	Limit   *Size              `json:"limit,omitempty"` // of the queue there; omitted if it has none
}

// Size is an amount of memory and cores.
type Size struct {
	MemoryMB int64 `json:"memory_mb"`
	VCores   int64 `json:"vcores"`
}

func (s Size) holds(ask Size) bool { return ask.MemoryMB <= s.MemoryMB && ask.VCores <= s.VCores }

// fit serves a FitDoc.
func fit(h *Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		memory, err := number(r, "memory_mb", 0)
		var cores int64
		if err == nil {
			cores, err = number(r, "vcores", 0)
		}
		view := h.server.View()
		if err == nil && view == nil {
			problem(w, noView, "the router has not read the state store")
			return
		}
		if err != nil {
			problemOf(w, err)
			return
		}
		nodes, parts, err := h.shownNodes.Get(r.Context(), identity(r), false)
		if err != nil {
			answer(w, FitDoc{Fits: true, Members: []FitMember{}})
			return
		}
		answer(w, fitOf(view, creel.QueuePath(r.URL.Query().Get("queue")), Size{memory, cores}, nodes,
			len(missingOf(parts, time.Now())) > 0))
	}
}

// fitOf compares a size with nodes and limits. Nodes with a label count, since a queue may use them by default. A
// member that is silent, or whose nodes are unknown, could run anything.
func fitOf(view *subcluster.View, queue creel.QueuePath, ask Size, nodes []*NodeRow, lacking bool) FitDoc {
	doc := FitDoc{Members: []FitMember{}}
	unknown := lacking
	for i := range view.Members {
		m := &view.Members[i]
		load := m.QueueOn(queue, "")
		switch {
		case !router.Counted(m):
			continue
		case len(m.Load.Queues) == 0: // it does not report its queues
			unknown = true
			continue
		case load == nil:
			continue
		}
		of := FitMember{ID: m.ID}
		has := false
		for _, n := range nodes {
			if n.Member != m.ID || n.State != creel.NodeRunning.String() {
				continue
			}
			size := Size{n.UsedMB + n.FreeMB, n.UsedVCores + n.FreeVCores}
			if !has || size.MemoryMB > of.Largest.MemoryMB {
				of.Largest = size
			}
			has, of.Fits = true, of.Fits || size.holds(ask)
		}
		if !has {
			unknown = true
			continue
		}
		if load.Most != nil && !m.Load.ComparesCores() {
			of.Limit = &Size{load.Most.MemoryMB, ask.VCores}
		} else if load.Most != nil {
			of.Limit = &Size{load.Most.MemoryMB, load.Most.VCores}
		}
		of.Fits = of.Fits && (of.Limit == nil || of.Limit.holds(ask) || hasLabels(m, load.Queue))
		doc.Fits = doc.Fits || of.Fits
		doc.Members = append(doc.Members, of)
	}
	doc.Fits = doc.Fits || unknown || len(doc.Members) == 0
	return doc
}

// hasLabels reports whether a queue may use nodes with a label, under other limits.
func hasLabels(m *subcluster.Status, queue creel.QueuePath) bool {
	for i := range m.Load.Queues {
		if q := &m.Load.Queues[i]; q.Queue == queue && q.Label != "" {
			return true
		}
	}
	return false
}
