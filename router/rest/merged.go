// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// merged returns the handler of a document that is merged field by field.
func (h *Handler) merged(typ string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.merge(w, r, typ, h.askJSON(r, remote.Read))
	}
}

// merge writes the document merged from members' parts.
func (h *Handler) merge(w http.ResponseWriter, r *http.Request, typ string, parts []router.Part[[]byte]) {
	for i := range parts {
		if _, ok := (jsonForm{}).Object(parts[i].Value, nil); parts[i].Err == nil && !ok {
			parts[i].Err = errors.New("its answer is not a JSON object")
		}
	}
	if !partial(w, r, parts) {
		return
	}
	write(w, r, http.StatusOK, rooted(r, h.yarn.document(typ, parts), xmlRoots[typ]))
}

// xmlRoots has the XML root elements of documents whose JSON has none.
var xmlRoots = map[string]string{
	"queue access document":       "rmQueueAclInfo",
	"scheduler overview document": "scheduler",
	"node labels document":        "nodeLabelsInfo",
	"nodes to labels document":    "nodeToLabelsInfo",
	"labels to nodes document":    "labelsToNodesInfo",
	"containers document":         "containers",
	"reservations document":       "reservationListInfo",
}

// rooted adds a root to a document if the client asked for XML and the document has none.
func rooted(r *http.Request, doc []byte, root string) []byte {
	if root == "" || !webdoc.PrefersXML(r) || rawjson.Get(doc, root) != nil {
		return doc
	}
	return fmt.Appendf(nil, `{%q:%s}`, root, doc)
}

// listRequestOf reads a request for a list.
func listRequestOf(r *http.Request) *listRequest {
	return &listRequest{listQuestion(r), caller(r), forwardHeaders(r, "application/json")}
}

// listQuestion returns the cache key of a request. Requests with the same key share members' tags. The query contains
// the caller.
func listQuestion(r *http.Request) string { return r.URL.RequestURI() }

// tellOld writes a header with the members that do not answer and whose last list is used, and its age.
func tellOld(w http.ResponseWriter, parts []router.Part[items]) {
	if old := server.Old(parts); len(old) > 0 {
		w.Header().Set("X-Last-Known-SubClusters", oneLine(router.MissingText(old)))
	}
}

// apps lists the applications of all members, each once; the limit applies to the merged list.
func (h *Handler) apps(w http.ResponseWriter, r *http.Request) {
	// Hadoop's ResourceManagers reject an invalid deSelects only if they have an application to list. The router's
	// answer must not depend on that.
	if _, why := query.DeSelected(r.URL.Query()); why != "" {
		fail(w, r, &creel.Error{Kind: creel.ErrInvalidRequest, What: "java.lang.Exception: " + why})
		return
	}
	parts := h.yarn.askApplications(r.Context(), listRequestOf(r))
	tellOld(w, parts)
	if !partial(w, r, parts) {
		return
	}
	h.writeList(w, r, parts, func() rawjson.List {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit")) // members reject an invalid limit
		return h.yarn.applications(parts, limit)
	})
}

// nodes lists the nodes of all members, each with its subcluster.
func (h *Handler) nodes(w http.ResponseWriter, r *http.Request) {
	answers := h.yarn.askNodes(r.Context(), listRequestOf(r))
	tellOld(w, answers)
	if !partial(w, r, answers) {
		return
	}
	h.writeList(w, r, answers, func() rawjson.List { return nodeList(answers) })
}

// node answers with the document of the member with the node's latest heartbeat.
func (h *Handler) node(w http.ResponseWriter, r *http.Request) {
	parts := h.askJSON(r, remote.Read)
	var newest []byte
	best := int64(-1)
	present, _ := router.Present(parts)
	for _, p := range present {
		if heard := rawjson.Whole(rawjson.Get(rawjson.Get(p.Value, "node"), "lastHealthUpdate")); heard > best {
			best, newest = heard, p.Value
		}
	}
	if newest != nil {
		write(w, r, http.StatusOK, newest)
		return
	}
	noNode(w, r, pathParam(r, "nodeId"), parts)
}
