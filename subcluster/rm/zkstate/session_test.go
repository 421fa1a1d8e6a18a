// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestSessionReadsAndWritesNodes(t *testing.T) {
	fake := newFake()
	s, err := connectBy(t.Context(), Servers{}, fake.connect)
	must(t, err)
	defer s.Close()
	must(t, s.Make(t.Context(), "/a/b"))
	must(t, s.Make(t.Context(), "/a/b")) // it exists
	_, before, err := s.Get(t.Context(), "/a/b")
	must(t, err)
	must(t, s.Create(t.Context(), []Node{{"/a/b/c", []byte("1")}, {"/a/b/c/d", nil}, {"/a/b/e", nil}}))
	must(t, s.Set(t.Context(), Node{"/a/b/c", []byte("2")}))
	data, _, err := s.Get(t.Context(), "/a/b/c")
	if err != nil || string(data) != "2" {
		t.Errorf("the node has %q (%v)", data, err)
	}
	names, err := s.Children(t.Context(), "/a/b")
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"c", "e"}) {
		t.Errorf("the children are %q (%v)", names, err)
	}
	if _, after, err := s.Get(t.Context(), "/a/b"); err != nil || after <= before {
		t.Errorf("the children changed in %d, before in %d (%v)", after, before, err)
	}
	must(t, s.Delete(t.Context(), "/a/b/e"))
	if _, _, err := s.Get(t.Context(), "/a/b/e"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deleted node: %v", err)
	}
	// All nodes of a call are made, or none.
	if err := s.Create(t.Context(), []Node{{"/a/b/f", nil}, {"/a/b/c", nil}}); !errors.Is(err, zk.ErrNodeExists) {
		t.Errorf("a node that exists: %v", err)
	}
	if _, err := s.Children(t.Context(), "/a/b/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of a transaction was carried out: %v", err)
	}
}

// A read whose connection breaks is repeated.
func TestSessionRepeatsReads(t *testing.T) {
	fake := newFake()
	s, err := connectBy(t.Context(), Servers{}, fake.connect)
	must(t, err)
	must(t, s.Make(t.Context(), "/a"))
	failures := 2
	fake.fault = func(string) (bool, error) {
		if failures--; failures >= 0 {
			return false, zk.ErrConnectionClosed
		}
		return false, nil
	}
	if names, err := s.Children(t.Context(), "/"); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("the children are %q (%v)", names, err)
	}
}
