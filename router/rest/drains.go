// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// HostsDoc is a list of drained hosts of all members.
type HostsDoc struct {
	subcluster.HostsDoc
	Missing []missing `json:"missing"`
}

// drainsAPI serves the calls that take hosts out.
type drainsAPI struct{ h *Handler }

// list lists the hosts that calls drain, of all members or of one.
func (a drainsAPI) list(w http.ResponseWriter, r *http.Request) {
	only := creel.SubclusterID(r.URL.Query().Get("subcluster"))
	parts := hostCall[subcluster.HostsDoc](a.h, r, http.MethodGet, "", nil, only)
	doc := HostsDoc{subcluster.HostsDoc{Hosts: []subcluster.HostDoc{}}, []missing{}}
	for _, p := range parts {
		if p.Err != nil {
			doc.Missing = append(doc.Missing, missing{Member: p.Member, Reason: p.Err.Error(), AgeSeconds: -1})
			continue
		}
		for _, host := range p.Value.Hosts {
			host.Member = p.Member
			doc.Hosts = append(doc.Hosts, host)
		}
	}
	answer(w, doc)
}

// host serves one host: what a drain of it would do, and the progress of its drain.
func (a drainsAPI) host(w http.ResponseWriter, r *http.Request) {
	doc, err := a.find(r)
	done(w, err, doc)
}

// drain takes a host out of its member.
func (a drainsAPI) drain(w http.ResponseWriter, r *http.Request) {
	var in subcluster.DrainOrder
	if !order(w, r, &in) {
		return
	}
	after := "drained"
	if in.AtOnce {
		after = "decommissioned"
	}
	a.change(w, r, &in, after)
}

// undrain takes a host in again.
func (a drainsAPI) undrain(w http.ResponseWriter, r *http.Request) {
	a.change(w, r, nil, "taken in again")
}

// change makes one change at the member that has the host; without an order it deletes the drain.
func (a drainsAPI) change(w http.ResponseWriter, r *http.Request, order *subcluster.DrainOrder, after string) {
	host := pathParam(r, "host")
	doc, err := a.find(r)
	if err == nil {
		method, reason := http.MethodDelete, ""
		var body []byte
		if order != nil {
			method, reason = http.MethodPut, order.Reason
			body, err = json.Marshal(order)
		}
		if err == nil {
			at := doc.Member
			for _, p := range hostCall[subcluster.HostDoc](a.h, r, method, host, body, at) {
				doc, err = p.Value, memberError(p.Err)
			}
			doc.Member = at
		}
		a.h.server.RecordDrain(r.Context(), host, doc.Member, caller(r), after, reason, err)
	}
	done(w, err, doc)
}

// find finds the one member of creel's that has a host.
func (a drainsAPI) find(r *http.Request) (subcluster.HostDoc, error) {
	host, only := pathParam(r, "host"), creel.SubclusterID(r.URL.Query().Get("subcluster"))
	var at []subcluster.HostDoc
	var silent []router.Part[subcluster.HostDoc]
	for _, p := range hostCall[subcluster.HostDoc](a.h, r, http.MethodGet, host, nil, only) {
		switch {
		case p.Err == nil:
			p.Value.Member = p.Member
			at = append(at, p.Value)
		case notFound(p.Err):
		case errors.Is(memberError(p.Err), creel.ErrNotPermitted):
			return subcluster.HostDoc{}, memberError(p.Err)
		default:
			silent = append(silent, p)
		}
	}
	switch {
	case len(at) == 1:
		return at[0], nil
	case len(at) > 1:
		var ids []string
		for _, d := range at {
			ids = append(ids, string(d.Member))
		}
		return subcluster.HostDoc{}, &creel.Error{
			Kind: creel.ErrConflict, What: "host " + host + " is in several subclusters",
			Why: strings.Join(ids, ", ") + " have nodes of this name", Try: "name one with --subcluster",
		}
	case len(silent) > 0:
		_, missing := router.Present(silent)
		return subcluster.HostDoc{}, &creel.Error{
			Kind: creel.ErrUnavailable, What: "host " + host + " cannot be found now",
			Why: "not every subcluster answered: " + router.MissingText(missing), Try: "try again in a moment",
		}
	}
	return subcluster.HostDoc{}, a.noHost(r, host, only)
}

// noHost is the error for a host that no ResourceManager of creel's has. It may be at one of Hadoop's.
func (a drainsAPI) noHost(r *http.Request, host string, only creel.SubclusterID) error {
	all, _, _ := a.h.shownNodes.get(r.Context(), identity(r))
	for _, n := range all {
		at, _, _ := strings.Cut(n.ID, ":")
		if at == host && (only == "" || only == n.Member) {
			return &creel.Error{
				Kind: creel.ErrNotEnabled,
				What: fmt.Sprintf("host %s of %s cannot be drained by a call", host, n.Member),
				Why:  "Hadoop's ResourceManagers take hosts out by their files",
				Try:  "run `creel node drain " + host + " --conf DIR` with its configuration",
			}
		}
	}
	where := "any subcluster"
	if only != "" {
		where = "subcluster " + string(only)
	}
	return &creel.Error{
		Kind: creel.ErrNodeNotFound, What: "host " + host + " is not found in " + where,
		Try: "list the nodes with `creel node list`",
	}
}

// hostCall asks the members of creel's, or one of them, about a host; about all drained hosts if host is empty.
func hostCall[T any](
	h *Handler, r *http.Request, method, host string, body []byte, only creel.SubclusterID,
) []router.Part[T] {
	path := "/api/v1/drains"
	if host != "" {
		path += "/" + url.PathEscape(host)
	}
	q := &request{
		method: method, path: path + "?" + url.Values{"user.name": {caller(r)}}.Encode(), user: caller(r),
		head: forwardHeaders(r, "application/json"), body: body,
	}
	q.head.Set("Content-Type", "application/json")
	view := h.server.View()
	mine := func(id creel.SubclusterID) bool {
		m, ok := view.Member(id)
		return ok && !m.ByAgent() && (only == "" || only == id)
	}
	return server.AskSome(r.Context(), h.server, mine, func(ctx context.Context, m *remote.Member) (doc T, err error) {
		said, err := q.at(ctx, m)
		if err == nil {
			err = json.Unmarshal(said.body, &doc)
		}
		return doc, err
	})
}

// memberError gives a member's refusal by REST its kind, so that it has its status and exit code.
func memberError(err error) error {
	var refused *remote.StatusError
	if !errors.As(err, &refused) {
		return err
	}
	kind, ok := map[int]error{
		http.StatusBadRequest: creel.ErrInvalidRequest, http.StatusForbidden: creel.ErrNotPermitted,
		http.StatusNotFound: creel.ErrNodeNotFound, http.StatusConflict: creel.ErrConflict,
	}[refused.Code]
	if !ok {
		return err
	}
	return &creel.Error{Kind: kind, What: "subcluster " + string(refused.Member) + " refuses it", Why: refused.Words()}
}
