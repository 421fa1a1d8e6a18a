// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
)

// minter holds expanded keys; each belongs to one goroutine at a time.
type minter struct{ nm, container *token.Mac }

func (m *minter) use(k *keySet) {
	if m.nm == nil || m.nm.Key().ID != k.nm.ID {
		m.nm = token.NewMac(k.nm)
	}
	if m.container == nil || m.container.Key().ID != k.container.ID {
		m.container = token.NewMac(k.container)
	}
}

// Mint begins to mint tokens for one application; the caller calls done when it
// has finished. A Mint belongs to one goroutine.
func (s *Server) Mint(app creel.ApplicationID) (t *Mint, done func()) { return s.secrets.mint(app) }

func (s *secrets) mint(app creel.ApplicationID) (t *Mint, done func()) {
	m := s.minters.Get().(*minter)
	m.use(s.keys.Load())
	s.mu.RLock()
	about := s.apps[app]
	if about == nil {
		about = &s.noApp
	}
	s.mu.RUnlock()
	return &Mint{s: s, m: m, about: about}, func() { s.minters.Put(m) }
}

// Mint mints tokens of one application's containers and nodes.
type Mint struct {
	s     *secrets
	m     *minter
	about *appSecrets
}

func (t *Mint) service(node creel.NodeID) string {
	t.s.mu.RLock()
	service := t.s.services[node]
	t.s.mu.RUnlock()
	if service == "" {
		return node.String()
	}
	return service
}

// NM returns what an AM shows to a node.
func (t *Mint) NM(a creel.AttemptID, node creel.NodeID) token.Token {
	return t.m.nm.NM(token.NM{Attempt: a, Node: node, User: t.about.user}, t.service(node))
}

// Container returns what an AM shows to a node to start one container.
func (t *Mint) Container(g *rm.Grant) token.Token {
	created := time.UnixMilli(g.Created)
	return t.m.container.Container(token.Container{
		ID:                  g.ID,
		Node:                g.Node,
		User:                t.about.user,
		Resource:            g.Resource,
		Expires:             created.Add(t.s.expiry),
		RMIdentifier:        t.s.rm,
		Priority:            g.Priority,
		Created:             created,
		Logs:                t.about.logs,
		AM:                  g.AM,
		Execution:           g.ExecutionType,
		Version:             g.Version,
		AllocationRequestID: g.AllocationRequestID,
		Tags:                g.Tags,
	}, t.service(g.Node))
}
