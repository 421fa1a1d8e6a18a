// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// Replays remembers the authenticators of the last minutes, so that a recorded one is not accepted again. It is safe
// for concurrent use.
type Replays struct {
	limit int

	mu    sync.Mutex
	until map[replay]time.Time
	order []replay // oldest first, from first
	first int
}

type replay [sha256.Size]byte

// defaultReplays is the number of logins in ten minutes at 400 a second. They need about 25 MB.
const defaultReplays = 240_000

// NewReplays makes an empty cache for at most limit authenticators (0: 240,000). A full cache accepts no further
// authenticator until the oldest one expires.
func NewReplays(limit int) *Replays {
	if limit == 0 {
		limit = defaultReplays
	}
	return &Replays{limit: limit, until: map[replay]time.Time{}}
}

var (
	errReplay = errors.New("the authenticator is a replay: it was used before")
	// ErrBusy means that the cache is full.
	ErrBusy = errors.New("too many logins in a few minutes: try again later")
)

// add remembers an authenticator for a time.
func (r *Replays) add(id replay, now time.Time, keep time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.first < len(r.order) && now.After(r.until[r.order[r.first]]) {
		delete(r.until, r.order[r.first])
		r.first++
	}
	if r.first > len(r.order)/2 {
		r.order = append(r.order[:0], r.order[r.first:]...)
		r.first = 0
	}
	if _, ok := r.until[id]; ok {
		return errReplay
	}
	if len(r.until) >= r.limit {
		return ErrBusy
	}
	r.until[id] = now.Add(keep)
	r.order = append(r.order, id)
	return nil
}
