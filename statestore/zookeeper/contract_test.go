// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/nodes"
	"github.com/creelrm/creel/statestore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t interface {
	Helper()
	Fatal(...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *fakeServer) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func open(t interface {
	Helper()
	Fatal(...any)
}, s *fakeServer, confirm ...bool,
) *nodes.Store {
	t.Helper()
	store, err := Open(Config{
		Parent: "/federationstore", Validate: storetest.Validate, connect: s.connect, local: s.clock,
		Confirm: len(confirm) > 0,
	})
	must(t, err)
	return store
}

// write changes a node as another program does.
func (s *fakeServer) write(t *testing.T, path string, data []byte) {
	t.Helper()
	_, err := s.Multi(t.Context(), &zk.SetDataRequest{Path: path, Data: data, Version: -1})
	if err == zk.ErrNoNode {
		_, err = s.Multi(t.Context(), &zk.CreateRequest{Path: path, Data: data})
	}
	must(t, err)
}

// copied is a copy of all nodes; each node gets another transaction, as when a backup is restored.
func (s *fakeServer) copied() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := map[string]*fakeNode{}
	for p, n := range s.nodes {
		clone := *n
		clone.children = map[string]bool{}
		for c := range n.children {
			clone.children[c] = true
		}
		nodes[p] = &clone
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.zxid++
		for _, n := range nodes {
			n.stat.Czxid, n.stat.Mzxid, n.stat.Version = s.zxid, s.zxid, 0
		}
		s.nodes = nodes
	}
}

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Deployment {
		server := newFake()
		store := open(t, server)
		return storetest.Deployment{
			Store:   store,
			Again:   func(t *testing.T) statestore.Store { return open(t, server) },
			Advance: server.advance,
			Back: func(t *testing.T) func(...statestore.ApplicationHome) {
				restore := server.copied()
				return func(homes ...statestore.ApplicationHome) {
					restore()
					if lost, err := store.Lost(t.Context()); err != nil || !lost {
						t.Fatalf("a restored copy is lost: %v (%v)", lost, err)
					}
					_, err := store.Reopen(t.Context(), func(context.Context) ([]statestore.ApplicationHome, error) {
						return homes, nil
					})
					must(t, err)
				}
			},
			SetSchema: func(t *testing.T, word string) {
				data, _, err := server.Get(t.Context(), "/federationstore/creel/meta")
				must(t, err)
				fields := map[string]any{}
				must(t, json.Unmarshal(data, &fields))
				fields["schema"] = word
				data, err = json.Marshal(fields)
				must(t, err)
				server.write(t, "/federationstore/creel/meta", data)
			},
		}
	})
}

// Random conversations with the store and with the memory state give the same answers.
func TestStoreAnswersAsTheMemoryStateDoes(t *testing.T) {
	storetest.Model(t, func() statestore.Store { return open(t, newFake()) })
}
