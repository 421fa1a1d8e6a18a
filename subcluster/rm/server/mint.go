// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// minter has expanded keys; one goroutine at a time uses it.
type minter struct{ nm, container *token.Mac }

func (m *minter) use(k *keySet) {
	if m.nm == nil || m.nm.Key().ID != k.nm.ID {
		m.nm = token.NewMac(k.nm)
	}
	if m.container == nil || m.container.Key().ID != k.container.ID {
		m.container = token.NewMac(k.container)
	}
}

// Mint returns a Mint for the tokens of one application; the caller calls done when it has finished. Only one
// goroutine may use a Mint.
func (s *Server) Mint(app creel.ApplicationID) (t *codec.Mint, done func()) {
	return s.secrets.mint(app)
}

func (s *secrets) mint(app creel.ApplicationID) (t *codec.Mint, done func()) {
	m := s.minters.Get().(*minter)
	m.use(s.keys.Load())
	s.mu.RLock()
	about := s.apps[app]
	if about == nil {
		about = &s.noApp
	}
	s.mu.RUnlock()
	return &codec.Mint{
		NMKey:        m.nm,
		ContainerKey: m.container,
		User:         about.user,
		Logs:         about.logs,
		Expiry:       s.expiry,
		RM:           s.rm,
		Service:      s.serviceOf,
	}, func() { s.minters.Put(m) }
}

// service returns a node's ip:port for tokens, or the node's name until the address is known.
func (s *secrets) service(node creel.NodeID) string {
	s.mu.RLock()
	service := s.services[node]
	s.mu.RUnlock()
	if service == "" {
		return node.String()
	}
	return service
}
