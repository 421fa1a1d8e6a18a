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
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// HostsDoc is a list of drained hosts of all members.
type HostsDoc struct {
	subcluster.HostsDoc
	Missing []missing `json:"missing"`
}

// drainsAPI serves the calls that take hosts out.
type drainsAPI struct {
	h *Handler
	// shown has the drained hosts, for all viewers of a user.
	shown   *shared[subcluster.HostDoc]
	changes atomic.Int64 // by this router
}

func (a *drainsAPI) init(h *Handler) {
	a.h = h
	merge := func(parts []snapshot.Part[subcluster.HostDoc]) (rows []subcluster.HostDoc) {
		for i := range parts {
			rows = append(rows, parts[i].Items...)
		}
		return rows
	}
	a.shown = sharedList(listDrains(h.server), merge, 0, a.changes.Load)
}

// listDrains asks the members of creel's for their drained hosts.
func listDrains(s *server.Server) func(ctx context.Context, who string) []router.Part[[]subcluster.HostDoc] {
	return func(ctx context.Context, who string) []router.Part[[]subcluster.HostDoc] {
		head := http.Header{"Accept": {"application/json"}}
		ask := func(ctx context.Context, m *remote.Member) ([]subcluster.HostDoc, error) {
			var doc subcluster.HostsDoc
			body, _, err := m.Web(ctx, remote.List, http.MethodGet, "/api/v1/drains?"+who, "", head, nil)
			if err == nil {
				err = json.Unmarshal(body, &doc)
			}
			for i := range doc.Hosts {
				doc.Hosts[i].Member = m.ID
			}
			return doc.Hosts, err
		}
		return server.AskSome(ctx, s, ofCreel(s), ask)
	}
}

// ofCreel selects the members that run creel's ResourceManager.
func ofCreel(s *server.Server) func(id creel.SubclusterID) bool {
	view := s.View()
	return func(id creel.SubclusterID) bool {
		m, ok := view.Member(id)
		return ok && !m.ByAgent()
	}
}

// list lists the hosts that calls drain, of all members or of one.
func (a *drainsAPI) list(w http.ResponseWriter, r *http.Request) {
	rows, parts, err := a.shown.Get(r.Context(), identity(r), false)
	only := creel.SubclusterID(r.URL.Query().Get("subcluster"))
	doc := HostsDoc{subcluster.HostsDoc{Hosts: []subcluster.HostDoc{}}, []missing{}}
	for _, m := range missingOf(parts, time.Now()) {
		if only == "" || m.Member == only {
			doc.Missing = append(doc.Missing, m)
		}
	}
	for _, host := range rows {
		if only == "" || host.Member == only {
			doc.Hosts = append(doc.Hosts, host)
		}
	}
	done(w, err, doc)
}

// host serves one host: what a drain of it would do, and the progress of its drain.
func (a *drainsAPI) host(w http.ResponseWriter, r *http.Request) {
	doc, err := a.find(r)
	done(w, err, doc)
}

// drain takes a host out of its member.
func (a *drainsAPI) drain(w http.ResponseWriter, r *http.Request) {
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
func (a *drainsAPI) undrain(w http.ResponseWriter, r *http.Request) {
	a.change(w, r, nil, "taken in again")
}

// change makes one change at the member that has the host; without an order it deletes the drain.
func (a *drainsAPI) change(w http.ResponseWriter, r *http.Request, order *subcluster.DrainOrder, after string) {
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
			for _, p := range hostCall(a.h, r, method, host, body, at) {
				doc, err = p.Value, memberError(p.Err)
			}
			doc.Member = at
			a.changes.Add(1)
		}
		a.h.server.RecordDrain(r.Context(), host, doc.Member, caller(r), after, reason, err)
	}
	done(w, err, doc)
}

// find finds the one member of creel's that has a host.
func (a *drainsAPI) find(r *http.Request) (subcluster.HostDoc, error) {
	host, only := pathParam(r, "host"), creel.SubclusterID(r.URL.Query().Get("subcluster"))
	var at []subcluster.HostDoc
	var silent []router.Part[subcluster.HostDoc]
	for _, p := range hostCall(a.h, r, http.MethodGet, host, nil, only) {
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
func (a *drainsAPI) noHost(r *http.Request, host string, only creel.SubclusterID) error {
	all, _, _ := a.h.shownNodes.Get(r.Context(), identity(r), false)
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

// hostCall asks the members of creel's, or one of them, about a host.
func hostCall(
	h *Handler, r *http.Request, method, host string, body []byte, only creel.SubclusterID,
) []router.Part[subcluster.HostDoc] {
	q := &request{
		method: method, path: "/api/v1/drains/" + url.PathEscape(host) + "?" + identity(r), user: caller(r),
		head: forwardHeaders(r, "application/json"), body: body,
	}
	q.head.Set("Content-Type", "application/json")
	ours := ofCreel(h.server)
	asked := func(id creel.SubclusterID) bool { return (only == "" || only == id) && ours(id) }
	return server.AskSome(r.Context(), h.server, asked,
		func(ctx context.Context, m *remote.Member) (doc subcluster.HostDoc, err error) {
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
