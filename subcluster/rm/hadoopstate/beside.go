// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// Beside keeps Hadoop's records beside creel's log, so that the ResourceManagers of a pair can be of both
// implementations. It implements zkstate.Records. Lists are not split: Hadoop's ResourceManager reads each split, and a
// record's path then follows from its name.
type Beside struct {
	First int64 // epoch of a first start, by the settings
}

var _ zkstate.Records = Beside{}

// always are the nodes that each state has. Those without children have one record.
var always = []string{
	epochName, appsName, secretsName, sequenceName, keysName, tokensName, amrmName,
}

func tokenPath(sequence int32) string {
	return tokensName + "/" + tokenPrefix + strconv.Itoa(int(sequence))
}

// Changes implements zkstate.Records.
func (b Beside) Changes(keys []string, before, after zkstate.Entries) (out []zkstate.Change, err error) {
	done := map[string]bool{"": true}
	for _, key := range keys {
		subject := server.Subject(key)
		if done[subject] {
			continue
		}
		done[subject] = true
		old, err := b.nodes(subject, before)
		if err != nil {
			return nil, err
		}
		now, err := b.nodes(subject, after)
		if err != nil {
			return nil, err
		}
		out = append(out, difference(old, now)...)
	}
	return out, nil
}

// difference returns the changes from one list of nodes to another, parents first.
func difference(old, now []zkstate.Node) (out []zkstate.Change) {
	before := map[string][]byte{}
	for _, n := range old {
		before[n.Path] = n.Data
	}
	for _, n := range now {
		data, exists := before[n.Path]
		delete(before, n.Path)
		switch {
		case exists && bytes.Equal(data, n.Data):
		case exists || slices.Contains(always, n.Path):
			out = append(out, zkstate.Change{Kind: zkstate.Replace, Path: n.Path, Data: n.Data})
		default:
			out = append(out, zkstate.Change{Kind: zkstate.Create, Path: n.Path, Data: n.Data})
		}
	}
	for _, n := range slices.Backward(old) {
		if _, gone := before[n.Path]; gone && !slices.Contains(always, n.Path) {
			out = append(out, zkstate.Change{Kind: zkstate.Remove, Path: n.Path})
		}
	}
	return out
}

// nodes are the records of a subject, below the root. An application with a record that is too large has none.
func (b Beside) nodes(subject string, get zkstate.Entries) (list []zkstate.Node, err error) {
	p, kind, err := server.ReadPart(subject, get, b.First)
	if err != nil {
		return nil, err
	}
	s := FromPortable(p)
	switch kind {
	case server.PartEpoch:
		return []zkstate.Node{{Path: epochName, Data: appendEpoch(s.Epoch)}}, nil
	case server.PartAMRM:
		return []zkstate.Node{{Path: amrmName, Data: appendAMRM(s.AMRM)}}, nil
	case server.PartTokenKeys:
		list = append(list, zkstate.Node{Path: sequenceName, Data: appendSequence(s.Sequence)})
		for _, k := range s.Keys {
			list = append(list, zkstate.Node{Path: keyPath(k), Data: k.Append(nil)})
		}
	case server.PartToken:
		return tokenNodes(tokenPath(s.Tokens[0].Sequence), s.Tokens[0])
	case server.PartApp:
		list, err = s.Apps[0].nodes(appsName + "/" + s.Apps[0].ID.String())
	}
	if slices.ContainsFunc(list, func(n zkstate.Node) bool { return len(n.Data) > maxRecord }) {
		return nil, err
	}
	return list, err
}

// wanted are all records that follow from entries, parents first.
func (b Beside) wanted(entries map[string]string) (list []zkstate.Node, err error) {
	get := func(key string) (string, bool) { value, found := entries[key]; return value, found }
	done := map[string]bool{"": true}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		subject := server.Subject(key)
		if done[subject] {
			continue
		}
		done[subject] = true
		nodes, err := b.nodes(subject, get)
		if err != nil {
			return nil, err
		}
		list = append(list, nodes...)
	}
	return list, nil
}

// readRecords reads the records at an opening. No other process changes them.
func readRecords(ctx context.Context, nodes Nodes, parent string) (*reader, error) {
	r := &reader{ctx: ctx, nodes: nodes, root: rootOf(parent), out: &State{}, found: map[string]found{}}
	return r, r.records()
}

// missing returns the changes that create the nodes of always.
func (r *reader) missing() (out []zkstate.Change, err error) {
	for _, path := range always {
		_, _, err := r.nodes.Get(r.ctx, r.root+path)
		if errors.Is(err, fs.ErrNotExist) {
			out = append(out, zkstate.Change{Kind: zkstate.Create, Path: path})
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Rewrite implements zkstate.Records.
func (b Beside) Rewrite(
	ctx context.Context, nodes *zkstate.Session, parent string, entries map[string]string,
) ([]zkstate.Change, error) {
	return b.rewrite(ctx, nodes, parent, entries)
}

func (b Beside) rewrite(
	ctx context.Context, nodes Nodes, parent string, entries map[string]string,
) ([]zkstate.Change, error) {
	r, err := readRecords(ctx, nodes, parent)
	if err != nil {
		return nil, err
	}
	out, err := r.missing()
	if err != nil {
		return nil, err
	}
	want, err := b.wanted(entries)
	if err != nil {
		return nil, err
	}
	var old []zkstate.Node
	for _, path := range slices.Sorted(maps.Keys(r.found)) {
		f := r.found[path]
		old = append(old, zkstate.Node{Path: f.path, Data: f.data})
	}
	// Removals first: an application may be at a path with a split.
	changes := difference(old, want)
	slices.SortStableFunc(changes, func(a, b zkstate.Change) int {
		return int(b.Kind/zkstate.Remove) - int(a.Kind/zkstate.Remove)
	})
	return append(out, changes...), nil
}

// Adopt implements zkstate.Records.
func (b Beside) Adopt(
	ctx context.Context, nodes *zkstate.Session, parent string, entries map[string]string,
) ([]byte, []zkstate.Change, error) {
	return b.adopt(ctx, nodes, parent, entries)
}

func (b Beside) adopt(
	ctx context.Context, nodes Nodes, parent string, entries map[string]string,
) ([]byte, []zkstate.Change, error) {
	r, err := readRecords(ctx, nodes, parent)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.out.Portable()
	if err != nil {
		return nil, nil, err
	}
	same, err := b.unchanged(r, entries)
	if err != nil {
		return nil, nil, err
	}
	ops, err := p.Merge(entries, same, b.First)
	if err != nil {
		return nil, nil, err
	}
	changes, err := r.missing()
	return ops, append(changes, r.joined()...), err
}

// unchanged returns the applications of the log whose records are those that follow from the log.
func (b Beside) unchanged(r *reader, entries map[string]string) (map[creel.ApplicationID]bool, error) {
	get := func(key string) (string, bool) { value, found := entries[key]; return value, found }
	attempts := map[creel.ApplicationID]int{} // of Hadoop's record
	for i := range r.out.Apps {
		attempts[r.out.Apps[i].ID] = len(r.out.Apps[i].Attempts)
	}
	same := map[creel.ApplicationID]bool{}
	for key := range entries {
		id, isApp := server.AppOf(key)
		if !isApp {
			continue
		}
		list, err := b.nodes(key, get)
		if err != nil {
			return nil, err
		}
		count, exists := attempts[id]
		same[id] = len(list) == 0 && !exists || exists && len(list) == count+1
		for _, n := range list {
			same[id] = same[id] && bytes.Equal(r.found[n.Path].data, n.Data)
		}
	}
	return same, nil
}

// joined returns the changes that move records from paths with a split to those that follow from their names: each
// record, an application with its attempts, in one transaction.
func (r *reader) joined() (out []zkstate.Change) {
	move := func(paths []string) {
		first := len(out)
		for _, path := range paths {
			out = append(out, zkstate.Change{Kind: zkstate.Create, Path: path, Data: r.found[path].data})
		}
		for _, path := range slices.Backward(paths) {
			out = append(out, zkstate.Change{Kind: zkstate.Remove, Path: r.found[path].path})
		}
		for i := first + 1; i < len(out); i++ {
			out[i].With = true
		}
	}
	for i := range r.out.Apps {
		a := &r.out.Apps[i]
		path := appsName + "/" + a.ID.String()
		if r.found[path].path == path {
			continue
		}
		paths := []string{path}
		for _, t := range a.Attempts {
			paths = append(paths, path+"/"+attemptName(t))
		}
		move(paths)
	}
	for _, t := range r.out.Tokens {
		if path := tokenPath(t.Sequence); r.found[path].path != path {
			move([]string{path})
		}
	}
	return out
}
