// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// Subject returns the part of a Portable to which an entry belongs, "" if it belongs to none. An application and its
// attempts are one part.
func Subject(key string) string {
	if id, found := turn.AppOf(key); found {
		return turn.AppKey(id)
	}
	if key == keyMeta || key == keySecrets || key == keyTokenKeys || strings.HasPrefix(key, keyToken) {
		return key
	}
	return ""
}

// AppOf returns the application whose record has a key.
func AppOf(key string) (id creel.ApplicationID, found bool) {
	id, found = turn.AppOf(key)
	return id, found && key == turn.AppKey(id)
}

// PartKind is the kind of a Part.
type PartKind int

// These are the kinds of parts. A part of an entry that does not exist is empty.
const (
	PartEmpty PartKind = iota
	PartEpoch
	PartAMRM      // the keys of AMs' tokens
	PartTokenKeys // with the number of the newest token
	PartToken
	PartApp
)

// ReadPart reads the part of a subject. first is the epoch of a first start, by the settings.
func ReadPart(
	subject string, get func(key string) (value string, found bool), first int64,
) (*Portable, PartKind, error) {
	p := &Portable{}
	value, found := get(subject)
	if !found {
		return p, PartEmpty, nil
	}
	kind, err := PartEmpty, error(nil)
	switch id, isApp := turn.AppOf(subject); {
	case isApp:
		kind, err = PartApp, p.readApp(id, get)
	case subject == keyMeta:
		var m meta
		kind, err = PartEpoch, json.Unmarshal([]byte(value), &m)
		p.Epoch = cmp.Or(m.First, first) + m.Starts
	case subject == keySecrets:
		var v secretsValue
		kind, err = PartAMRM, json.Unmarshal([]byte(value), &v)
		p.AMRM = v.AMRM
	case subject == keyTokenKeys:
		var v tokenKeysValue
		kind, err = PartTokenKeys, json.Unmarshal([]byte(value), &v)
		p.Delegation.Keys, p.Delegation.Sequence = v.Keys, v.Sequence
	default:
		var r token.DelegationRecord
		kind, err = PartToken, json.Unmarshal([]byte(value), &r)
		p.Delegation.Tokens = append(p.Delegation.Tokens, r)
	}
	if err != nil {
		err = fmt.Errorf("entry %s: %w", subject, err)
	}
	return p, kind, err
}

// readApp reads an application, and the keys of clients' tokens for its running AM.
func (p *Portable) readApp(id creel.ApplicationID, get func(key string) (value string, found bool)) error {
	r, err := turn.ReadApp(id, get)
	if err != nil || r == nil {
		return err
	}
	p.Apps = append(p.Apps, *r)
	p.ClientKeys = map[creel.AttemptID][]byte{}
	if r.State.Ended() {
		return nil
	}
	value, _ := get(keySecrets)
	var v secretsValue
	if value != "" {
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			return err
		}
	}
	s := &secrets{clients: v.Clients, amClients: v.AMClients}
	for _, t := range r.Attempts {
		if !t.State.Ended() {
			p.ClientKeys[t.ID] = s.clientKey(t.ID).Secret
		}
	}
	return nil
}

// Merge returns the operations that bring the entries of a state up to a Portable, with which another implementation
// continued it. same are the applications that the other one has not changed. Entries that Portable lacks remain, and
// so do the fields that it lacks of an application's record.
func (p *Portable) Merge(
	entries map[string]string, same map[creel.ApplicationID]bool, first int64,
) ([]byte, error) {
	var tx state.Tx
	get := func(key string) (string, bool) { v, found := entries[key]; return v, found }
	runs := map[creel.ApplicationID]bool{} // whether an application of the Portable has not ended
	for i := range p.Apps {
		id := p.Apps[i].Submission.ID
		runs[id] = !p.Apps[i].State.Ended()
		if same[id] {
			continue
		}
		old, err := turn.ReadApp(id, get)
		if err != nil {
			return nil, err
		}
		r := p.Apps[i]
		if old != nil {
			completeApp(&r, old)
		}
		if err := turn.PutApp(&tx, &r); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		id, isApp := turn.AppOf(key)
		_, listed := runs[id]
		if isApp && !same[id] && (!listed || key != turn.AppKey(id)) {
			tx.Delete(key)
		}
	}
	if err := p.mergeKeys(&tx, entries, runs, first); err != nil {
		return nil, err
	}
	return tx.Bytes(), nil
}

// completeApp adds the fields of a record that Portable lacks.
func completeApp(r, old *rm.AppRecord) {
	r.Submission.Groups = old.Submission.Groups
	r.Usage.Lost, r.Usage.Containers, r.Usage.AMs = old.Usage.Lost, old.Usage.Containers, old.Usage.AMs
	r.Released, r.Moved = old.Released, old.Moved
	if !r.State.Ended() && len(r.Attempts) == 0 {
		r.Hold = old.Hold
	}
}

// mergeKeys adds the operations for the epoch, keys and tokens.
func (p *Portable) mergeKeys(
	tx *state.Tx, entries map[string]string, runs map[creel.ApplicationID]bool, first int64,
) error {
	var m meta
	var s secretsValue
	for key, into := range map[string]any{keyMeta: &m, keySecrets: &s} {
		if value := entries[key]; value != "" {
			if err := json.Unmarshal([]byte(value), into); err != nil {
				return fmt.Errorf("entry %s: %w", key, err)
			}
		}
	}
	m.Starts = max(m.Starts, p.Epoch-cmp.Or(m.First, first), 1)
	if p.Started.After(m.Started) {
		m.Started = p.Started
	}
	s.AMRM = p.AMRM
	clients := map[string][]byte{}
	for name, key := range s.AMClients {
		if id, err := creel.ParseAttemptID(name); err == nil && runs[id.Application] {
			clients[name] = key
		}
	}
	for id, key := range p.ClientKeys {
		clients[id.String()] = key
	}
	s.AMClients = clients
	values := map[string]any{
		keyMeta: m, keySecrets: s,
		// A key has no time of its change: the next start makes another one.
		keyTokenKeys: tokenKeysValue{Keys: p.Delegation.Keys, Sequence: p.Delegation.Sequence},
	}
	for _, t := range p.Delegation.Tokens {
		values[tokenKey(t.Sequence)] = t
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b, err := json.Marshal(values[key])
		if err != nil {
			return err
		}
		if string(b) != entries[key] {
			tx.Put(key, b)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, found := values[key]; !found && strings.HasPrefix(key, keyToken) {
			tx.Delete(key)
		}
	}
	return nil
}
