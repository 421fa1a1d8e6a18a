// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// maxDrain bounds the body of an order to drain a host.
const maxDrain = 64 << 10

// drainsAPI serves the calls that take hosts out.
type drainsAPI struct{ h *Handler }

// list lists the hosts that calls drain, with what still runs there.
func (a drainsAPI) list(w http.ResponseWriter, r *http.Request) {
	if a.hidden(w, r) {
		return
	}
	list, err := a.h.s.Drains.List(r.Context())
	doc := subcluster.HostsDoc{Hosts: []subcluster.HostDoc{}}
	for i := range list {
		doc.Hosts = append(doc.Hosts, hostDoc(&list[i], time.Now()))
	}
	a.answer(w, r, doc, err)
}

// host serves one host: the effect of a drain before it, and its progress after it.
func (a drainsAPI) host(w http.ResponseWriter, r *http.Request) {
	if a.hidden(w, r) {
		return
	}
	state, err := a.h.s.Drains.State(r.Context(), param(r, "host"))
	if err == nil && len(state.Nodes) == 0 && state.Drain == nil {
		err = notFound("host " + state.Host + " is not found")
	}
	a.answer(w, r, hostDoc(&state, time.Now()), err)
}

// hidden refuses users that may not see the containers of a host: with ACLs, all but administrators.
func (a drainsAPI) hidden(w http.ResponseWriter, r *http.Request) bool {
	if !a.h.s.ACLs() || a.h.s.IsAdmin(a.h.caller(r).User) {
		return false
	}
	a.h.refuse(w, r, &refusal{
		http.StatusForbidden, classForbidden, cause + "Only admins can carry out this operation.",
	})
	return true
}

// drain takes a host out.
func (a drainsAPI) drain(w http.ResponseWriter, r *http.Request) {
	var order subcluster.DrainOrder
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDrain))
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		a.h.refuse(w, r, badRequest("the order is longer than 64 KiB"))
		return
	}
	if err == nil && len(b) > 0 {
		err = strictjson.Unmarshal(b, &order)
	}
	if err != nil {
		a.h.refuse(w, r, badRequest("the order is no drain: "+err.Error()))
		return
	}
	host := param(r, "host")
	err = a.h.s.Drains.Drain(r.Context(), a.h.caller(r), server.HostDrain{
		Host: host, Reason: order.Reason, AtOnce: order.AtOnce,
		Timeout: time.Duration(max(-1, min(order.TimeoutSeconds, 1e8)) * float64(time.Second)), // Drain has the bounds
	})
	a.changed(w, r, host, err)
}

// undrain takes a host in again.
func (a drainsAPI) undrain(w http.ResponseWriter, r *http.Request) {
	host := param(r, "host")
	a.changed(w, r, host, a.h.s.Drains.Undrain(r.Context(), a.h.caller(r), host))
}

// changed answers a change with the host as it is now.
func (a drainsAPI) changed(w http.ResponseWriter, r *http.Request, host string, err error) {
	if errors.Is(err, creel.ErrConflict) {
		err = &refusal{http.StatusConflict, classBadRequest, err.Error()}
	}
	if err != nil {
		a.h.refuse(w, r, err)
		return
	}
	state, err := a.h.s.Drains.State(r.Context(), host)
	a.answer(w, r, hostDoc(&state, time.Now()), err)
}

func (a drainsAPI) answer(w http.ResponseWriter, r *http.Request, doc any, err error) {
	var body []byte
	if err == nil {
		body, err = json.Marshal(doc)
	}
	if err != nil {
		a.h.refuse(w, r, err)
		return
	}
	w.Header()["Content-Type"] = asJSON
	send(w, r, http.StatusOK, body)
}

func hostDoc(h *server.HostState, now time.Time) subcluster.HostDoc {
	doc := subcluster.HostDoc{Host: h.Host, Nodes: []subcluster.HostNode{}}
	if d := h.Drain; d != nil {
		doc.Drain = &subcluster.HostDrain{
			DrainOrder: subcluster.DrainOrder{
				AtOnce: d.AtOnce, Reason: d.Reason, TimeoutSeconds: d.Timeout.Seconds(),
			},
			By: d.By, Since: time.UnixMilli(d.Since).UTC(),
		}
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		node := subcluster.HostNode{
			ID: n.ID.String(), State: n.State.String(), Containers: n.Containers, AMs: n.AMs,
			Applications: []subcluster.HostApp{},
		}
		if !n.LeaveBy.IsZero() && n.State == creel.NodeDecommissioning {
			node.LeavesIn = new(max(0, n.LeaveBy.Sub(now).Round(100*time.Millisecond).Seconds()))
		}
		for _, a := range n.Applications {
			node.Applications = append(node.Applications, subcluster.HostApp{
				ID: a.ID.String(), Containers: a.Containers, AM: a.AM,
			})
		}
		doc.Nodes = append(doc.Nodes, node)
	}
	return doc
}
