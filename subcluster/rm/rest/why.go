// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"time"

	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// why serves creel's own document about the limits that delay one application here, with their numbers. Routers merge
// the documents of all members. Callers without view access are rejected.
func (h *appsAPI) why(w http.ResponseWriter, r *http.Request) {
	id, err := appOf(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	doc := subcluster.AppWait{Application: id}
	err = h.ask(r, func(m *rm.Machine, now time.Time) error {
		a, ok := m.App(id)
		if !ok {
			return noApp(id)
		}
		if err := h.inside(m, r, &a); err != nil {
			return err
		}
		y, _ := m.Why(id)
		doc.State, doc.Queue, doc.User, doc.Diagnostics = a.State.String(), a.Queue, a.User, a.Diagnostics
		doc.Unmanaged, doc.Containers = a.Unmanaged, a.Containers
		doc.Opportunistic = opportunisticOf(rm.OpportunisticOf(m, id), now)
		if y.Limit != explain.LimitNone {
			doc.Wait = waitOf(y)
		}
		return nil
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.sendDocument(w, r, doc)
}

// maxNodesWaiting limits the nodes in an answer.
const maxNodesWaiting = 10

// opportunisticOf writes an application's opportunistic containers; nil for none.
func opportunisticOf(v *rm.OpportunisticView, now time.Time) *subcluster.Opportunistic {
	if v == nil {
		return nil
	}
	out := &subcluster.Opportunistic{
		Containers: v.Containers, Asked: v.Asked, Waiting: v.Waiting, NodesWaiting: len(v.Nodes),
	}
	if v.Held != nil {
		out.Held = v.Held.String()
	}
	for _, n := range v.Nodes[:min(len(v.Nodes), maxNodesWaiting)] {
		out.Nodes = append(out.Nodes, subcluster.NodeWait{
			Node: n.Node.String(), Waiting: n.Containers, Longest: max(now.Sub(n.Since), 0).Seconds(),
		})
	}
	return out
}

// waitOf writes a reason with the fields of its kind.
func waitOf(y rm.Why) *subcluster.Wait {
	w := &subcluster.Wait{
		Code: y.Limit.Code(), Queue: y.Where, Asked: y.Waiting, Text: y.Text, Unlock: y.Try, Before: y.Before,
		Needs: subcluster.AmountsOf(y.Need), Used: subcluster.AmountsOf(y.Used), Limit: subcluster.AmountsOf(y.Bound),
	}
	switch y.Limit {
	case explain.LimitParallelApps:
		w.Used = subcluster.Amounts{subcluster.Applications: int64(y.Count)}
		w.Limit = subcluster.Amounts{subcluster.Applications: int64(y.Max)}
		w.Needs = subcluster.Amounts{subcluster.Applications: 1}
		w.User = y.User
	case explain.LimitUser, explain.LimitUserAM:
		w.User = y.User
	}
	if y.Nodes != (explain.NodeCounts{}) {
		w.Nodes = (*subcluster.NodeCounts)(&y.Nodes)
	}
	return w
}
