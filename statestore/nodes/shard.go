// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/creelrm/creel/statestore/memory"
)

// part is a node with some of a snapshot's fields.
type part struct {
	path   string
	fields []string
}

// shard is the in-memory store on the records of a few nodes. A transaction writes its changes back.
type shard struct {
	*memory.State
	txn   *txn
	parts []part
}

// shard reads nodes, and makes the in-memory store of their records.
func (t *txn) shard(parts ...part) (*shard, error) {
	all := fields{}
	for _, p := range parts {
		n, err := t.get(p.path)
		if err != nil {
			return nil, err
		}
		f, err := parseFields(n.data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
		for _, name := range p.fields {
			if f[name] != nil {
				all[name] = f[name]
			}
		}
	}
	s := &shard{State: memory.NewState("", t.store.cfg.Validate), txn: t, parts: parts}
	if err := s.set(all); err != nil {
		return nil, fmt.Errorf("%s: %w", parts[0].path, err)
	}
	t.atEnd(s.save)
	return s, nil
}

// set replaces the records.
func (s *shard) set(all fields) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return s.Restore(text)
}

// fields are the records as they are now.
func (s *shard) fields() (fields, error) {
	text, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	f := fields{}
	return f, json.Unmarshal(text, &f)
}

// save writes the nodes whose fields have changed.
func (s *shard) save() error {
	all, err := s.fields()
	if err != nil {
		return err
	}
	for _, p := range s.parts {
		if err := s.txn.save(p, all); err != nil {
			return err
		}
	}
	return nil
}

// save writes a part, if it has changed. A part without fields is deleted, unless it has children.
func (t *txn) save(p part, all fields) error {
	n := t.nodes[p.path]
	own := fields{}
	for _, name := range p.fields {
		if all[name] != nil {
			own[name] = all[name]
		}
	}
	if len(own) == 0 {
		if n.is && len(n.data) > 0 && n.stat.Children == 0 {
			t.remove(p.path)
		}
		return nil
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	before, err := decode(n.data)
	if err != nil || n.is && bytes.Equal(before, text) {
		return err
	}
	data, err := encode(text)
	if err != nil {
		return err
	}
	t.put(p.path, data)
	return nil
}

// without removes a part from the nodes that are saved.
func (s *shard) without(path string) {
	s.parts = slices.DeleteFunc(slices.Clone(s.parts), func(p part) bool { return p.path == path })
}
