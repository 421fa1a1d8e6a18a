// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

func document(class, name string, expect int64, data string) statestore.DocumentWrite {
	return statestore.DocumentWrite{
		Class: class, Name: name, Expect: expect, Data: []byte(data), Author: "alice", Comment: "why", Keep: 3,
	}
}

func documents(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote, read := must[statestore.Document](t), must[statestore.DocumentSet](t)
	history := must[[]statestore.Document](t)
	same(t, "documents of an empty class", len(read(s.Documents(ctx, "queues")).Documents), 0)
	a1 := wrote(s.PutDocument(ctx, document("queues", "a", 0, "one")))
	if string(a1.Data) != "one" || a1.Version <= 0 || a1.Author != "alice" || a1.Comment != "why" || a1.Time.IsZero() {
		t.Fatalf("document is %+v", a1)
	}
	same(t, "version of a repeat", wrote(s.PutDocument(ctx, document("queues", "a", 0, "one"))).Version, a1.Version)
	is, err := s.PutDocument(ctx, document("queues", "a", 0, "other"))
	refused(t, err, creel.ErrConflict)
	same(t, "version told with the conflict", is.Version, a1.Version)
	b1 := wrote(s.PutDocument(ctx, document("queues", "b", 0, "b")))
	a2 := wrote(s.PutDocument(ctx, document("queues", "a", a1.Version, "two")))
	if !(a1.Version < b1.Version && b1.Version < a2.Version) {
		t.Fatalf("versions %d, %d, %d of a class do not rise", a1.Version, b1.Version, a2.Version)
	}
	same(
		t,
		"version of a late repeat",
		wrote(s.PutDocument(ctx, document("queues", "a", a1.Version, "two"))).Version,
		a2.Version,
	)
	_, err = s.PutDocument(ctx, document("queues", "a", 0, "one")) // no later write is allowed
	refused(t, err, creel.ErrConflict)
	other := wrote(s.PutDocument(ctx, document("plan", "a", 0, "plan")))
	same(t, "data of another class", string(other.Data), "plan")

	set := read(s.Documents(ctx, "queues"))
	same(t, "documents of the class", len(set.Documents), 2)
	found, _ := set.Find("a")
	same(t, "data found", string(found.Data), "two")
	if set.Now.IsZero() || set.Source == "" {
		t.Fatalf("a read has time %v and source %q", set.Now, set.Source)
	}
	again := read(s.DocumentsSince(ctx, "queues", set))
	same(t, "version of the class", again.Version, a2.Version)
	same(t, "a class in which nothing was written is not read again", &again.Documents[0], &set.Documents[0])
	if again.Now.Before(set.Now) || again.Source != set.Source {
		t.Fatalf("read again it is of %v and %q", again.Now, again.Source)
	}
	elsewhere := set
	elsewhere.Source = "another store"
	if is := read(s.DocumentsSince(ctx, "queues", elsewhere)); &is.Documents[0] == &set.Documents[0] {
		t.Fatal("what was read in another store is taken for what is in this one")
	}
	last := a2
	for i := range 3 {
		last = wrote(s.PutDocument(ctx, document("queues", "a", last.Version, fmt.Sprint("v", i))))
	}
	h := history(s.DocumentHistory(ctx, "queues", "a", 0, 10))
	same(t, "versions kept", len(h), 3)
	same(t, "newest kept", string(h[0].Data), "v2")
	same(t, "version that it replaced", h[0].Replaced, h[1].Version)
	h = history(s.DocumentHistory(ctx, "queues", "a", last.Version, 1))
	same(t, "history below a version, cut", string(h[0].Data)+fmt.Sprint(len(h)), "v11")

	gone := wrote(s.PutDocument(ctx, document("queues", "a", last.Version, "")))
	same(
		t,
		"version of a repeated removal",
		wrote(s.PutDocument(ctx, document("queues", "a", last.Version, ""))).Version,
		gone.Version,
	)
	since := read(s.DocumentsSince(ctx, "queues", set))
	same(t, "documents since, after a removal", len(since.Documents), 1)
	same(t, "documents after a removal", len(read(s.Documents(ctx, "queues")).Documents), 1)
	_, err = s.PutDocument(ctx, document("queues", "a", last.Version, "late"))
	refused(t, err, creel.ErrConflict)
	back := wrote(s.PutDocument(ctx, document("queues", "a", 0, "back")))
	if back.Version <= gone.Version {
		t.Fatalf("version %d after a removal is not above %d", back.Version, gone.Version)
	}
	for _, w := range []statestore.DocumentWrite{
		document("", "a", 0, "x"),
		document("queues", "", 0, "x"),
		document("queues", "a b", 0, "x"),
		document("queues", "a", -1, "x"),
		document("queues", "a", 0, string(make([]byte, statestore.MaxDocument+1))),
		{Class: "c", Name: "n", Keep: -1},
	} {
		_, err := s.PutDocument(ctx, w)
		refused(t, err, creel.ErrInvalidRequest)
	}
	heard := listen(t, s)
	quiet := document("escrow", "a", 0, "x")
	quiet.Quiet = true
	wrote(s.PutDocument(ctx, quiet))
	p := wrote(s.PutDocument(ctx, document("plan", "b", 0, "x")))
	// The announcement of an earlier write may be late; a quiet write has none.
	c := await(t, heard, func(c statestore.Change) bool {
		return c.Kind == statestore.ChangeDocuments && c.Class != "queues" && c.Version != other.Version
	})
	same(t, "class heard", c.Class, "plan")
	same(t, "version heard", c.Version, p.Version)
}

// revision: recomputed data replaces a document's data, and its history keeps the author's versions.
func revision(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote, history := must[statestore.Document](t), must[[]statestore.Document](t)
	w := document("queues", "revised", 0, "40%")
	w.Text = []byte("40% # of all")
	first := wrote(s.PutDocument(ctx, w))
	w.Expect, w.Revises, w.Data = first.Version, first.Version, []byte("40% = 4")
	second := wrote(s.PutDocument(ctx, w))
	same(t, "version of a repeated revision", wrote(s.PutDocument(ctx, w)).Version, second.Version)
	w.Expect, w.Data = second.Version, []byte("40% = 8")
	third := wrote(s.PutDocument(ctx, w))
	set := must[statestore.DocumentSet](t)(s.Documents(ctx, "queues"))
	is, _ := set.Find("revised")
	if string(is.Data) != "40% = 8" || string(is.Text) != "40% # of all" || is.Author != "alice" ||
		is.Version != third.Version || is.Authored() != first.Version {
		t.Fatalf("revised document is %+v", is)
	}
	h := history(s.DocumentHistory(ctx, "queues", "revised", 0, 10))
	if len(h) != 1 || h[0].Version != first.Version || string(h[0].Text) != "40% # of all" ||
		string(h[0].Data) != "40%" {
		t.Fatalf("history after revisions is %+v", h)
	}
	w.Revises, w.Expect, w.Data = 0, third.Version, []byte("50%")
	last := wrote(s.PutDocument(ctx, w))
	h = history(s.DocumentHistory(ctx, "queues", "revised", 0, 10))
	same(t, "versions after a write", len(h), 2)
	same(t, "version by an author", h[0].Authored(), last.Version)
	for _, bad := range []statestore.DocumentWrite{
		{Class: "queues", Name: "revised", Expect: last.Version, Revises: last.Version + 1, Data: []byte("x")},
		{Class: "queues", Name: "revised", Expect: last.Version, Revises: -1, Data: []byte("x")},
		{Class: "queues", Name: "revised", Expect: last.Version, Revises: last.Version},
	} {
		_, err := s.PutDocument(ctx, bad)
		refused(t, err, creel.ErrInvalidRequest)
	}
}

// documentRemoved: the removal of a document without history leaves no trace, except that its class's versions do not
// go back.
func documentRemoved(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote, read := must[statestore.Document](t), must[statestore.DocumentSet](t)
	w := document("moves", "a", 0, "one")
	w.Keep = 0
	one := wrote(s.PutDocument(ctx, w))
	before := read(s.Documents(ctx, "moves"))
	w.Expect, w.Data = one.Version, nil
	gone := wrote(s.PutDocument(ctx, w))
	if gone.Version <= one.Version || len(gone.Data) > 0 {
		t.Fatalf("the removal of version %d is %+v", one.Version, gone)
	}
	since := read(s.DocumentsSince(ctx, "moves", before))
	same(t, "documents for who read the class before", len(since.Documents), 0)
	same(t, "version of the class", since.Version, gone.Version)
	for _, w.Expect = range []int64{one.Version, 0, gone.Version} {
		same(t, "version of what is not there", wrote(s.PutDocument(ctx, w)).Version, 0)
	}
	same(t, "version of the class", read(s.Documents(ctx, "moves")).Version, gone.Version)
	h := must[[]statestore.Document](t)(s.DocumentHistory(ctx, "moves", "a", 0, 10))
	same(t, "versions kept", len(h), 0)

	late := w
	late.Expect, late.Data = one.Version, []byte("late")
	_, err := s.PutDocument(ctx, late)
	refused(t, err, creel.ErrConflict)
	late.Expect, late.Data = 0, []byte("one")
	again := wrote(s.PutDocument(ctx, late))
	if again.Version <= gone.Version {
		t.Fatalf("version %d after a removal is not above %d", again.Version, gone.Version)
	}
	w.Expect = one.Version
	_, err = s.PutDocument(ctx, w) // the removal of the earlier document
	refused(t, err, creel.ErrConflict)
}

// documentBound: a write may limit the number of documents.
func documentBound(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote := must[statestore.Document](t)
	bounded := func(name string, expect int64, data string) statestore.DocumentWrite {
		w := document("intents", name, expect, data)
		w.Most = 2
		return w
	}
	a := wrote(s.PutDocument(ctx, bounded("a", 0, "one")))
	b := wrote(s.PutDocument(ctx, bounded("b", 0, "one")))
	_, err := s.PutDocument(ctx, bounded("c", 0, "one"))
	refused(t, err, creel.ErrBusy)
	b = wrote(s.PutDocument(ctx, bounded("b", b.Version, "two")))
	same(t, "one that is there, written again", string(b.Data), "two")
	unbounded := wrote(s.PutDocument(ctx, document("intents", "d", 0, "one")))
	wrote(s.PutDocument(ctx, document("intents", "a", a.Version, ""))) // its history is kept
	_, err = s.PutDocument(ctx, bounded("c", 0, "one"))
	refused(t, err, creel.ErrBusy)
	wrote(s.PutDocument(ctx, document("intents", "d", unbounded.Version, "")))
	wrote(s.PutDocument(ctx, bounded("c", 0, "one")))
	w := bounded("e", 0, "one")
	w.Most = -1
	_, err = s.PutDocument(ctx, w)
	refused(t, err, creel.ErrInvalidRequest)
}

// documentParts: a cut document is read in parts, all of one version; other documents are read whole.
func documentParts(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote, read := must[statestore.Document](t), must[statestore.Document](t)
	part := func(leaf, text string) subcluster.Part { return subcluster.Part{Leaf: leaf, Text: []byte(text)} }
	of := func(texts ...string) string { return subcluster.JoinParts(texts) }
	same(t, "version of none", read(s.DocumentOf(ctx, "plan", "a", []string{"x"})).Version, 0)
	w := document("plan", "a", 0, "whole")
	w.Parts = []subcluster.Part{part("", "head"), part("x", "of x"), part("y y", "of y")}
	one := wrote(s.PutDocument(ctx, w))
	same(t, "version of a repeat", wrote(s.PutDocument(ctx, w)).Version, one.Version)
	got := read(s.DocumentOf(ctx, "plan", "a", []string{"y y", "z", ""}))
	same(t, "head and rows", string(got.Data), of("head", "of y"))
	same(t, "class and name", got.Class+" "+got.Name, "plan a")
	if got.Version != one.Version || !got.Time.Equal(one.Time) || got.Replaced != 0 || got.Author != "" {
		t.Fatalf("in part it is %+v, as a whole %+v", got, one)
	}
	same(t, "the head alone", string(read(s.DocumentOf(ctx, "plan", "a", nil)).Data), of("head"))
	set := must[statestore.DocumentSet](t)(s.Documents(ctx, "plan"))
	same(t, "documents of the class", len(set.Documents), 1)
	same(t, "the whole", string(set.Documents[0].Data), "whole")

	w = document("plan", "a", one.Version, "whole 2")
	w.Parts = []subcluster.Part{part("", "head 2"), part("x", "of x 2")}
	two := wrote(s.PutDocument(ctx, w))
	got = read(s.DocumentOf(ctx, "plan", "a", []string{"x", "y y"}))
	same(t, "rows of the version before are gone", string(got.Data), of("head 2", "of x 2"))
	same(t, "version", got.Version, two.Version)
	same(t, "version that it replaced", got.Replaced, one.Version)

	other := wrote(s.PutDocument(ctx, document("plan", "b", 0, "uncut")))
	got = read(s.DocumentOf(ctx, "plan", "b", []string{"x"}))
	same(t, "one that was not cut", string(got.Data), "uncut")
	same(t, "its version", got.Version, other.Version)
	three := wrote(s.PutDocument(ctx, document("plan", "a", two.Version, "whole 3")))
	got = read(s.DocumentOf(ctx, "plan", "a", []string{"x"}))
	same(t, "one that is not cut any more", string(got.Data), "whole 3")
	same(t, "its version", got.Version, three.Version)
	wrote(s.PutDocument(ctx, document("plan", "a", three.Version, "")))
	same(t, "version of one that was removed", read(s.DocumentOf(ctx, "plan", "a", []string{"x"})).Version, 0)

	for _, parts := range [][]subcluster.Part{
		{part("x", "rows without a head")},
		{part("", "head"), part("", "another")},
		{part("", "")},
		{part("", "head"), part("x", string(make([]byte, statestore.MaxDocument+1)))},
	} {
		w := document("plan", "c", 0, "whole")
		w.Parts = parts
		_, err := s.PutDocument(ctx, w)
		refused(t, err, creel.ErrInvalidRequest)
	}
	_, err := s.DocumentOf(ctx, "plan", "", nil)
	refused(t, err, creel.ErrInvalidRequest)
}

func documentSource(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote := must[statestore.Document](t)
	set := must[statestore.DocumentSet](t)(s.Documents(ctx, "escrow"))
	w := document("escrow", "root.a", 0, "one")
	w.Source = set.Source
	one := wrote(s.PutDocument(ctx, w))
	w = document("escrow", "root.a", one.Version, "two")
	w.Source = set.Source + "-former"
	_, err := s.PutDocument(ctx, w)
	refused(t, err, creel.ErrConflict)
	w.Source = set.Source
	same(t, "data", string(wrote(s.PutDocument(ctx, w)).Data), "two")
	d.Advance(time.Millisecond)
	again := must[statestore.DocumentSet](t)(s.Documents(ctx, "escrow"))
	same(t, "source of a store that lives on", again.Source, set.Source)
	if !again.Now.After(set.Now) {
		t.Fatalf("the store's clock went from %v to %v", set.Now, again.Now)
	}
}

func (m *model) putDocument(t *rapid.T) {
	sc, tc := m.contexts(t)
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	var known []int64
	for v := range m.documents {
		known = append(known, v)
	}
	slices.Sort(known)
	w := document("queues", name, rapid.SampledFrom(known).Draw(t, "expect"), "")
	w.Data = []byte(rapid.SampledFrom([]string{"one", "two", ""}).Draw(t, "data"))
	w.Keep = rapid.IntRange(0, 3).Draw(t, "keep")
	w.Most = rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "most")
	if len(w.Data) > 0 && rapid.Bool().Draw(t, "cut") {
		w.Parts = []subcluster.Part{
			{Text: []byte("head of " + string(w.Data))}, {Leaf: string(w.Data), Text: []byte("rows")},
		}
	}
	if set, err := m.reference.Documents(m.ctx, "queues"); err == nil && rapid.Bool().Draw(t, "right") {
		d, _ := set.Find(name)
		w.Expect = d.Version
	}
	td, terr := m.reference.PutDocument(tc, w)
	w.Expect = m.documents[w.Expect]
	sd, serr := m.store.PutDocument(sc, w)
	alike(t, "document", serr, terr)
	if terr == nil && td.Version != 0 {
		if before, seen := m.documents[td.Version]; seen && before != sd.Version {
			t.Fatalf("a repeated document write made version %d, before it was %d", sd.Version, before)
		}
		m.documents[td.Version] = sd.Version
	}
}

// partOf is the partial read of a document that putDocument cut, for rows of "one".
func partOf(data string) string {
	texts := []string{"head of " + data}
	if data == "one" {
		texts = append(texts, "rows")
	}
	return subcluster.JoinParts(texts)
}

// documentLines lists everything that can be read about documents.
func (m *model) documentLines(t *rapid.T, s statestore.Store) (out []string) {
	set, err := s.Documents(m.ctx, "queues")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range set.Documents {
		out = append(out, fmt.Sprintf("document %s %s %s", d.Name, d.Data, d.Author))
	}
	for _, name := range []string{"a", "b"} {
		part, err := s.DocumentOf(m.ctx, "queues", name, []string{"one"})
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := set.Find(name); part.Version != d.Version || part.Replaced != d.Replaced ||
			string(part.Data) != string(d.Data) && string(part.Data) != partOf(string(d.Data)) {
			t.Fatalf("document %s is %+v, in part %+v", name, d, part)
		}
		h, err := s.DocumentHistory(m.ctx, "queues", name, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range h {
			out = append(out, fmt.Sprintf("document history %s %s", d.Name, d.Data))
		}
	}
	return out
}
