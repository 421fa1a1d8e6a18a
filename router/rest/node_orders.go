// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// nodeCall is a call about a node. has asks a member whether the call concerns it.
type nodeCall struct {
	*request
	h    *Handler
	name string
	id   creel.NodeID
	has  func(ctx context.Context, m *remote.Member) (bool, error)
}

// aboutNode reads a call about a node. The node is in the path, or else in the query. Without a node the call names the
// member, and has been answered: then it returns false.
func aboutNode(h *Handler, w http.ResponseWriter, r *http.Request) (c nodeCall, ok bool) {
	c.h = h
	c.name = cmp.Or(pathParam(r, "nodeId"), r.URL.Query().Get("nodeId"))
	if c.name == "" {
		h.named(w, r)
		return c, false
	}
	var err error
	if c.request, err = read(w, r); err != nil {
		fail(w, r, err)
		return c, false
	}
	c.id = creel.NodeID{Host: c.name}
	if full, err := creel.ParseNodeID(c.name); err == nil {
		c.id = full
	}
	look := &request{method: http.MethodGet, user: c.user, head: forwardHeaders(r, "application/json")}
	c.has = func(ctx context.Context, m *remote.Member) (bool, error) { return look.hasNode(ctx, m, c.name) }
	return c, true
}

// atNode forwards a call about a node to the member that has it, and a change to all members concerned.
func (h *Handler) atNode(w http.ResponseWriter, r *http.Request) {
	c, ok := aboutNode(h, w, r)
	switch {
	case !ok:
	case c.method == http.MethodGet:
		answer, silent, err := server.AtNode(r.Context(), h.server, c.id, c.name, c.has, c.planned)
		tellMissing(w, silent)
		passOr(w, r, answer, err)
	default:
		c.order(w, r)
	}
}

// relabel forwards a change of a node's labels to the members that have the node, or store labels of it.
func (h *Handler) relabel(w http.ResponseWriter, r *http.Request) {
	c, ok := aboutNode(h, w, r)
	if !ok {
		return
	}
	look := &request{method: http.MethodGet, user: c.user, head: forwardHeaders(r, "application/json")}
	registered := c.has
	c.has = func(ctx context.Context, m *remote.Member) (bool, error) {
		if has, err := registered(ctx, m); has || err != nil {
			return has, err
		}
		return look.hasLabels(ctx, m, c.id)
	}
	c.order(w, r)
}

// order forwards a change of a node to the members concerned.
func (c nodeCall) order(w http.ResponseWriter, r *http.Request) {
	answers, silent, err := server.OrderNodes(r.Context(), c.h.server, server.NodeOrder[creel.NodeID, reply]{
		Name: "the change of " + c.id.String(), Items: []creel.NodeID{c.id},
		Node: func(id creel.NodeID) creel.NodeID { return id },
		Has: func(ctx context.Context, m *remote.Member) (func(creel.NodeID) bool, error) {
			has, err := c.has(ctx, m)
			return func(creel.NodeID) bool { return has }, err
		},
		Send: func(ctx context.Context, m *remote.Member, _ []creel.NodeID) (reply, error) { return c.at(ctx, m) },
	})
	tellMissing(w, silent)
	switch {
	case err != nil:
		fail(w, r, err)
	case len(answers) == 0:
		partial(w, r, answers) // there are no members
	default:
		pass(w, r, answers[0].Value)
	}
}

// hasLabels reports whether a member stores labels of a node, even if it does not have the node.
func (q *request) hasLabels(ctx context.Context, m *remote.Member, node creel.NodeID) (bool, error) {
	look := *q
	look.path = base + "/get-node-to-labels"
	answer, err := look.at(ctx, m)
	if err != nil {
		return false, err
	}
	list, err := rawjson.ListAt(answer.body, "nodeToLabels", "entry")
	return slices.ContainsFunc(list, func(entry []byte) bool {
		id, err := creel.ParseNodeID(rawjson.Text(rawjson.Get(entry, "key")))
		return err == nil && (id == node || node.Port == 0 && id.Host == node.Host)
	}), err
}

// hasNode reports whether a member has a node. Without a port, or with port 0, any node of the host counts, as in
// YARN's documents with a node's name.
func (q *request) hasNode(ctx context.Context, m *remote.Member, node string) (bool, error) {
	look := *q
	host, port, _ := strings.Cut(node, ":")
	if port != "" && port != "0" {
		look.path = base + "/nodes/" + url.PathEscape(node)
		_, err := look.at(ctx, m)
		if notFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	look.path = base + "/nodes"
	answer, err := look.at(ctx, m)
	if err != nil {
		return false, err
	}
	list, err := rawjson.ListAt(answer.body, "nodes", "node")
	return slices.ContainsFunc(list, func(n []byte) bool {
		return rawjson.Text(rawjson.Get(n, "nodeHostName")) == host
	}), err
}
