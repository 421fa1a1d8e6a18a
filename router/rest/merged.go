// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/gateway"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
)

// info is one clusterInfo, as a single ResourceManager answers: a member's,
// with the router's own age. Hadoop's router answers a list here, which breaks
// clients that read clusterInfo.
func (d *Door) info(w http.ResponseWriter, r *http.Request) {
	parts := d.askJSON(r, remote.Read)
	if !partial(w, r, parts) {
		return
	}
	present, _ := router.Present(parts)
	d.document(w, r, func() ([]byte, error) {
		var doc struct {
			Info object `json:"clusterInfo"`
		}
		if err := json.Unmarshal(present[0].Value, &doc); err != nil {
			return nil, err
		}
		doc.Info.set("id", num(float64(d.started.UnixMilli())))
		doc.Info.set("startedOn", num(float64(d.started.UnixMilli())))
		doc.Info.set("state", json.RawMessage(`"STARTED"`))
		doc.Info.set("haState", json.RawMessage(`"ACTIVE"`))
		return json.Marshal(doc)
	})
}

// metrics adds up the members' figures; fields unknown here are the first
// member's.
func (d *Door) metrics(w http.ResponseWriter, r *http.Request) {
	parts := d.askJSON(r, remote.Read)
	figures := make([]router.Part[subcluster.ClusterMetrics], len(parts))
	for i, p := range parts {
		figures[i] = router.Part[subcluster.ClusterMetrics]{Member: p.Member, Err: p.Err}
		if p.Err == nil {
			load, err := subcluster.ParseLoad(p.Value)
			figures[i].Value, figures[i].Err = load.Metrics, err
		}
	}
	if !partial(w, r, figures) {
		return
	}
	sum, _ := router.MergeMetrics(figures)
	present, _ := router.Present(parts)
	d.document(w, r, func() ([]byte, error) {
		var doc struct {
			Metrics object `json:"clusterMetrics"`
		}
		if err := json.Unmarshal(present[0].Value, &doc); err != nil {
			return nil, err
		}
		known, err := json.Marshal(sum)
		if err != nil {
			return nil, err
		}
		var fields object
		if err := json.Unmarshal(known, &fields); err != nil {
			return nil, err
		}
		for _, f := range fields {
			if doc.Metrics.get(f.name) != nil {
				doc.Metrics.set(f.name, f.value)
			}
		}
		return json.Marshal(doc)
	})
}

var nodeFields = struct {
	id    func(object) creel.NodeID
	heard func(object) int64
}{
	func(o object) creel.NodeID {
		id, _ := creel.ParseNodeID(o.text("id"))
		return id
	},
	func(o object) int64 { return int64(o.number("lastHealthUpdate")) },
}

// nodes lists the nodes of all members, each with its subcluster.
func (d *Door) nodes(w http.ResponseWriter, r *http.Request) {
	parts := lists(d.askJSON(r, remote.List), "nodes", "node")
	if !partial(w, r, parts) {
		return
	}
	for _, p := range parts {
		name, err := json.Marshal(string(p.Member))
		if err != nil {
			continue
		}
		for i := range p.Value {
			p.Value[i].set("subClusterId", name)
		}
	}
	merged, _ := router.MergeNodes(parts, nodeFields.id, nodeFields.heard)
	d.document(w, r, func() ([]byte, error) { return wrap("nodes", "node", merged) })
}

// node is the member's that heard of it last.
func (d *Door) node(w http.ResponseWriter, r *http.Request) {
	parts := d.askJSON(r, remote.Read)
	var newest []byte
	best := int64(-1)
	present, _ := router.Present(parts)
	for _, p := range present {
		var doc struct {
			Node object `json:"node"`
		}
		if json.Unmarshal(p.Value, &doc) == nil && nodeFields.heard(doc.Node) > best {
			best, newest = nodeFields.heard(doc.Node), p.Value
		}
	}
	if newest != nil {
		write(w, r, http.StatusOK, newest)
		return
	}
	if partial(w, r, parts) {
		fail(
			w,
			r,
			&creel.Error{Kind: creel.ErrNodeNotFound, What: "nodeId, " + chi.URLParam(r, "nodeId") + ", is not found"},
		)
	}
}

// statistics adds counts of one state and type.
func (d *Door) statistics(w http.ResponseWriter, r *http.Request) {
	parts := lists(d.askJSON(r, remote.Read), "appStatInfo", "statItem")
	if !partial(w, r, parts) {
		return
	}
	var merged []object
	at := map[string]int{}
	present, _ := router.Present(parts)
	for _, p := range present {
		for _, item := range p.Value {
			key := item.text("state") + "\x00" + item.text("type")
			if i, there := at[key]; there {
				merged[i].set("count", num(merged[i].number("count")+item.number("count")))
				continue
			}
			at[key] = len(merged)
			merged = append(merged, item)
		}
	}
	d.document(w, r, func() ([]byte, error) { return wrap("appStatInfo", "statItem", merged) })
}

// containers joins an attempt's containers at home with those its twins hold.
func (d *Door) containers(w http.ResponseWriter, r *http.Request) {
	app, err := appID(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	home, err := d.gate.Home(r.Context(), app)
	if err != nil {
		fail(w, r, notFoundText(err, app))
		return
	}
	parts := gateway.Ask(r.Context(), d.gate, func(ctx context.Context, m *remote.Member) ([]object, error) {
		b, _, err := m.Web(
			ctx,
			remote.Read,
			http.MethodGet,
			pathOf(r),
			caller(r),
			forwardHeaders(r, "application/json"),
			nil,
		)
		if err != nil {
			return nil, err
		}
		var o object
		if err := json.Unmarshal(b, &o); err != nil {
			return nil, err
		}
		raw := o.get("container")
		if inner := o.get("containers"); inner != nil { // 3.5 keeps the root
			var c object
			if json.Unmarshal(inner, &c) == nil {
				raw = c.get("container")
			}
		}
		return list(raw)
	})
	var all []object
	for _, p := range parts {
		if p.Err != nil && p.Member == home.ID {
			fail(w, r, p.Err)
			return
		}
		all = append(all, p.Value...)
	}
	d.document(w, r, func() ([]byte, error) {
		inner := object{}
		if len(all) > 0 {
			b, err := json.Marshal(all)
			if err != nil {
				return nil, err
			}
			inner.set("container", b)
		}
		if wantsXML(r) {
			return json.Marshal(map[string]object{"containers": inner})
		}
		return json.Marshal(inner)
	})
}

// scheduler makes one queue tree of the members' trees.
func (d *Door) scheduler(w http.ResponseWriter, r *http.Request) {
	parts := d.askJSON(r, remote.Read)
	if !partial(w, r, parts) {
		return
	}
	present, _ := router.Present(parts)
	view := d.gate.View()
	values := make([]json.RawMessage, len(present))
	weights := make([]float64, len(present))
	for i, p := range present {
		values[i] = p.Value
		if m, ok := view.Member(p.Member); ok {
			weights[i] = float64(m.Load.Metrics.TotalMB)
		}
	}
	d.document(w, r, func() ([]byte, error) { return mergeTree("", values, weights), nil })
}

// mergeTree merges one JSON value of several members: what is a fraction is
// averaged by the members' sizes, other numbers add up, objects merge field by
// field, lists of queues queue by queue, other lists one after the other, and
// of texts and flags the first holds.
func mergeTree(name string, values []json.RawMessage, weights []float64) json.RawMessage {
	if len(values) == 1 {
		return values[0]
	}
	switch first := values[0]; {
	case first[0] == '{':
		objects := make([]object, len(values))
		for i, v := range values {
			if json.Unmarshal(v, &objects[i]) != nil {
				return first
			}
		}
		var out object
		for _, o := range objects {
			for _, f := range o {
				if out.get(f.name) != nil {
					continue
				}
				var vs []json.RawMessage
				var ws []float64
				for i, other := range objects {
					if v := other.get(
						f.name,
					); len(v) > 0 && v[0] == f.value[0] ||
						len(v) > 0 && isNumber(v) && isNumber(f.value) {
						vs, ws = append(vs, v), append(ws, weights[i])
					}
				}
				out.set(f.name, mergeTree(f.name, vs, ws))
			}
		}
		b, err := json.Marshal(out)
		if err != nil {
			return first
		}
		return b
	case first[0] == '[':
		return mergeLists(values, weights)
	case isNumber(first):
		floats := make([]float64, len(values))
		sum, write := 0.0, num
		if bytes.ContainsRune(first, '.') {
			write = float
		}
		for i, v := range values {
			floats[i] = object{{"v", v}}.number("v")
			sum += floats[i]
		}
		if isFraction(name) {
			mean := router.Mean(floats, weights)
			if !bytes.ContainsRune(first, '.') {
				mean = math.Round(mean)
			}
			return write(mean)
		}
		if sum >= 1<<62 { // "without bound" stays that, and does not add up
			return first
		}
		return write(sum)
	default:
		return first
	}
}

func isNumber(v json.RawMessage) bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9')
}

// isFraction tells fields that are shares, percentages or settings, which do
// not add up, by the words in their names (CapacitySchedulerInfo,
// FairSchedulerInfo).
func isFraction(name string) bool {
	lower := strings.ToLower(name)
	for _, word := range []string{"capacity", "percent", "weight", "factor", "priority", "depth", "lifetime", "delay"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

func mergeLists(values []json.RawMessage, weights []float64) json.RawMessage {
	type entry struct {
		values  []json.RawMessage
		weights []float64
	}
	byName := map[string]*entry{}
	var order []*entry
	for i, v := range values {
		var items []json.RawMessage
		if json.Unmarshal(v, &items) != nil {
			return values[0]
		}
		for _, item := range items {
			key := string(item)
			var o object
			if json.Unmarshal(item, &o) == nil {
				for _, name := range []string{"queuePath", "queueName", "partitionName", "username", "resourceType", "name"} {
					if o.get(name) != nil {
						key = name + "=" + o.text(name)
						break
					}
				}
			}
			e := byName[key]
			if e == nil {
				e = &entry{}
				byName[key] = e
				order = append(order, e)
			}
			e.values, e.weights = append(e.values, item), append(e.weights, weights[i])
		}
	}
	out := make([]json.RawMessage, len(order))
	for i, e := range order {
		if e.values[0][0] == '{' {
			out[i] = mergeTree("", e.values, e.weights)
		} else {
			out[i] = e.values[0]
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return values[0]
	}
	return b
}
