// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/turn"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// entriesOf are the entries of creel's log for a state, with one that Hadoop has no record for.
func entriesOf(t testing.TB, s *State) map[string]string {
	t.Helper()
	p, err := s.Portable()
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.Entries(0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"labels": `{}`}
	for key, value := range list {
		out[key] = string(value)
	}
	return out
}

func lookup(m map[string]string) zkstate.Entries {
	return func(key string) (string, bool) { v, found := m[key]; return v, found }
}

// apply carries out changes as zkstate does. It fails if a node is missing, or exists already.
func (f *fake) apply(t testing.TB, changes []zkstate.Change) {
	t.Helper()
	for _, c := range changes {
		n, err := zkstate.Node{Path: "/rm" + rootName + c.Path, Data: c.Data}, error(nil)
		_, _, missing := f.Get(t.Context(), n.Path)
		switch {
		case c.Kind == zkstate.Create:
			err = f.Create(t.Context(), []zkstate.Node{n})
		case missing != nil:
			err = missing
		case c.Kind == zkstate.Replace:
			err = f.Set(t.Context(), n)
		default:
			err = f.Delete(t.Context(), n.Path)
		}
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
	}
}

// beside is a fake with the records of entries, as a first opening writes them.
func beside(t testing.TB, entries map[string]string) *fake {
	t.Helper()
	f := newFake()
	head := []zkstate.Node{
		{Path: "/rm" + rootName},
		{Path: "/rm" + rootName + versionName, Data: version(major, minor)},
	}
	if err := f.Make(t.Context(), "/rm"); err != nil {
		t.Fatal(err)
	}
	if err := f.Create(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	changes, err := Beside{}.rewrite(t.Context(), f, "/rm", entries)
	if err != nil {
		t.Fatal(err)
	}
	f.apply(t, changes)
	return f
}

func (f *fake) read(t testing.TB) *State {
	t.Helper()
	s, err := Read(t.Context(), f, "/rm")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// later is whole, after some work: an application has ended, one is gone, one is new, and so with tokens and keys.
func later(t testing.TB) *State {
	t.Helper()
	s := whole(t)
	s.Epoch = 6
	s.Apps = []App{app(t, 1, pb.RMAppStateProto_RMAPP_FINISHED), app(t, 3, 0), app(t, 12345, 0)}
	s.AMRM.Next = token.Key{}
	s.Keys = []token.DelegationKey{{Key: token.Key{ID: 4, Secret: []byte("key4")}, Expires: began.Add(time.Hour)}}
	t2 := s.Tokens[0]
	t2.Sequence, t2.KeyID = 10, 4
	s.Tokens, s.Sequence = []token.DelegationRecord{t2}, 10
	return s
}

// Changes of entries become changes of records, and only the records that follow from them.
func TestRecordsFollowChangedEntries(t *testing.T) {
	before, after := entriesOf(t, whole(t)), entriesOf(t, later(t))
	f := beside(t, before)
	keys := slices.Sorted(maps.Keys(before))
	for key := range after {
		if _, found := before[key]; !found {
			keys = append(keys, key)
		}
	}
	changes, err := Beside{}.Changes(keys, lookup(before), lookup(after))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if strings.Contains(c.Path, appID(12345).String()) {
			t.Errorf("the record of an unchanged application is written: %+v", c)
		}
	}
	f.apply(t, changes)
	if want := beside(t, after); !maps.EqualFunc(f.nodes, want.nodes, slices.Equal) {
		t.Errorf("the nodes are %v, want %v", slices.Sorted(maps.Keys(f.nodes)), slices.Sorted(maps.Keys(want.nodes)))
	}
	if got := f.read(t).Epoch; got != 6 {
		t.Errorf("the epoch of the next start is %d, want 6", got)
	}
}

// Hadoop's ResourceManager has led: creel continues from its records. Entries and fields that only creel has remain,
// and the records of applications that Hadoop has not changed are not read into the log again.
func TestAdoptedRecordsReplaceTheLog(t *testing.T) {
	entries := entriesOf(t, whole(t))
	var extra state.Tx
	unchanged, err := turn.ReadApp(appID(12345), lookup(entries))
	if err != nil {
		t.Fatal(err)
	}
	unchanged.Submission.Groups = []string{"only creel has groups"}
	if err := turn.PutApp(&extra, unchanged); err != nil {
		t.Fatal(err)
	}
	perform(t, entries, extra.Bytes())
	f := beside(t, entries)
	if err := remove(t.Context(), f, "/rm"+rootName); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), f, "/rm", later(t)); err != nil {
		t.Fatal(err)
	}
	// Hadoop keeps creel's record of an application that it does not change.
	for _, n := range mustNodes(t, turn.AppKey(appID(12345)), entries) {
		f.nodes["/rm"+rootName+n.Path] = n.Data
	}
	ops, changes, err := Beside{}.adopt(t.Context(), f, "/rm", entries)
	if err != nil {
		t.Fatal(err)
	}
	f.apply(t, changes)
	before := maps.Clone(entries)
	perform(t, entries, ops)
	if before["labels"] != entries["labels"] {
		t.Error("an entry that only creel has is gone")
	}
	if key := turn.AppKey(appID(12345)); entries[key] != before[key] {
		t.Error("the entry of an application that Hadoop did not change has changed")
	}
	delete(entries, "labels")
	want := entriesOf(t, later(t))
	delete(want, "labels")
	if !slices.Equal(slices.Sorted(maps.Keys(entries)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("the entries are %v, want %v", slices.Sorted(maps.Keys(entries)), slices.Sorted(maps.Keys(want)))
	}
	for key, value := range want {
		if key != turn.AppKey(appID(12345)) && entries[key] != value {
			t.Errorf("%s is %s, want %s", key, entries[key], value)
		}
	}
}

// Records at paths with a split move to those without, each in one transaction.
func TestAdoptedRecordsHaveNoSplit(t *testing.T) {
	old := maxList
	defer func() { maxList = old }()
	maxList = 0
	f := written(t, whole(t))
	entries := map[string]string{}
	ops, changes, err := Beside{}.adopt(t.Context(), f, "/rm", entries)
	if err != nil {
		t.Fatal(err)
	}
	moves := 0
	for _, c := range changes {
		if !c.With {
			moves++
		}
	}
	if moves != 4 {
		t.Errorf("%d moves of three applications and one token: %+v", moves, changes)
	}
	f.apply(t, changes)
	maxList = old
	if !same(t, f.read(t), whole(t)) {
		t.Error("the state has changed")
	}
	perform(t, entries, ops)
	id := turn.AppKey(appID(1))
	after := maps.Clone(entries)
	delete(after, id)
	gone, err := Beside{}.Changes([]string{id}, lookup(entries), lookup(after))
	if err != nil {
		t.Fatal(err)
	}
	f.apply(t, gone)
	if n := len(f.read(t).Apps); n != 2 {
		t.Errorf("%d applications are left, want 2", n)
	}
}

// Hadoop's epoch never falls behind creel's starts.
func TestAdoptedEpochIsTheGreater(t *testing.T) {
	s := whole(t)
	entries := entriesOf(t, s)
	for _, hadoops := range []int64{3, 8} {
		s.Epoch = hadoops
		ops, _, err := Beside{}.adopt(t.Context(), written(t, s), "/rm", entries)
		if err != nil {
			t.Fatal(err)
		}
		after := maps.Clone(entries)
		perform(t, after, ops)
		p, _, err := server.ReadPart("meta", lookup(after), 0)
		if want := max(hadoops, 4); err != nil || p.Epoch != want {
			t.Errorf("after Hadoop's epoch %d the next is %d, want %d: %v", hadoops, p.Epoch, want, err)
		}
	}
}

func perform(t testing.TB, entries map[string]string, ops []byte) {
	t.Helper()
	err := state.EachOp(ops, func(o state.Op) {
		if delete(entries, string(o.Key)); !o.Delete {
			entries[string(o.Key)] = string(o.Value)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func mustNodes(t testing.TB, subject string, entries map[string]string) []zkstate.Node {
	t.Helper()
	list, err := Beside{}.nodes(subject, lookup(entries))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list
}

// An application whose record ZooKeeper does not accept has none, and Hadoop's lead does not end it.
func TestTooLargeApplicationHasNoRecord(t *testing.T) {
	s := whole(t)
	entries := entriesOf(t, s)
	f := beside(t, entries)
	id := creel.ApplicationID{ClusterTimestamp: began.UnixMilli(), ID: 99}
	large := app(t, 99, 0)
	large.Data.ApplicationSubmissionContext.AmContainerSpec.Command = []string{strings.Repeat("x", maxRecord)}
	key := turn.AppKey(id)
	after := entriesOf(t, &State{Apps: []App{large}, AMRM: s.AMRM})
	entries[key] = after[key]
	changes, err := Beside{}.Changes([]string{key}, lookup(map[string]string{}), lookup(entries))
	if err != nil || len(changes) > 0 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	ops, _, err := Beside{}.adopt(t.Context(), f, "/rm", entries)
	if err != nil {
		t.Fatal(err)
	}
	if perform(t, entries, ops); entries[key] == "" {
		t.Error("the application is gone")
	}
}
