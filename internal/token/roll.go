// SPDX-License-Identifier: Apache-2.0

package token

import (
	"math/rand/v2"
	"time"
)

// Rolling is the interval between replacements of a key, and the delay before the replacement is used. During the delay
// all verifiers receive it. Hadoop: 24 h and 15 min (1.5 times the expiry of AMs or of nodes).
type Rolling struct {
	Every time.Duration // yarn.resourcemanager.*-tokens.master-key-rolling-interval-secs, 24 h
	Delay time.Duration // 15 min; must be below Every
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

// KeyState is the complete state of Keys: a ResourceManager stores it for a restart.
type KeyState struct {
	Current Key
	Next    Key       // zero: none pending
	Change  time.Time // time at which Next becomes Current; without Next, time at which it is made
}

// Begun returns the state with a time of change. If it has none, its interval begins now.
func (s KeyState) Begun(rolling Rolling, now time.Time) KeyState {
	rolling = rolling.withDefaults()
	switch {
	case !s.Change.IsZero():
	case s.Next.IsZero():
		s.Change = now.Add(rolling.Every)
	default:
		s.Change = now.Add(rolling.Delay)
	}
	return s
}

// Keys is the pair of master keys of one kind of token on the ResourceManager: a state machine with one owner. The id
// of the first key is random; each later id is one higher.
//
// Creators of AMRM tokens use Newest and accept both keys. So an AM receives a token of the next key before the current
// one is removed. Creators of NM and container tokens use Current, and send Next to the nodes meanwhile.
type Keys struct {
	rolling Rolling
	state   KeyState
	current *Mac
	next    *Mac // nil without a pending key
}

// NewKeys makes the first key.
func NewKeys(rolling Rolling, now time.Time, rnd *rand.Rand) *Keys {
	rolling = rolling.withDefaults()
	return RestoreKeys(
		rolling,
		KeyState{Current: Key{ID: int32(rnd.Uint32()), Secret: NewSecret(rnd)}, Change: now.Add(rolling.Every)},
	)
}

// RestoreKeys continues from a stored state.
func RestoreKeys(rolling Rolling, s KeyState) *Keys {
	k := &Keys{rolling: rolling.withDefaults(), state: s, current: NewMac(s.Current)}
	if !s.Next.IsZero() {
		k.next = NewMac(s.Next)
	}
	return k
}

// State is the input of RestoreKeys.
func (k *Keys) State() KeyState { return k.state }

// Deadline is the time of the next change by Step.
func (k *Keys) Deadline() time.Time { return k.state.Change }

// Step advances time: it makes the next key or puts it into use, if due, and reports whether anything changed. A late
// step makes one change, not several: both keys are used for their full time.
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

// Roll makes the next key now; it comes into use after the delay. If one is already pending, Roll does nothing.
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

// Next signs with the pending key; nil without one.
func (k *Keys) Next() *Mac { return k.next }

// Newest signs with the pending key, or with the current one.
func (k *Keys) Newest() *Mac {
	if k.next != nil {
		return k.next
	}
	return k.current
}

// ForNode returns the key to send to a node whose last key is known: the pending one, or the current one. It is zero if
// the node already has that key.
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

// ReplaceAMRM returns the token that a living AM needs in its next allocate answer, because the key of its present
// token will be removed. It returns false if the AM needs none.
func (k *Keys) ReplaceAMRM(held AMRM) (Token, bool) {
	if k.next == nil || held.KeyID == k.state.Next.ID {
		return Token{}, false
	}
	return k.next.AMRM(held.Attempt), true
}
