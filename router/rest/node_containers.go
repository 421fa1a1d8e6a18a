// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// nodeWait bounds each of the two waits for a node's page: for the list of nodes and for the node's containers.
const nodeWait = 400 * time.Millisecond

// NodeContainersDoc is a node and its containers.
type NodeContainersDoc struct {
	Node NodeRow `json:"node"`
	subcluster.NodeContainers
	Problem string `json:"problem,omitempty"` // reason why the containers are unknown
}

// nodeContainersAPI serves the containers of nodes.
type nodeContainersAPI struct{ h *Handler }

// serve serves a node of the list of nodes, with its containers by its member.
func (a nodeContainersAPI) serve(w http.ResponseWriter, r *http.Request) {
	row, err := a.find(r, pathParam(r, "node"), creel.SubclusterID(r.URL.Query().Get("subcluster")))
	if err != nil {
		problemOf(w, err)
		return
	}
	doc := NodeContainersDoc{Node: *row}
	doc.Containers = []subcluster.NodeContainer{}
	if !row.at.IsZero() {
		doc.Node.AgeSeconds = time.Since(row.at).Round(100 * time.Millisecond).Seconds()
	}
	if ofCreel(a.h.server)(row.Member) {
		doc.NodeContainers, err = a.containersOn(r, row)
	} else {
		doc.Problem = "Hadoop's ResourceManagers do not list the containers of a node"
	}
	if err != nil {
		doc.Problem = string(row.Member) + " does not list them: " + err.Error()
	}
	answer(w, doc)
}

// find returns the row of the one node with an id, of any member or of one.
func (a nodeContainersAPI) find(r *http.Request, id string, only creel.SubclusterID) (*NodeRow, error) {
	ctx, cancel := context.WithTimeout(r.Context(), nodeWait)
	defer cancel()
	rows, parts, err := a.h.shownNodes.Get(ctx, identity(r), false)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		err = &creel.Error{
			Kind: creel.ErrUnavailable, What: "the nodes are not known yet",
			Why: "not every subcluster has answered", Try: "try again in a moment",
		}
	}
	if err != nil {
		return nil, err
	}
	var at []*NodeRow
	var members, silent []string
	for _, n := range rows {
		if n.ID == id && (only == "" || n.Member == only) {
			at, members = append(at, n), append(members, string(n.Member))
		}
	}
	for i := range parts {
		if parts[i].Err != nil && (only == "" || parts[i].Member == only) {
			silent = append(silent, string(parts[i].Member))
		}
	}
	switch {
	case len(at) == 1:
		return at[0], nil
	case len(at) > 1:
		return nil, &creel.Error{
			Kind: creel.ErrConflict, What: "node " + id + " is in several subclusters",
			Why: strings.Join(members, ", ") + " have nodes of this name", Try: "name one with --subcluster",
		}
	case len(silent) > 0:
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable, What: "node " + id + " cannot be found now",
			Why: "these subclusters do not answer: " + strings.Join(silent, ", "), Try: "try again in a moment",
		}
	}
	return nil, &creel.Error{
		Kind: creel.ErrNodeNotFound, What: "node " + id + " is not found", Try: "list the nodes with `creel node list`",
	}
}

// containersOn asks a node's member for its containers.
func (a nodeContainersAPI) containersOn(r *http.Request, row *NodeRow) (doc subcluster.NodeContainers, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), nodeWait)
	defer cancel()
	doc.Containers = []subcluster.NodeContainer{}
	q := &request{
		method: http.MethodGet, path: "/api/v1/nodes/" + url.PathEscape(row.ID) + "/containers?" + identity(r),
		user: caller(r), head: forwardHeaders(r, "application/json"),
	}
	parts := server.AskSome(ctx, a.h.server, func(id creel.SubclusterID) bool { return id == row.Member },
		func(ctx context.Context, m *remote.Member) (doc subcluster.NodeContainers, err error) {
			said, err := q.at(ctx, m)
			if err == nil {
				err = json.Unmarshal(said.body, &doc)
			}
			return doc, err
		})
	if len(parts) == 0 {
		return doc, &creel.Error{Kind: creel.ErrUnavailable, What: string(row.Member) + " is no longer a member"}
	}
	for _, p := range parts {
		if p.Err != nil {
			return doc, memberError(p.Err)
		}
		doc = p.Value
	}
	return doc, nil
}
