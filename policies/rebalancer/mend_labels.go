// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Capacities on nodes of a label are configured by separate keys, and only queues that may use the label have them.
// Hadoop has further rules. A queue has no label that its parent lacks. If a queue has a part of the nodes, its
// children sum to all of that part. The children use the same unit as on nodes without a label.

const labelList = "accessible-node-labels"

// key returns the name of a setting on these nodes.
func (x *mender) key(what string) string {
	if x.label == "" {
		return what
	}
	return labelList + "." + x.label + "." + what
}

func (x *mender) own(path creel.QueuePath, what string) string { return x.get(path, x.key(what)) }

func (x *mender) unitOf(path creel.QueuePath) (unitOf, float64) {
	text := x.own(path, "capacity")
	u, v := unit(text)
	if most, _ := unit(x.own(path, "maximum-capacity")); x.label != "" && text == "" && most == amountUnit {
		u = amountUnit // a percentage could not be mixed with it
	}
	return u, v
}

// labels returns the labels in a queue's own list; false if the queue inherits its parent's labels.
func (x *mender) labels(path creel.QueuePath) (names []string, own bool) {
	text, own := x.conf[capacityPrefix+string(path)+"."+labelList]
	for _, name := range strings.Split(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, own
}

// accesses reports whether a queue may use these nodes, or will.
func (x *mender) accesses(path creel.QueuePath) bool {
	if x.label == "" || path == creel.RootQueue {
		return true
	}
	names, own := x.labels(path)
	return x.accesses(path.Parent()) &&
		(!own || x.granted[path] || slices.Contains(names, "*") || slices.Contains(names, x.label))
}

// usable reports whether a queue may use these nodes and, if it has children, some leaf below it may too.
func (x *mender) usable(path creel.QueuePath) bool {
	below := x.children(path)
	return x.accesses(path) && (len(below) == 0 || slices.ContainsFunc(below, x.usable))
}

// grant adds the label to the queues that the tree names on these nodes and that lack the label.
func (x *mender) grant() {
	for i := range x.tree.Queues { // parents come before their children
		path := x.tree.Queues[i].Path
		switch above := path.Parent(); {
		case !x.has(path):
			x.note("%s gets nothing: there is no such queue", path)
		case x.accesses(path):
		case !x.accesses(above):
			x.note("%s gets nothing: %s may not use these nodes, and the document does not name it there", path, above)
		default:
			names, _ := x.labels(path)
			x.granted[path] = true
			x.change(path, labelList, x.conf[capacityPrefix+string(path)+"."+labelList],
				strings.Join(append(names, x.label), ","), "the document names it on these nodes")
		}
	}
	root := x.own(creel.RootQueue, "capacity")
	none := x.member.ByAgent() && (root == "" || root == "0")
	if none && x.want.drifted[creel.RootQueue] && x.usable(creel.RootQueue) {
		x.change(creel.RootQueue, x.key("capacity"), root, "100", "without it Hadoop assigns the label to no queue")
	}
}

// unitWithoutLabel returns the unit of the children of a queue on nodes without a label.
func (x *mender) unitWithoutLabel(above creel.QueuePath, otherwise unitOf) unitOf {
	for _, path := range x.children(above) {
		if text := x.get(path, "capacity"); text != "" {
			if kind, _ := unit(text); kind != mixedUnit {
				return kind
			}
		}
	}
	return otherwise
}

// sharesWithoutLabel sets the shares that the queues have on nodes without a label. It reports whether any queue can
// get a share.
func (x *mender) sharesWithoutLabel(list []child) bool {
	parts, sum, usable := make([]float64, len(list)), 0.0, 0.0
	for i := range list {
		if x.usable(list[i].path) {
			_, parts[i] = unit(x.get(list[i].path, "capacity"))
			sum += parts[i]
			usable++
		}
	}
	for i := range list {
		switch c := &list[i]; {
		case sum > 0:
			c.is = parts[i] / sum
		case x.usable(c.path):
			c.is = 1 / usable
		}
	}
	return usable > 0
}

// nothing does the work of level below a queue that has none of these nodes. Hadoop requires that its children have
// none either.
func (x *mender) nothing(list []child, above creel.QueuePath, kind unitOf) {
	for i := range list {
		c := &list[i]
		if c.named {
			x.note("%s gets nothing: %s has none of these nodes, and the document guarantees it none", c.path, above)
		}
		if x.changed[above] && kind == percentUnit && c.value > 0 {
			was := x.own(c.path, "capacity")
			x.change(c.path, x.key("capacity"), was, "0", "the queue above it has none of these nodes")
		}
		x.level(c.path, creel.Resource{}, creel.Resource{}, kind)
	}
}
