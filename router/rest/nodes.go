// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster"
)

// NodeRow is a node in a list.
type NodeRow struct {
	subcluster.NodeLine
	Member creel.SubclusterID `json:"subcluster"`
	// AgeSeconds is the age of this data if its member does not answer now.
	AgeSeconds float64 `json:"age_s,omitempty"`

	at time.Time // time when its member sent it, if it is not current
}

// mergeNodes lists the nodes of all members, by member and id.
func mergeNodes(parts []snapshot.Part[*NodeRow]) (rows []*NodeRow) {
	for i := range parts {
		for _, n := range parts[i].Items {
			if parts[i].Err != nil {
				old := *n
				old.at = parts[i].At
				n = &old
			}
			rows = append(rows, n)
		}
	}
	slices.SortFunc(rows, byMember)
	return rows
}

func nodeRow(raw []byte, from creel.SubclusterID) *NodeRow {
	n := &NodeRow{Member: from}
	rawjson.EachField(raw, func(name, v []byte) bool {
		switch string(name) {
		case "id":
			n.ID = rawjson.Text(v)
		case "rack":
			n.Rack = rawjson.Text(v)
		case "state":
			n.State = rawjson.Text(v)
		case "nodeHTTPAddress":
			n.Web = rawjson.Text(v)
		case "healthReport":
			n.Health = rawjson.Text(v)
		case "nodeLabels":
			n.Label = rawjson.Text(bytes.Trim(v, "[]")) // YARN sends a list, with at most one label
		case "numContainers":
			n.Containers = rawjson.Whole(v)
		case "usedMemoryMB":
			n.UsedMB = rawjson.Whole(v)
		case "availMemoryMB":
			n.FreeMB = rawjson.Whole(v)
		case "usedVirtualCores":
			n.UsedVCores = rawjson.Whole(v)
		case "availableVirtualCores":
			n.FreeVCores = rawjson.Whole(v)
		case "numQueuedContainers":
			n.Queued = rawjson.Whole(v)
		case "numRunningOpportContainers":
			n.Opportunistic = rawjson.Whole(v)
		case "usedMemoryOpportGB":
			n.LentMB = rawjson.Whole(v) << 10
		case "usedVirtualCoresOpport":
			n.LentVCores = rawjson.Whole(v)
		case "resourceUtilization":
			n.measured(v)
		case "overallocation":
			n.lends(v)
		}
		return true
	})
	return n
}

// measured reads the use of a node's containers.
func (n *NodeRow) measured(raw []byte) {
	rawjson.EachField(raw, func(name, v []byte) bool {
		switch string(name) {
		case "aggregatedContainersPhysicalMemoryMB":
			n.MeasuredMB = rawjson.Whole(v)
		case "containersCPUUsage":
			n.MeasuredVCores = real(v)
		}
		return true
	})
}

// lends reads the offer of a node that lends, which only creel's ResourceManager has.
func (n *NodeRow) lends(raw []byte) {
	o := &n.Overallocation
	rawjson.EachField(raw, func(name, v []byte) bool {
		switch string(name) {
		case "memoryThreshold":
			o.Memory = real(v)
		case "cpuThreshold":
			o.CPU = real(v)
		case "predictedMemoryMB":
			o.PredictedMB = rawjson.Whole(v)
		case "predictedCPUUsage":
			o.PredictedVCores = real(v)
		}
		return true
	})
}

// real returns a number, 0 if the text is none.
func real(v []byte) float64 {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0
	}
	return f
}

// NodesDoc is a page of nodes, by member and id.
type NodesDoc struct {
	Nodes    []NodeRow        `json:"nodes"`
	Matching int64            `json:"matching"`
	States   map[string]int64 `json:"states"` // of the nodes that match the filters other than state
	Next     string           `json:"next,omitempty"`
	Missing  []missing        `json:"missing"`
}

// pageLimit returns the requested length of a page, 50 if the query has none.
func pageLimit(r *http.Request) (int64, error) {
	limit, err := number(r, "limit", 50)
	if err == nil && (limit < 1 || limit > apps.MaxPage) {
		err = invalid("limit is not a number from 1 to 1000", "")
	}
	return limit, err
}

// listNodes serves a page of the federation's nodes, or of one member's.
func (h *Handler) listNodes(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := pageLimit(r)
	var order func(a, b *NodeRow) int
	if err == nil {
		order, err = orderOf(q, nodeOrders)
	}
	var all []*NodeRow
	var parts []snapshot.Part[*NodeRow]
	if err == nil {
		all, parts, err = h.shownNodes.Get(r.Context(), identity(r), false)
	}
	if err != nil {
		problemOf(w, err)
		return
	}
	doc := NodesDoc{Nodes: []NodeRow{}, States: map[string]int64{}}
	only, state := creel.SubclusterID(q.Get("subcluster")), strings.ToUpper(q.Get("state"))
	search, now := strings.ToLower(q.Get("q")), time.Now()
	if only != "" {
		parts = slices.DeleteFunc(slices.Clone(parts), func(p snapshot.Part[*NodeRow]) bool { return p.Member != only })
	}
	doc.Missing = missingOf(parts, now)
	page := sheet[NodeRow]{limit: int(limit)}
	after, err := afterNode(q.Get("cursor"), all)
	if err != nil {
		problemOf(w, err)
		return
	}
	behind := func(n *NodeRow) bool { return after == nil || byMember(after, n) < 0 }
	if order != nil {
		page.order = func(a, b *NodeRow) int { return cmp.Or(order(a, b), byMember(a, b)) }
		behind = func(n *NodeRow) bool { return after == nil || page.order(after, n) < 0 }
	}
	for _, n := range all {
		if only != "" && n.Member != only ||
			search != "" && !strings.Contains(strings.ToLower(n.ID+" "+n.Rack), search) {
			continue
		}
		if doc.States[n.State]++; state != "" && n.State != state {
			continue
		}
		if doc.Matching++; behind(n) {
			page.add(n)
		}
	}
	for _, n := range page.rows {
		row := *n
		if !n.at.IsZero() {
			row.AgeSeconds = now.Sub(n.at).Round(100 * time.Millisecond).Seconds()
		}
		doc.Nodes = append(doc.Nodes, row)
	}
	if page.more {
		last := doc.Nodes[len(doc.Nodes)-1]
		doc.Next = string(last.Member) + "/" + last.ID
	}
	answerTagged(w, r, doc)
}

// afterNode returns the node of a cursor, nil without a cursor. A node that has left has only its place by member and
// id.
func afterNode(cursor string, all []*NodeRow) (*NodeRow, error) {
	if cursor == "" {
		return nil, nil
	}
	member, id, ok := strings.Cut(cursor, "/")
	if !ok {
		return nil, invalid("the cursor "+strconv.Quote(cursor)+" is invalid", "leave it out to start again")
	}
	n := &NodeRow{NodeLine: subcluster.NodeLine{ID: id}, Member: creel.SubclusterID(member)}
	if at, known := slices.BinarySearchFunc(all, n, byMember); known {
		return all[at], nil
	}
	return n, nil
}
