// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"net/netip"
	"sync"
)

// A user at an address may occupy a quarter of the request memory of all connections, and an address a half, whatever
// user names it sends. So no client can shut the others out by announcing large frames. Both may always occupy two
// frames of the largest size, as far as memory for all connections is left. Connections of an address before the end
// of their handshake have little: an honest one uses some hundred bytes for a moment.
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

// share is a holder's part, as long as it has connections.
type share struct {
	budget
	holder
	connections int
}

func newShares(all *budget, maxFrame int) *shares {
	return &shares{all: all, maxFrame: int64(maxFrame), of: map[holder]*share{}}
}

// join returns the share that a connection draws on, without a user during its handshake. Each join needs a leave.
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
