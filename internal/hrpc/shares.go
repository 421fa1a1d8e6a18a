// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"net/netip"
	"sync"
)

// A user at an address may occupy a quarter of the request memory of all connections. An address may occupy a half,
// whatever user names it sends. So no client can shut the others out by announcing large frames. Both may always occupy
// two frames of the largest size, if the memory for all connections suffices. Before the end of their handshake,
// connections of an address get little: an honest one uses some hundred bytes for a moment.
const (
	userShare    = 4
	addressShare = 2
	unknownBytes = 8 << 20
)

// shares splits a budget among the connected users and addresses.
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

// share is a holder's part while it has connections.
type share struct {
	budget
	holder
	connections int
}

func newShares(all *budget, maxFrame int) *shares {
	return &shares{all: all, maxFrame: int64(maxFrame), of: map[holder]*share{}}
}

// join returns the share for a connection of a user; during the handshake the user is empty. Each join needs a leave.
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
