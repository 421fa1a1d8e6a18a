// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// A load can be read in parts. For that its member cuts it (Cut), and the store has the parts beside the whole. The
// head has the member's own data for a split; each other part has the rows of queues with one leaf name. A partial
// read returns the head and the rows of the named queues (JoinParts); ParseLoad parses it like a whole load. Queues
// are identified by leaf name because an application may name them so.

// Part is a part of a load, or of a plan: JSON.
type Part struct {
	Leaf string // of the queues whose rows it has; "" for the head
	Text []byte
}

// headMetrics are the fields of clusterMetrics that a head has.
var headMetrics = []string{
	"totalMB", "totalVirtualCores", "availableMB", "availableVirtualCores",
	"allocatedMB", "allocatedVirtualCores", "pendingMB", "pendingVirtualCores",
}

// partSeparator precedes each part of a load that was read in parts, as RFC 7464 separates the JSON texts of a
// sequence. No JSON text contains it.
const partSeparator = "\x1e"

// Cut returns the parts of a load, the head first, then rows by leaf name. Instead of queues, the head has one row
// for each node label, under the root queue. It has the largest amount of each resource type that any queue has or
// may get there. Decisions read a member's labels, types and maxima from its queues.
func Cut(load []byte) ([]Part, error) {
	top, err := objectOf(load)
	if err != nil {
		return nil, err
	}
	metrics, own := top, map[string]json.RawMessage(nil)
	if raw, ok := top["clusterMetrics"]; ok {
		if metrics, err = objectOf(raw); err != nil {
			return nil, err
		}
	}
	if own, err = objectOf(top["creel"]); err != nil {
		return nil, err
	}
	var queues []json.RawMessage
	if raw, ok := own["queues"]; ok {
		if err := json.Unmarshal(raw, &queues); err != nil {
			return nil, err
		}
	}
	rows, most := map[string][]json.RawMessage{}, map[string]creel.Resource{}
	for _, raw := range queues {
		var q queueJSON
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, err
		}
		path, err := creel.ParseQueuePath(q.Queue)
		if err != nil {
			return nil, err
		}
		rows[path.Leaf()] = append(rows[path.Leaf()], raw)
		most[q.Label] = most[q.Label].Max(q.Capacity.resource().Add(q.Free.resource()))
	}
	few := map[string]json.RawMessage{}
	for _, name := range headMetrics {
		if raw, ok := metrics[name]; ok {
			few[name] = raw
		}
	}
	head := map[string]any{"clusterMetrics": few}
	if len(own) > 0 {
		delete(own, "waits") // no split reads others' waiting times
		delete(own, "queueWaits")
		if delete(own, "queues"); len(most) > 0 {
			if own["queues"], err = json.Marshal(labelRows(most)); err != nil {
				return nil, err
			}
		}
		head["creel"] = own
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	parts := []Part{{Text: text}}
	for _, leaf := range slices.Sorted(maps.Keys(rows)) {
		text, err := json.Marshal(rowsJSON{leaf, rowsOf{rows[leaf]}})
		if err != nil {
			return nil, err
		}
		parts = append(parts, Part{leaf, text})
	}
	return parts, nil
}

// WithoutQueues returns a load without the rows of queues, for the registration.
func WithoutQueues(load []byte) []byte {
	top, err := objectOf(load)
	if err != nil {
		return load // its readers report the error
	}
	own, err := objectOf(top["creel"])
	if err != nil || own["queues"] == nil {
		return load
	}
	delete(own, "queues")
	if top["creel"], err = json.Marshal(own); err != nil {
		return load
	}
	short, err := json.Marshal(top)
	if err != nil {
		return load
	}
	return short
}

// cutNames are the names that Cut reads in the objects of a load.
var cutNames = append([]string{"clusterMetrics", "creel", "queues", "waits", "queueWaits"}, headMetrics...)

// objectOf reads the fields of a JSON object; empty data has none. A name of cutNames that occurs twice, or in
// another case, is an error, because its value would be lost or in a wrong part. (ParseLoad, like encoding/json,
// accepts both.)
func objectOf(data []byte) (fields map[string]json.RawMessage, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if err = json.Unmarshal(data, &fields); err != nil || fields == nil {
		return fields, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	seen := 0
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		for i, known := range cutNames {
			if text, _ := name.(string); strings.EqualFold(text, known) {
				if text != known || seen&(1<<i) != 0 {
					return nil, fmt.Errorf("%q occurs twice, or is not written as %q", text, known)
				}
				seen |= 1 << i
			}
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// rowsJSON is the JSON form of a part other than the head.
type rowsJSON struct {
	Leaf  string `json:"leaf"`
	Creel rowsOf `json:"creel"`
}

type rowsOf struct {
	Queues []json.RawMessage `json:"queues"`
}

// labelRows returns the rows of a head.
func labelRows(most map[string]creel.Resource) (rows []map[string]any) {
	for _, label := range slices.Sorted(maps.Keys(most)) {
		row := map[string]any{"queue": string(creel.RootQueue), "capacity": toJSON(most[label])}
		if label != "" {
			row["label"] = label
		}
		rows = append(rows, row)
	}
	return rows
}

// JoinParts makes a load, or a plan (Plan.Cut), from a head and rows.
func JoinParts(parts []string) string { return partSeparator + strings.Join(parts, partSeparator) }

// inParts reports whether JoinParts made the text.
func inParts(text string) bool { return strings.HasPrefix(text, partSeparator) }

// partsOf returns the arguments of JoinParts.
func partsOf(text string) []string { return strings.Split(text[len(partSeparator):], partSeparator) }

// parseParts reads a load in parts.
func parseParts(load string) (Load, error) {
	parts := partsOf(load)
	l, err := ParseLoad([]byte(parts[0]))
	for _, part := range parts[1:] {
		rows, err := ParseLoad([]byte(part))
		if err != nil {
			return Load{}, err
		}
		l.Queues = append(l.Queues, rows.Queues...)
	}
	slices.SortStableFunc(l.Queues, func(a, b QueueLoad) int { return compareQueue(a, b.Queue, b.Label) })
	return l, err
}
