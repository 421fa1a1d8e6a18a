// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Mutation is a requested change of the CapacityScheduler's queue configuration, in the form of Hadoop's
// scheduler-conf: removals come first, then additions, updates, and global keys.
type Mutation struct {
	Remove      []string // paths of queues
	Add, Update []QueueSettings
	Global      []Setting // by full name
}

// QueueSettings are settings of one queue, by the last parts of their keys.
type QueueSettings struct {
	Queue    string
	Settings []Setting
}

// Setting is a key with its new value; an empty value removes the key.
type Setting struct{ Key, Value string }

// Change is the change of one key. Nil means an absent key.
type Change struct {
	Name string  `json:"name"`
	Old  *string `json:"old,omitempty"`
	New  *string `json:"new,omitempty"`
}

// Changes returns the keys of a configuration that a mutation changes, sorted by name. An error contains the reason for
// a rejection. ReadCapacity decides whether the resulting queues are valid. The configuration itself is not modified.
func (m *Mutation) Changes(conf map[string]string) ([]Change, error) {
	next := maps.Clone(conf)
	for _, path := range m.Remove {
		if err := removeQueue(next, path); err != nil {
			return nil, err
		}
	}
	for _, q := range m.Add {
		if err := addQueue(next, q); err != nil {
			return nil, err
		}
	}
	for _, q := range m.Update {
		setAll(next, capacityPrefix+q.Queue+".", q.Settings)
	}
	setAll(next, "", m.Global)
	return Difference(conf, next), nil
}

// Queues returns the paths of the queues that a mutation names.
func (m *Mutation) Queues() []string {
	out := slices.Clone(m.Remove)
	for _, q := range m.Add {
		out = append(out, q.Queue)
	}
	for _, q := range m.Update {
		out = append(out, q.Queue)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// String describes a mutation briefly, for a log.
func (m *Mutation) String() string {
	var out []string
	list := func(verb string, of []QueueSettings) {
		for _, q := range of {
			out = append(out, verb+" "+q.Queue+keysOf(q.Settings))
		}
	}
	for _, path := range m.Remove {
		out = append(out, "remove "+path)
	}
	list("add", m.Add)
	list("update", m.Update)
	if len(m.Global) > 0 {
		out = append(out, "global"+keysOf(m.Global))
	}
	return strings.Join(out, "; ")
}

func keysOf(list []Setting) string {
	var out strings.Builder
	for _, s := range list {
		fmt.Fprintf(&out, " %s=%s", s.Key, s.Value)
	}
	return out.String()
}

// Difference returns the changes from one configuration to another, sorted by name.
func Difference(from, to map[string]string) []Change {
	var out []Change
	for name, old := range from {
		if now, ok := to[name]; !ok {
			out = append(out, Change{Name: name, Old: &old})
		} else if now != old {
			out = append(out, Change{Name: name, Old: &old, New: &now})
		}
	}
	for name, now := range to {
		if _, ok := from[name]; !ok {
			out = append(out, Change{Name: name, New: &now})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Undo returns the changes that revert others. It returns an error if a key has changed again since.
func Undo(conf map[string]string, changes []Change) ([]Change, error) {
	out := make([]Change, 0, len(changes))
	for _, c := range changes {
		now, there := conf[c.Name]
		if there != (c.New != nil) || there && now != *c.New {
			return nil, &creel.Error{
				Kind: creel.ErrConflict,
				What: "the change cannot be undone",
				Why:  c.Name + " has been changed again since",
				Try:  "undo the later change first",
			}
		}
		out = append(out, Change{Name: c.Name, Old: c.New, New: c.Old})
	}
	return out, nil
}

// With returns a configuration with changes applied; the argument stays unchanged.
func With(conf map[string]string, changes []Change) map[string]string {
	out := maps.Clone(conf)
	for _, c := range changes {
		if c.New == nil {
			delete(out, c.Name)
		} else {
			out[c.Name] = *c.New
		}
	}
	return out
}

func setAll(conf map[string]string, prefix string, settings []Setting) {
	for _, s := range settings {
		if s.Value == "" {
			delete(conf, prefix+s.Key)
		} else {
			conf[prefix+s.Key] = s.Value
		}
	}
}

// inParent splits the path of a queue that is not the root.
func inParent(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", "", false
	}
	p, err := creel.ParseQueuePath(path)
	if err != nil || p.Parts()[0] != string(creel.RootQueue) {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

func queuesKey(path string) string { return capacityPrefix + path + ".queues" }

func setQueues(conf map[string]string, parent string, names []string) {
	if len(names) == 0 {
		delete(conf, queuesKey(parent))
		return
	}
	conf[queuesKey(parent)] = strings.Join(names, ",")
}

func cannot(format string, a ...any) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: fmt.Sprintf(format, a...)}
}

// removeQueue removes a queue from its parent's list, with all settings of the queue and its descendants. If the
// parent becomes a leaf, the order of its children is removed too.
func removeQueue(conf map[string]string, path string) error {
	parent, name, ok := inParent(path)
	if !ok {
		return cannot("Can't remove queue %s", path)
	}
	names := splitList(conf[queuesKey(parent)])
	i := slices.Index(names, name)
	if i < 0 {
		return cannot("Queue %s not found", path)
	}
	names = slices.Delete(names, i, i+1)
	setQueues(conf, parent, names)
	if len(names) == 0 {
		delete(conf, capacityPrefix+parent+".ordering-policy")
	}
	maps.DeleteFunc(conf, func(key, _ string) bool {
		return strings.HasPrefix(key, capacityPrefix+path+".") || strings.HasPrefix(key, nodeOrderPrefix+path+".")
	})
	return nil
}

func addQueue(conf map[string]string, q QueueSettings) error {
	parent, name, ok := inParent(q.Queue)
	if !ok {
		return cannot("Can't add invalid queue %s", q.Queue)
	}
	names := splitList(conf[queuesKey(parent)])
	if slices.Contains(names, name) {
		return cannot("Can't add existing queue %s", q.Queue)
	}
	setQueues(conf, parent, append(names, name))
	setAll(conf, capacityPrefix+q.Queue+".", q.Settings)
	if len(names) == 0 {
		delete(conf, capacityPrefix+parent+".ordering-policy")
	}
	return nil
}
