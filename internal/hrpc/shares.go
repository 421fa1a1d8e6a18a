// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"net/netip"
	"sync"
)

// A user at an address may hold a quarter of what all connections together may
// hold of requests, and an address a half, whatever names it gives its
// users: so nobody can shut the others out by announcing large frames. Both may
// always hold two frames of the largest size, as far as there is room for all.
// Those of an address whose handshake is not over have little: an honest one holds
// some hundred bytes for a moment.
const (
	userShare    = 4
	addressShare = 2
	unknownBytes = 8 << 20
)

// shares splits a budget among those who are connected.
type shares struct {
	all      *budget
	maxFrame int64
	mu       sync.Mutex
	of       map[holder]*share
}

// holder is a user at an address, or with an empty user the address itself.
type holder struct {
	address netip.Addr
	user    string
}

// share is a holder's part, as long as it has connections.
type share struct {
	budget
	holder
	connections int
}

func newShares(all *budget, maxFrame int) *shares {
	return &shares{all: all, maxFrame: int64(maxFrame), of: map[holder]*share{}}
}

// join returns the share that a connection draws on, with no user while its
// handshake lasts. Whoever joins leaves.
func (s *shares) join(address netip.Addr, user string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := s.enter(holder{address: address}, s.all, addressShare)
	return s.enter(holder{address, user + "@"}, &whole.budget, userShare)
}

func (s *shares) enter(h holder, from *budget, part int64) *share {
	one := s.of[h]
	if one == nil {
		limit := min(max(s.all.limit/part, 2*s.maxFrame), s.all.limit)
		if h.user == "@" {
			limit = min(limit, unknownBytes)
		}
		one = &share{holder: h, budget: budget{limit: limit, from: from}}
		s.of[h] = one
	}
	one.connections++
	return one
}

func (s *shares) leave(one *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range []holder{one.holder, {address: one.address}} {
		k := s.of[h]
		if k.connections--; k.connections == 0 {
			delete(s.of, h)
		}
	}
}
