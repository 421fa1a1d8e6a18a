// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// Portable is the part of a state that Hadoop's ResourceManager has too.
type Portable struct {
	Epoch   int64 // of the next start
	Started time.Time
	Apps    []rm.AppRecord // by id, with all attempts
	// AMRM are the keys of AMs' tokens. The next start decides the time of their change.
	AMRM token.KeyState
	// Delegation are the clients' tokens and their keys. The next start makes a new key.
	Delegation token.DelegationState
	// ClientKeys are the keys of clients' tokens for running AMs.
	ClientKeys map[creel.AttemptID][]byte
	// Omitted describes entries of the state that Hadoop has no record for.
	Omitted []string
}

// Entries returns the state as entries of a state.Log. first is the epoch of a first start, by the settings.
func (p *Portable) Entries(first int64) (map[string][]byte, error) {
	out := entries{}
	// The epoch of a start is the first one and the number of earlier starts.
	meta := meta{Starts: max(p.Epoch-first, 1), Started: p.Started}
	secrets := secretsValue{AMRM: p.AMRM}
	for id, key := range p.ClientKeys {
		if secrets.AMClients == nil {
			secrets.AMClients = map[string][]byte{}
		}
		secrets.AMClients[id.String()] = key
	}
	d := p.Delegation
	for key, value := range map[string]any{
		keyMeta:      meta,
		keySecrets:   secrets,
		keyTokenKeys: tokenKeysValue{Keys: d.Keys, Sequence: d.Sequence},
	} {
		b, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out.Put(key, b)
	}
	for _, t := range d.Tokens {
		b, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		out.Put(tokenKey(t.Sequence), b)
	}
	for i := range p.Apps {
		if err := turn.PutApp(out, &p.Apps[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// entries are a transaction into a map.
type entries map[string][]byte

func (e entries) Put(key string, value []byte) { e[key] = value }
func (e entries) Delete(key string)            { delete(e, key) }
func (e entries) Len() int                     { return len(e) }

// ReadPortable reads the state of a stopped ResourceManager. first is the epoch of a first start, by the settings.
func ReadPortable(log state.Log, first int64) (*Portable, error) {
	var records turn.Records
	k, err := replay(log, &records)
	if err != nil {
		return nil, err
	}
	if k.meta.Starts == 0 {
		return nil, errors.New("resource manager: the state is empty")
	}
	if k.meta.First != 0 {
		first = k.meta.First
	}
	p := &Portable{Epoch: first + k.meta.Starts, Started: k.meta.Started, Apps: k.recover.Apps}
	var v secretsValue
	if err := json.Unmarshal(k.secrets, &v); err != nil {
		return nil, fmt.Errorf("resource manager: the journal's master keys: %w", err)
	}
	p.AMRM = v.AMRM
	s := &secrets{clients: v.Clients, amClients: v.AMClients}
	d := &delegation{}
	if err := d.restore(Config{}, k.tokenKeys, k.tokens); err != nil {
		return nil, err
	}
	if d.d != nil {
		p.Delegation = d.d.State()
	}
	p.ClientKeys = map[creel.AttemptID][]byte{}
	for i := range p.Apps {
		for _, t := range p.Apps[i].Attempts {
			if !p.Apps[i].State.Ended() && !t.State.Ended() {
				p.ClientKeys[t.ID] = s.clientKey(t.ID).Secret
			}
		}
	}
	p.Omitted = k.omitted()
	return p, nil
}

// omitted describes the entries that Portable lacks.
func (k *journalContent) omitted() (out []string) {
	r := k.recover
	for what, n := range map[string]int{
		"applications that routers moved to other subclusters": len(r.Disowned),
		"node labels":                         len(r.Labels.Cluster),
		"hosts with attributes":               len(r.Attributes),
		"hosts that administrators drained":   len(k.drains),
		"settings of queues changed by calls": len(k.conf.values),
	} {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, what))
		}
	}
	slices.Sort(out)
	return out
}
