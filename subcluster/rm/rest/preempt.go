// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/go-chi/chi/v5"
)

// preemption serves creel's own document about the containers to be preempted for one queue. The caller must administer
// the queue, because the document names other users' applications.
func (h *queuesAPI) preemption(w http.ResponseWriter, r *http.Request) {
	who := h.caller(r)
	groups := h.s.Groups(who.User)
	var doc subcluster.Preemption
	err := h.ask(r, func(m *rm.Machine, _ time.Time) error {
		q, known := m.Queue(chi.URLParam(r, "queue"))
		if !known {
			return &creel.Error{Kind: creel.ErrQueueNotFound, What: "Unknown queue: " + chi.URLParam(r, "queue")}
		}
		if h.s.ACLs() && !h.s.IsAdmin(who.User) &&
			!m.MayAdminister(string(q.Path), who.User, groups) {
			return &creel.Error{
				Kind: creel.ErrNotPermitted,
				What: "User " + who.User + " may not view preemption for queue " + string(q.Path),
				Try:  "call as an administrator of the queue",
			}
		}
		p, err := m.PlanPreemption(string(q.Path))
		doc = subcluster.Preemption{Queue: q.Path, On: p.On, Victims: []subcluster.Victim{}}
		for i := range p.Victims {
			v := &p.Victims[i]
			seconds := v.Age.Seconds()
			doc.Victims = append(doc.Victims, subcluster.Victim{
				Container: v.Container, User: v.User, Queue: v.Queue, Node: v.Node.String(),
				Resource: subcluster.AmountsOf(v.Resource), AM: v.AM, For: v.For, ForQueue: v.ForQueue,
				Rule: v.Rule.String(), Why: v.Why, UnderNotice: v.UnderNotice, Kill: v.By, Ran: seconds,
				MemorySeconds: int64(float64(v.Resource.MemoryMB) * seconds),
				VCoreSeconds:  int64(float64(v.Resource.VCores) * seconds),
			})
		}
		return err
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.sendDocument(w, r, doc)
}
