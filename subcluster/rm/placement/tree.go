// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Tree is a configured queue tree for placement rules: queues by path and by short name. The argument live of each
// call identifies queues created since configuration.
type Tree struct {
	byPath map[creel.QueuePath]*queues.Queue
	byName map[string][]creel.QueuePath // every queue with that last part, in tree order
}

// NewTree indexes a queue tree, which must not change afterwards.
func NewTree(root *queues.Queue) *Tree {
	n := &Tree{byPath: map[creel.QueuePath]*queues.Queue{}, byName: map[string][]creel.QueuePath{}}
	n.add(creel.RootQueue, root)
	return n
}

func (n *Tree) add(path creel.QueuePath, q *queues.Queue) {
	n.byPath[path] = q
	n.byName[q.Name] = append(n.byName[q.Name], path)
	for i := range q.Children {
		n.add(path.Child(q.Children[i].Name), &q.Children[i])
	}
}

// exists reports whether a path is a queue, configured or live.
func (n *Tree) exists(path creel.QueuePath, live func(creel.QueuePath) bool) bool {
	return n.byPath[path] != nil || live(path)
}

// unique finds the one queue of a short name.
func (n *Tree) unique(name string) (creel.QueuePath, error) {
	switch paths := n.byName[name]; len(paths) {
	case 0:
		return "", fmt.Errorf("there is no queue %q", name)
	case 1:
		return paths[0], nil
	default:
		return "", fmt.Errorf("queue name %q is ambiguous: %s and %s", name, paths[0], paths[1])
	}
}

// full returns a path from the root. It looks up a single name, and the first part of a path that does not start at
// the root.
func (n *Tree) full(path string) (creel.QueuePath, error) {
	p, err := creel.ParseQueuePath(path)
	if err != nil {
		return "", fmt.Errorf("%q is not a queue path", path)
	}
	if p.IsFull() {
		return p, nil
	}
	first, rest, more := strings.Cut(path, ".")
	top, err := n.unique(first)
	if err != nil {
		return "", err
	}
	if !more {
		return top, nil
	}
	return top + "." + creel.QueuePath(rest), nil
}

// Target checks that an application can be placed at path: at an existing leaf or, with create, at a leaf that an
// existing queue may create below it.
func (n *Tree) Target(path string, create bool, live func(creel.QueuePath) bool) (queues.PlacementResult, error) {
	full, err := n.full(path)
	if err != nil {
		return queues.PlacementResult{}, err
	}
	if q := n.byPath[full]; q != nil {
		if q.IsLeaf() {
			return queues.PlacementResult{Queue: full}, nil
		}
		return queues.PlacementResult{}, fmt.Errorf("%s is a parent queue", full)
	}
	if live(full) {
		return queues.PlacementResult{Queue: full}, nil
	}
	if !create {
		return queues.PlacementResult{}, fmt.Errorf("there is no queue %s, and the rule does not create one", full)
	}
	missing := 0
	for at := full; at != ""; at = at.Parent() {
		q := n.byPath[at]
		if q == nil {
			missing++
			continue
		}
		switch {
		case q.AutoCreate == nil:
			return queues.PlacementResult{}, fmt.Errorf("there is no queue %s, and %s does not create queues", full, at)
		case missing > max(1, q.AutoCreate.Depth):
			return queues.PlacementResult{}, fmt.Errorf(
				"there is no queue %s, and %s creates at most %d levels",
				full,
				at,
				max(1, q.AutoCreate.Depth),
			)
		}
		return queues.PlacementResult{Queue: full, Create: true}, nil
	}
	return queues.PlacementResult{}, fmt.Errorf("there is no queue %s", full)
}

// cleanName makes a user, group or application name usable as part of a path.
func cleanName(name string) string { return strings.ReplaceAll(name, ".", "_dot_") }

// refused returns the error for a submission that a rule rejects.
func refused(why string) error {
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: "a placement rule rejected the application",
		Why:  why,
		Try:  "name another queue, or ask the administrator of the placement rules",
	}
}
