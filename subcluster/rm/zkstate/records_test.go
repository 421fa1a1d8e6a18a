// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

// echo are records that repeat each entry as a node, except own ones.
type echo struct{ adopted, rewritten int }

const ownEntries = "own"

func (*echo) Changes(keys []string, before, after Entries) (out []Change, err error) {
	for _, key := range keys {
		if strings.HasPrefix(key, ownEntries) {
			continue
		}
		_, was := before(key)
		value, is := after(key)
		switch {
		case was && is:
			out = append(out, Change{Kind: Replace, Path: "/Echo/" + key, Data: []byte(value)})
		case is:
			out = append(out, Change{Kind: Create, Path: "/Echo/" + key, Data: []byte(value)})
		case was:
			out = append(out, Change{Kind: Remove, Path: "/Echo/" + key})
		}
	}
	return out, nil
}

// read returns the nodes.
func (*echo) read(ctx context.Context, s *Session, parent string) (map[string]string, []Change, error) {
	root := pathsOf(parent).root + "/Echo"
	names, err := s.Children(ctx, root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []Change{{Kind: Create, Path: "/Echo"}}, nil
	}
	nodes := map[string]string{}
	for _, name := range names {
		data, _, err := s.Get(ctx, root+"/"+name)
		if err != nil {
			return nil, nil, err
		}
		nodes[name] = string(data)
	}
	return nodes, nil, err
}

func (e *echo) Rewrite(ctx context.Context, s *Session, parent string, entries map[string]string) ([]Change, error) {
	e.rewritten++
	nodes, out, err := e.read(ctx, s, parent)
	if err != nil {
		return nil, err
	}
	get := func(from map[string]string) Entries {
		return func(key string) (string, bool) { v, found := from[key]; return v, found }
	}
	all := maps.Clone(entries)
	maps.Copy(all, nodes)
	changes, err := e.Changes(slices.Sorted(maps.Keys(all)), get(nodes), get(entries))
	return append(out, changes...), err
}

func (e *echo) Adopt(
	ctx context.Context, s *Session, parent string, entries map[string]string,
) ([]byte, []Change, error) {
	e.adopted++
	nodes, out, err := e.read(ctx, s, parent)
	var tx state.Tx
	for key := range entries {
		if _, found := nodes[key]; !found && !strings.HasPrefix(key, ownEntries) {
			tx.Delete(key)
		}
	}
	for key, value := range nodes {
		tx.Put(key, []byte(value))
	}
	return tx.Bytes(), out, err
}

// echoes are the nodes on a server.
func (s *fakeServer) echoes() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for p, n := range s.nodes {
		if path.Dir(p) == "/rmstore/ZKRMStateRoot/Echo" {
			out[path.Base(p)] = string(n.data)
		}
	}
	return out
}

// besides is deployment with records.
func besides(s *fakeServer, e *echo) statetest.Deployment {
	open := func() Config {
		c := config(s, "creel")
		c.limits, c.Records = short, e
		return c
	}
	return statetest.Deployment{
		Open:   func() (state.Log, error) { return Open(context.Background(), open()) },
		Follow: func() (state.Follower, error) { return NewFollower(open()) },
	}
}

// Whichever calls are lost, and wherever a holder ends within a group, the records are those of the acknowledged
// entries when the next holder has opened the state.
func TestRecordsFollowTheLog(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		s, e := newFake(), &echo{}
		d := besides(s, e)
		want := map[string]string{}
		for range 3 {
			h := d.Start(t)
			if got := s.echoes(); !maps.Equal(got, want) {
				t.Fatalf("after an opening the records are %v, want %v", slices.Sorted(maps.Keys(got)),
					slices.Sorted(maps.Keys(want)))
			}
			for range rapid.IntRange(1, 4).Draw(t, "transactions") {
				left := rapid.IntRange(0, 2).Draw(t, "failures of a write")
				s.failing(func() (bool, bool) {
					left--
					return left >= 0, left%2 == 0
				})
				key := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "key"))
				value := strings.Repeat("v", rapid.SampledFrom([]int{1, 2000, 9000}).Draw(t, "size"))
				must(t, h.Save(statetest.Put(key, value)))
				want[key] = value
				if got := s.echoes(); !maps.Equal(got, want) {
					t.Fatal("the records of an acknowledged transaction are missing")
				}
			}
			s.failing(nil)
			must(t, h.End())
			if rapid.Bool().Draw(t, "ends within a group") {
				l, err := Open(context.Background(), config2(s, e))
				must(t, err)
				half(t, s, l)
			}
		}
		if e.adopted > 0 {
			t.Fatal("records were taken over, but only creel has led")
		}
	})
}

func config2(s *fakeServer, e *echo) Config {
	c := config(s, "half")
	c.limits, c.Records = short, e
	return c
}

// half ends a holder after the first transaction of ZooKeeper of a group that has several.
func half(t interface{ Fatal(...any) }, s *fakeServer, l *Log) {
	var ops []byte
	for i := range 3 {
		ops = state.AppendPut(ops, fmt.Sprint("half ", i), []byte(strings.Repeat("h", 2000)))
	}
	writes := 0
	s.mu.Lock()
	s.fault = func(call string) (bool, error) {
		if call == "multi" {
			writes++
		}
		if writes > 1 {
			return false, context.Canceled
		}
		return false, nil
	}
	s.mu.Unlock()
	if err := l.write(context.Background(), ops); err == nil {
		t.Fatal("a group was written whole")
	}
	s.failing(nil)
	must(t, l.Close())
}

// hadoopLeads fences as Hadoop's ResourceManager does, and returns its client.
func hadoopLeads(t *testing.T, s *fakeServer) *fakeClient {
	t.Helper()
	h := connected(t, s)
	must(t, h.addAuth(t.Context(), Auth{Scheme: "digest", Secret: "rm:1"}))
	must(t, h.setACL(t.Context(), "/rmstore/ZKRMStateRoot", rootACL(zk.WorldACL(zk.PermAll), "rm", "1")))
	return h
}

// Hadoop's ResourceManager leads between two of creel's: it fences the first, and the second continues from its records
// and fences it. Entries that only creel has remain.
func TestRecordsOfHadoopsLeadAreTakenOver(t *testing.T) {
	s, e := newFake(), &echo{}
	d := besides(s, e)
	first := d.Start(t)
	must(t, first.Save(statetest.Put("a", "creel's")))
	must(t, first.Save(statetest.Put("b", "creel's")))
	must(t, first.Save(statetest.Put(ownEntries, "creel's")))

	h := hadoopLeads(t, s)
	p, acl := pathsOf("/rmstore"), zk.WorldACL(zk.PermAll)
	must(t, h.multi(t.Context(), p.fenced(acl, set(p.root+"/Echo/a", []byte("hadoop's"), -1), remove(p.root+"/Echo/b"),
		create(p.root+"/Echo/c", []byte("hadoop's"), acl))...))
	if err := first.Save(statetest.Put("a", "late")); !errors.Is(err, state.ErrFenced) {
		t.Errorf("creel's write after Hadoop's lead: %v", err)
	}
	_ = first.End() // it reports the fence

	second := d.Start(t)
	if err := h.multi(t.Context(), p.fenced(acl, set(p.root+"/Echo/a", nil, -1))...); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("Hadoop's write after creel's opening: %v", err)
	}
	must(t, second.End())
	want := map[string]string{"a": "hadoop's", "c": "hadoop's", ownEntries: "creel's"}
	if got := d.Content(t); !maps.Equal(got, want) {
		t.Errorf("the entries are %v, want %v", got, want)
	}
	if e.adopted != 1 {
		t.Errorf("the records were taken over %d times", e.adopted)
	}
}

// Without records, creel refuses a state in which Hadoop's ResourceManager has led last. It continues one in which
// creel led last, and Hadoop's cannot start on it any more. Records that are switched on again are those of the entries.
func TestRecordsAreSwitchedOffAndOn(t *testing.T) {
	s, e := newFake(), &echo{}
	d, alone := besides(s, e), deployment(s, short)
	h := d.Start(t)
	must(t, h.Save(statetest.Put("a", "1")))
	must(t, h.End())
	version := func() string { return string(s.nodes["/rmstore/ZKRMStateRoot/RMVersionNode"].data) }
	if !isHadoops([]byte(version())) {
		t.Error("Hadoop's ResourceManager could not start on the records")
	}
	h = alone.Start(t)
	must(t, h.Save(statetest.Put("a", "2")))
	must(t, h.End())
	if isHadoops([]byte(version())) {
		t.Error("Hadoop's ResourceManager could start on records that are no longer kept")
	}
	must(t, d.Start(t).End())
	if got := s.echoes(); !maps.Equal(got, map[string]string{"a": "2"}) {
		t.Errorf("the records are %v", got)
	}
	hadoopLeads(t, s)
	if _, err := Open(t.Context(), config(s, "alone")); !errors.Is(err, errUnusable) {
		t.Errorf("Hadoop's state was opened with %v", err)
	}
}
