// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// yarnLists builds YARN's documents and lists of the whole federation from those of its members.
type yarnLists struct {
	server  *server.Server
	started time.Time // of this router
	long    server.Lists[[][]byte]
}

// merger merges documents by the rules of package router.
func (y *yarnLists) merger() *router.Merger[[]byte] {
	started := strconv.AppendInt(nil, y.started.UnixMilli(), 10)
	return &router.Merger[[]byte]{
		Form:     jsonForm{},
		Unlisted: y.server.Unlisted,
		Now:      time.Now(),

		PartitionSize: y.server.PartitionSize,
		// The router presents itself as one ResourceManager with its own start time. Hadoop's router answers with a
		// list here, which breaks clients that read clusterInfo.
		Own: map[string][]byte{
			"id": started, "startedOn": started, "state": []byte(`"STARTED"`), "haState": []byte(`"ACTIVE"`),
		},
	}
}

// document merges members' documents of a type.
func (y *yarnLists) document(typ string, parts []router.Part[[]byte]) []byte {
	present, _ := router.Present(parts)
	return y.merger().Merge(typ, server.Weigh(y.server, present))
}

// items is a member's part of a list, each item as JSON.
type items = server.ListPart[[][]byte]

// notModified is the status of an unchanged answer.
var notModified = strconv.Itoa(http.StatusNotModified)

// listRequest is a client's request for a list.
type listRequest struct {
	question string // its path with the query, which is also the key of the members' last parts
	user     string
	head     http.Header
}

// ask returns the list at root.name of each member's document. each converts the bytes of an item (nil: unchanged).
// Members' lists are parsed concurrently; unchanged lists are neither sent nor parsed again.
func (y *yarnLists) ask(
	ctx context.Context,
	q *listRequest,
	root, name string,
	each func(member creel.SubclusterID) func(item []byte) []byte,
) []router.Part[items] {
	parts := server.Ask(ctx, y.server, func(ctx context.Context, m *remote.Member) (items, error) {
		return y.long.Part(q.question, m.ID, func(tag string) (items, error) {
			head := q.head
			if tag != "" {
				head = q.head.Clone()
				head.Set("If-None-Match", tag)
			}
			doc, got, err := m.Web(ctx, remote.List, http.MethodGet, q.question, q.user, head, nil)
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
	y.long.Lately(q.question, parts)
	return parts
}

// askApplications returns each member's applications.
func (y *yarnLists) askApplications(ctx context.Context, q *listRequest) []router.Part[items] {
	return y.ask(ctx, q, "apps", "app", func(member creel.SubclusterID) func([]byte) []byte {
		share := y.server.Share(member)
		return func(app []byte) []byte { return underApplication(ofFederation(app, share)) }
	})
}

// applications lists the applications of all members, each once; the limit applies to the merged list.
func (y *yarnLists) applications(parts []router.Part[items], limit int) rawjson.List {
	apps, _ := router.MergeApps(itemsOf(parts), y.appFields(), y.server.HomeSeen, limit)
	return rawjson.List{Root: "apps", Name: "app", Items: apps}
}

// askNodes returns each member's nodes.
func (y *yarnLists) askNodes(ctx context.Context, q *listRequest) []router.Part[items] {
	return y.ask(ctx, q, "nodes", "node", nil)
}

// appFields reads the fields that MergeApps needs from the bytes of an application.
func (y *yarnLists) appFields() router.AppFields[[]byte] {
	merger := y.merger()
	part := isUAM
	if y.server.ListsUAMs() {
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
			return merger.Merge("AppInfo", server.Weigh(y.server, same))
		},
	}
}

// itemsOf returns the lists in members' parts.
func itemsOf(parts []router.Part[items]) []router.Part[[][]byte] {
	out := make([]router.Part[[][]byte], len(parts))
	for i, p := range parts {
		out[i] = router.Part[[][]byte]{Member: p.Member, Value: p.Value.Value, Err: p.Err}
	}
	return out
}

// node is the bytes of a node and its member.
type node struct {
	from *creel.SubclusterID
	raw  []byte
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
