// SPDX-License-Identifier: Apache-2.0

package token

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// Rolling says how often a key is replaced and how long the replacement waits before it is used, so that everybody
// who has to know it does. Hadoop: 24 h and 15 min (1.5 times the expiry of masters or of nodes).
type Rolling struct {
	Every time.Duration // yarn.resourcemanager.*-tokens.master-key-rolling-interval-secs, 24 h
	Delay time.Duration // 15 min; has to be below Every
}

func (r Rolling) withDefaults() Rolling {
	if r.Every <= 0 {
		r.Every = 24 * time.Hour
	}
	if r.Delay <= 0 {
		r.Delay = 15 * time.Minute
	}
	r.Delay = min(r.Delay, r.Every)
	return r
}

// KeyState is all there is to know about Keys: what a ResourceManager keeps over a restart.
type KeyState struct {
	Current Key
	Next    Key       // zero: none pending
	Change  time.Time // when Next becomes Current, or, when there is none, when one is made
}

// Keys is the pair of master keys of one kind of token on the ResourceManager: a machine with one owner. The id of the
// first key is random, each later one is one more.
//
// Who mints AMRM tokens uses Newest and accepts both keys, so that a master holds a token under the next key before
// the current one goes. Who mints NM and container tokens uses Current and hands Next to the nodes meanwhile.
type Keys struct {
	rolling Rolling
	state   KeyState
	current *Mac
	next    *Mac // nil when none is pending
}

// NewKeys makes the first key.
func NewKeys(rolling Rolling, now time.Time, rnd *rand.Rand) *Keys {
	rolling = rolling.withDefaults()
	return RestoreKeys(
		rolling,
		KeyState{Current: Key{ID: int32(rnd.Uint32()), Secret: NewSecret(rnd)}, Change: now.Add(rolling.Every)},
	)
}

// RestoreKeys goes on from a state that was kept.
func RestoreKeys(rolling Rolling, s KeyState) *Keys {
	k := &Keys{rolling: rolling.withDefaults(), state: s, current: NewMac(s.Current)}
	if !s.Next.IsZero() {
		k.next = NewMac(s.Next)
	}
	return k
}

// State is what RestoreKeys takes.
func (k *Keys) State() KeyState { return k.state }

// Deadline is when Step has something to do next.
func (k *Keys) Deadline() time.Time { return k.state.Change }

// Step lets time pass: it makes the next key or puts it into use, whichever is due, and tells whether anything
// changed. A step that comes late does one change, not several; both keys get their full time.
func (k *Keys) Step(now time.Time, rnd *rand.Rand) bool {
	if now.Before(k.state.Change) {
		return false
	}
	if k.next == nil {
		k.Roll(now, rnd)
	} else {
		k.activate(now)
	}
	return true
}

// Roll makes the next key now; it comes into use after the delay. With one already pending nothing happens.
func (k *Keys) Roll(now time.Time, rnd *rand.Rand) {
	if k.next != nil {
		return
	}
	k.state.Next = Key{ID: k.state.Current.ID + 1, Secret: NewSecret(rnd)}
	k.state.Change = now.Add(k.rolling.Delay)
	k.next = NewMac(k.state.Next)
}

func (k *Keys) activate(now time.Time) {
	k.current, k.next = k.next, nil
	k.state = KeyState{Current: k.state.Next, Change: now.Add(k.rolling.Every - k.rolling.Delay)}
}

// Current signs with the key in use.
func (k *Keys) Current() *Mac { return k.current }

// Next signs with the pending key; nil when none is.
func (k *Keys) Next() *Mac { return k.next }

// Newest signs with the pending key, or with the current one.
func (k *Keys) Newest() *Mac {
	if k.next != nil {
		return k.next
	}
	return k.current
}

// ForNode is the key a node has to be told when the last it knows is known: the pending one, or the current one; zero
// when it knows it.
func (k *Keys) ForNode(known int32) Key {
	if newest := k.Newest().Key(); newest.ID != known {
		return newest
	}
	return Key{}
}

// Accepted are the keys under which AMRM tokens are accepted: current and next.
func (k *Keys) Accepted() Ring {
	if k.next == nil {
		return Ring{k.state.Current}
	}
	return Ring{k.state.Current, k.state.Next}
}

// ReplaceAMRM is the token a living master has to get in its next allocate answer, when the key its present one is
// signed with is about to go; false when it needs none.
func (k *Keys) ReplaceAMRM(held AMRM) (Token, bool) {
	if k.next == nil || held.KeyID == k.state.Next.ID {
		return Token{}, false
	}
	return k.next.AMRM(held.Attempt), true
}

// NodeKeys is what a node knows of its ResourceManager's keys for one kind of token: a machine with one owner. Two
// keys are accepted, the last it was told and the one before. For NM tokens it also remembers under which key each
// attempt last started containers: a master keeps its token for as long as it runs.
type NodeKeys struct {
	node              creel.NodeID
	current, previous Key
	started           map[creel.AttemptID]Key
}

// NewNodeKeys knows no key yet and accepts nothing.
func NewNodeKeys(node creel.NodeID) *NodeKeys {
	return &NodeKeys{node: node, started: map[creel.AttemptID]Key{}}
}

// Told takes a key from a registration or heartbeat answer. One it knows already changes nothing.
func (n *NodeKeys) Told(k Key) {
	if k.IsZero() || k.ID == n.current.ID && !n.current.IsZero() {
		return
	}
	n.previous, n.current = n.current, k
}

// Current is the last key told, which heartbeats report; zero before the first.
func (n *NodeKeys) Current() Key { return n.current }

// Accepted are the keys everybody may use: the last two told.
func (n *NodeKeys) Accepted() Ring {
	var r Ring
	for _, k := range []Key{n.current, n.previous} {
		if !k.IsZero() {
			r = append(r, k)
		}
	}
	return r
}

// Password is what SASL needs for the identifier of an NM token: its password, and who it is. The error is of kind
// ErrInvalidToken.
func (n *NodeKeys) Password(identifier []byte) ([]byte, NM, error) {
	id, err := ParseNM(identifier)
	if err != nil {
		return nil, NM{}, err
	}
	if id.Node != n.node {
		return nil, id, invalid("it is for node %s, this is %s", id.Node, n.node)
	}
	if k, ok := n.Accepted().Find(id.KeyID); ok {
		return k.Password(identifier), id, nil
	}
	if k, ok := n.started[id.Attempt]; ok && k.ID == id.KeyID {
		return k.Password(identifier), id, nil
	}
	return nil, id, invalid("its master key %d is not accepted on node %s (any more)", id.KeyID, n.node)
}

// Started remembers that an attempt started containers with a token: its key stays accepted for it.
func (n *NodeKeys) Started(id NM) {
	if k, ok := n.Accepted().Find(id.KeyID); ok {
		n.started[id.Attempt] = k
	}
}

// NodeKeyState is what a node keeps over its own restart, so that masters and containers need no new tokens.
type NodeKeyState struct {
	Current, Previous Key
	Started           []AttemptKey // in order of attempts
}

// AttemptKey is the key an attempt last started containers under.
type AttemptKey struct {
	Attempt creel.AttemptID
	Key     Key
}

// State is what RestoreNodeKeys takes.
func (n *NodeKeys) State() NodeKeyState {
	s := NodeKeyState{Current: n.current, Previous: n.previous}
	for _, a := range slices.SortedFunc(maps.Keys(n.started), creel.AttemptID.Compare) {
		s.Started = append(s.Started, AttemptKey{a, n.started[a]})
	}
	return s
}

// RestoreNodeKeys goes on from a state that was kept.
func RestoreNodeKeys(node creel.NodeID, s NodeKeyState) *NodeKeys {
	n := NewNodeKeys(node)
	n.current, n.previous = s.Current, s.Previous
	for _, a := range s.Started {
		n.started[a.Attempt] = a.Key
	}
	return n
}

// Forget drops what is remembered of an application that ended.
func (n *NodeKeys) Forget(app creel.ApplicationID) {
	maps.DeleteFunc(n.started, func(a creel.AttemptID, _ Key) bool { return a.Application == app })
}

// Start checks a container token at the moment its container is to be started: signature, node, expiry and life of
// the ResourceManager, in this order. The error is of kind ErrInvalidToken. That the container was not started before
// is for the caller to see.
func (n *NodeKeys) Start(t Token, rmIdentifier int64, now time.Time) (Container, error) {
	id, err := n.Verify(t)
	switch {
	case err != nil:
		return id, err
	case now.After(id.Expires):
		return id, invalid(
			"container %s had to be started before %s, now it is %s",
			id.ID,
			id.Expires.UTC().Format(time.RFC3339),
			now.UTC().Format(time.RFC3339),
		)
	case id.RMIdentifier != rmIdentifier:
		return id, &RestartedError{id.ID, id.RMIdentifier, rmIdentifier}
	}
	return id, nil
}

// Verify checks the signature and the node of a container token, whatever its age: what an update of a running
// container needs.
func (n *NodeKeys) Verify(t Token) (Container, error) {
	id, err := ParseContainer(t.Identifier)
	if err != nil {
		return id, err
	}
	k, ok := n.Accepted().Find(id.KeyID)
	switch {
	case !ok:
		return id, invalid("its master key %d is not accepted on node %s (any more)", id.KeyID, n.node)
	case !k.Verify(t.Identifier, t.Password):
		return id, invalid("its password does not belong to its identifier")
	case id.Node != n.node:
		return id, invalid("it is for node %s, this is %s", id.Node, n.node)
	}
	return id, nil
}

// RestartedError is a container token of an earlier life of the ResourceManager; YARN has an exception of its own for
// it (InvalidContainerException).
type RestartedError struct {
	Container   creel.ContainerID
	Got, Wanted int64 // start times of the ResourceManager, ms
}

func (e *RestartedError) Error() string {
	return invalid(
		"container %s was granted by the ResourceManager started at %d, this node is registered with the one started at %d",
		e.Container,
		e.Got,
		e.Wanted,
	).Error()
}

// Unwrap gives the kind.
func (e *RestartedError) Unwrap() error { return creel.ErrInvalidToken }
