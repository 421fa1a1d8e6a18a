// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// merger merges documents by the rules of package router.
func (h *Handler) merger() *router.Merger[[]byte] {
	started := strconv.AppendInt(nil, h.conf.Started.UnixMilli(), 10)
	return &router.Merger[[]byte]{
		Form:     jsonForm{},
		Unlisted: h.server.Unlisted,
		Now:      time.Now(),

		PartitionSize: h.server.PartitionSize,
		// The router presents itself as one ResourceManager with its own start time. Hadoop's router answers with a
		// list here, which breaks clients that read clusterInfo.
		Own: map[string][]byte{
			"id": started, "startedOn": started, "state": []byte(`"STARTED"`), "haState": []byte(`"ACTIVE"`),
		},
	}
}

// weighed returns the answers received, with their members' sizes.
func (h *Handler) weighed(parts []router.Part[[]byte]) []router.Weighed[[]byte] {
	present, _ := router.Present(parts)
	return server.Weigh(h.server, present)
}

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
	write(w, r, http.StatusOK, rooted(r, h.merger().Merge(typ, h.weighed(parts)), xmlRoots[typ]))
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

// items is a member's part of a list, each item as JSON.
type items = server.ListPart[[][]byte]

// lists returns the list at root.name of each member's document. each converts the bytes of an item (nil: unchanged).
// Members' lists are parsed concurrently; unchanged lists are neither sent nor parsed again. If the last list of a
// member that does not answer is used, a header has its age.
func (h *Handler) lists(
	w http.ResponseWriter,
	r *http.Request,
	root, name string,
	each func(member creel.SubclusterID) func(item []byte) []byte,
) []router.Part[items] {
	path, user, question := r.URL.RequestURI(), caller(r), listQuestion(r)
	parts := server.Ask(r.Context(), h.server, func(ctx context.Context, m *remote.Member) (items, error) {
		return h.long.Part(question, m.ID, func(tag string) (items, error) {
			head := forwardHeaders(r, "application/json")
			if tag != "" {
				head.Set("If-None-Match", tag)
			}
			doc, got, err := m.Web(ctx, remote.List, http.MethodGet, path, user, head, nil)
			if err = cmp.Or(err, ctx.Err()); err != nil { // the client has gone: do not parse the answer
				return items{}, err
			}
			if got.Get(remote.StatusHeader) == notModified {
				return items{Tag: tag}, nil
			}
			list, err := rawjson.ListAt(doc, root, name)
			if each != nil {
				made := each(m.ID)
				for i := range list {
					list[i] = made(list[i])
				}
			}
			return items{Value: list, Tag: got.Get("ETag"), Bytes: len(doc)}, err
		})
	})
	h.long.Lately(question, parts)
	if old := server.Old(parts); len(old) > 0 {
		w.Header().Set("X-Last-Known-SubClusters", oneLine(router.MissingText(old)))
	}
	return parts
}

// notModified is the status of an unchanged answer.
var notModified = strconv.Itoa(http.StatusNotModified)

// listQuestion returns the cache key of a request. Requests with the same key share members' tags. The query contains
// the caller.
func listQuestion(r *http.Request) string { return r.URL.RequestURI() }

// itemsOf returns the lists in members' parts.
func itemsOf(parts []router.Part[items]) []router.Part[[][]byte] {
	out := make([]router.Part[[][]byte], len(parts))
	for i, p := range parts {
		out[i] = router.Part[[][]byte]{Member: p.Member, Value: p.Value.Value, Err: p.Err}
	}
	return out
}

// appFields reads the fields that MergeApps needs from the bytes of an application.
func (h *Handler) appFields() router.AppFields[[]byte] {
	merger := h.merger()
	part := isUAM
	if h.server.ListsUAMs() {
		part = nil
	}
	return router.AppFields[[]byte]{
		Part: part,
		ID: func(app []byte) creel.ApplicationID {
			// Without an id it is the zero id.
			id, _ := creel.ParseApplicationID(rawjson.Text(rawjson.Get(app, "id")))
			return id
		},
		Unmanaged: func(app []byte) bool { return rawjson.Flag(rawjson.Get(app, "unmanagedApplication")) },
		Start:     func(app []byte) int64 { return rawjson.Whole(rawjson.Get(app, "startedTime")) },
		Join: func(same []router.Part[[]byte]) []byte {
			return merger.Merge("AppInfo", server.Weigh(h.server, same))
		},
	}
}

// isUAM reports whether an application is a UAM (creel.IsUAM). A search of the bytes first avoids parsing the fields
// of other applications.
func isUAM(app []byte) bool {
	if !bytes.Contains(app, named) && !bytes.Contains(app, tagged) {
		return false
	}
	unmanaged := rawjson.Flag(rawjson.Get(app, "unmanagedApplication"))
	tags := strings.Split(rawjson.Text(rawjson.Get(app, "applicationTags")), ",")
	return creel.IsUAM(unmanaged, rawjson.Text(rawjson.Get(app, "name")), tags)
}

// named is in the bytes of each UAM that has a UAM's name. It is without the quote before a name: a search for a byte
// that is in all texts takes six times as long.
var named = []byte(creel.UAMName(""))

// usage is the suffix of an application's fields that are percentages of its queue or of the cluster in its member.
const usage = "UsagePercentage"

// ofFederation converts an application's percentages from its member to the whole federation. share is the member's
// part of the federation. The document is JSON or XML.
func ofFederation(app []byte, share float64) []byte {
	before, after, ends := `"`, `":`, ",}"
	if len(app) > 0 && app[0] == '<' {
		before, after, ends = "<", ">", "<"
	}
	name := []byte(usage + after)
	out, done := []byte(nil), 0 // out is app up to done, with the changes so far
	queue, cluster := false, false
	for from := 0; !queue || !cluster; {
		at := bytes.Index(app[from:], name)
		if at < 0 {
			break
		}
		at += from
		from = at + len(name)
		switch { // the first occurrence
		case !queue && bytes.HasSuffix(app[:at], []byte(before+"queue")):
			queue = true
		case !cluster && bytes.HasSuffix(app[:at], []byte(before+"cluster")):
			cluster = true
		default:
			continue
		}
		length := bytes.IndexAny(app[from:], ends)
		if length < 0 {
			break
		}
		if v, err := strconv.ParseFloat(string(app[from:from+length]), 64); err == nil && v > 0 {
			if out == nil {
				out = make([]byte, 0, len(app)+32)
			}
			out = append(append(out, app[done:from]...), float(v*share)...)
			done = from + length
		}
	}
	if out == nil {
		return app
	}
	return append(out, app[done:]...)
}

// tagged is in the bytes of each UAM that has another id than its application. A search for it first avoids parsing
// the fields of other applications.
var tagged = []byte(strings.TrimSuffix(creel.UAMTag(creel.ApplicationID{}), creel.ApplicationID{}.String()))

// underApplication replaces the id of such a UAM by its application's id.
func underApplication(app []byte) []byte {
	if !bytes.Contains(app, tagged) || !rawjson.Flag(rawjson.Get(app, "unmanagedApplication")) {
		return app
	}
	tags := strings.Split(rawjson.Text(rawjson.Get(app, "applicationTags")), ",")
	of, ok := router.UAMOf(true, tags)
	if !ok {
		return app
	}
	own := rawjson.Text(rawjson.Get(app, "id"))
	return bytes.Replace(app, []byte(`"`+own+`"`), []byte(`"`+of.String()+`"`), 1)
}

// apps lists the applications of all members, each once; the limit applies to the merged list.
func (h *Handler) apps(w http.ResponseWriter, r *http.Request) {
	// Hadoop's ResourceManagers reject an invalid deSelects only if they have an application to list. The router's
	// answer must not depend on that.
	if _, why := query.DeSelected(r.URL.Query()); why != "" {
		fail(w, r, &creel.Error{Kind: creel.ErrInvalidRequest, What: "java.lang.Exception: " + why})
		return
	}
	parts := h.lists(w, r, "apps", "app", func(member creel.SubclusterID) func([]byte) []byte {
		share := h.server.Share(member)
		return func(app []byte) []byte { return underApplication(ofFederation(app, share)) }
	})
	if !partial(w, r, parts) {
		return
	}
	merged := func() rawjson.List {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit")) // members reject an invalid limit
		apps, _ := router.MergeApps(itemsOf(parts), h.appFields(), h.server.HomeSeen, limit)
		return rawjson.List{Root: "apps", Name: "app", Items: apps}
	}
	h.writeList(w, r, parts, merged)
}

// node is the bytes of a node and its member.
type node struct {
	from *creel.SubclusterID
	raw  []byte
}

// nodes lists the nodes of all members, each with its subcluster.
func (h *Handler) nodes(w http.ResponseWriter, r *http.Request) {
	answers := h.lists(w, r, "nodes", "node", nil)
	if !partial(w, r, answers) {
		return
	}
	h.writeList(w, r, answers, func() rawjson.List { return nodeList(answers) })
}

// nodeList merges the members' lists of nodes.
func nodeList(answers []router.Part[items]) rawjson.List {
	parts := make([]router.Part[[]node], len(answers))
	names := map[*creel.SubclusterID][]byte{}
	for i := range answers {
		p := &answers[i]
		parts[i] = router.Part[[]node]{Member: p.Member, Err: p.Err}
		name, err := json.Marshal(p.Member)
		if err != nil {
			continue
		}
		names[&p.Member] = append([]byte(`,"subClusterId":`), name...)
		for _, raw := range p.Value.Value {
			if rawjson.Get(raw, "id") != nil {
				parts[i].Value = append(parts[i].Value, node{&p.Member, raw})
			}
		}
	}
	merged, _ := router.MergeNodes(parts, func(n node) creel.NodeID {
		id, _ := creel.ParseNodeID(rawjson.Text(rawjson.Get(n.raw, "id")))
		return id
	}, func(n node) int64 { return rawjson.Whole(rawjson.Get(n.raw, "lastHealthUpdate")) })
	list := make([][]byte, len(merged))
	for i, n := range merged {
		list[i] = n.raw
	}
	return rawjson.List{
		Root: "nodes", Name: "node", Items: list, After: func(i int) []byte { return names[merged[i].from] },
	}
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
