// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// documentClass holds the documents of one class in memory.
type documentClass struct {
	version int64 // newest of any
	of      map[string]*keptDocument
}

// keptDocument is a document with its history, oldest first, including the current version. A
// removed document stays without data as long as its history does.
type keptDocument struct {
	statestore.Document
	Parts   []subcluster.Part     `json:"parts,omitempty"` // of the current version
	History []statestore.Document `json:"history,omitempty"`
}

// PutDocument: see Documents.
func (t *State) PutDocument(now time.Time, w statestore.DocumentWrite) (statestore.Document, error) {
	if err := statestore.CheckDocument(&w); err != nil {
		return statestore.Document{}, err
	}
	if w.Source != "" && w.Source != t.source() {
		return statestore.Document{}, statestore.OtherSource(w.Class, w.Name)
	}
	c := t.documents[w.Class]
	if c == nil {
		c = &documentClass{of: map[string]*keptDocument{}}
		t.documents[w.Class] = c
	}
	k := c.of[w.Name]
	if k == nil {
		k = &keptDocument{Document: statestore.Document{Class: w.Class, Name: w.Name}}
	}
	current := k.Version
	if len(k.Data) == 0 {
		current = 0 // removed
	}
	if current == 0 && len(w.Data) == 0 {
		return cloneDocument(&k.Document), nil // nothing to remove, or the repeat of a lost answer
	}
	switch {
	case current != w.Expect && k.Version != 0 && k.Replaced == w.Expect &&
		bytes.Equal(k.Data, w.Data) && bytes.Equal(k.Text, w.Text) && k.Revises == w.Revises &&
		k.Author == w.Author && k.Comment == w.Comment:
		return cloneDocument(&k.Document), nil // the repeat of a lost answer
	case current != w.Expect:
		return cloneDocument(&k.Document), statestore.OtherDocument(w.Class, w.Name, current, w.Expect)
	case current == 0 && w.Most > 0 && c.size() >= w.Most:
		return cloneDocument(&k.Document), statestore.TooManyDocuments(w.Class, w.Name, int64(c.size()))
	}
	c.version = max(c.version+1, now.UnixMilli())
	k.Version, k.Replaced, k.Time, k.Data = c.version, w.Expect, now, slices.Clone(w.Data)
	k.Author, k.Comment, k.Parts = w.Author, w.Comment, cloneParts(w.Parts)
	k.Text, k.Revises = slices.Clone(w.Text), w.Revises
	if k.Revises == 0 {
		h := append(slices.Clip(k.History), cloneDocument(&k.Document))
		k.History = slices.Clone(h[max(0, len(h)-w.Keep):])
	}
	c.of[w.Name] = k
	if len(k.Data) == 0 && len(k.History) == 0 {
		delete(c.of, w.Name)
	}
	return cloneDocument(&k.Document), nil
}

// size is the number of documents.
func (c *documentClass) size() (n int) {
	for _, k := range c.of {
		if len(k.Data) > 0 {
			n++
		}
	}
	return n
}

func cloneDocument(d *statestore.Document) statestore.Document {
	c := *d
	c.Data, c.Text = slices.Clone(d.Data), slices.Clone(d.Text)
	return c
}

func cloneParts(parts []subcluster.Part) (out []subcluster.Part) {
	for _, p := range parts {
		out = append(out, subcluster.Part{Leaf: p.Leaf, Text: slices.Clone(p.Text)})
	}
	return out
}

// DocumentOf: see Documents.
func (t *State) DocumentOf(class, name string, queues []string) (statestore.Document, error) {
	if err := statestore.CheckDocumentName(class, name); err != nil {
		return statestore.Document{}, err
	}
	c := t.documents[class]
	if c == nil || c.of[name] == nil || len(c.of[name].Data) == 0 {
		return statestore.Document{Class: class, Name: name}, nil
	}
	k := c.of[name]
	d := k.Document
	d.Author, d.Comment, d.Text = "", "", nil
	if len(k.Parts) == 0 {
		return cloneDocument(&d), nil
	}
	texts := []string{string(k.Parts[0].Text)}
	for _, p := range k.Parts[1:] {
		if slices.Contains(queues, p.Leaf) {
			texts = append(texts, string(p.Text))
		}
	}
	d.Data = []byte(subcluster.JoinParts(texts))
	return d, nil
}

// Documents: see Documents.
func (t *State) Documents(now time.Time, class string) (statestore.DocumentSet, error) {
	if err := statestore.CheckName("document class", class); err != nil {
		return statestore.DocumentSet{}, err
	}
	s := statestore.DocumentSet{Now: now, Source: t.source()}
	if c := t.documents[class]; c != nil {
		s.Version = c.version
		for _, k := range c.of {
			if len(k.Data) > 0 {
				s.Documents = append(s.Documents, cloneDocument(&k.Document))
			}
		}
	}
	slices.SortFunc(s.Documents, func(a, b statestore.Document) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// DocumentsSince: see Documents.
func (t *State) DocumentsSince(
	now time.Time, class string, before statestore.DocumentSet,
) (statestore.DocumentSet, error) {
	version := int64(0)
	if c := t.documents[class]; c != nil {
		version = c.version
	}
	if before.Unchanged(t.source(), version) {
		before.Now = now
		return before, nil
	}
	return t.Documents(now, class)
}

// DocumentHistory: see Documents.
func (t *State) DocumentHistory(class, name string, before int64, limit int) ([]statestore.Document, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, err
	}
	var out []statestore.Document
	if c := t.documents[class]; c != nil && c.of[name] != nil {
		for _, d := range slices.Backward(c.of[name].History) {
			if (before == 0 || d.Version < before) && len(out) < limit {
				out = append(out, cloneDocument(&d))
			}
		}
	}
	return out, nil
}

// source names this store in its present epoch.
func (t *State) source() string { return fmt.Sprintf("%s-%d", t.identity, t.restored) }

// saveDocuments returns all documents with their history, in an order that depends on nothing else.
func (t *State) saveDocuments() (out []keptDocument) {
	for _, c := range t.documents {
		for _, k := range c.of {
			out = append(out, *k)
		}
	}
	slices.SortFunc(out, func(a, b keptDocument) int {
		return cmp.Or(strings.Compare(a.Class, b.Class), strings.Compare(a.Name, b.Name))
	})
	return out
}

// restoreDocuments restores the result of saveDocuments.
func (t *State) restoreDocuments(list []keptDocument) error {
	for _, k := range list {
		w := statestore.DocumentWrite{Class: k.Class, Name: k.Name, Data: k.Data, Author: k.Author, Comment: k.Comment}
		if err := statestore.CheckDocument(&w); err != nil {
			return err
		}
		c := t.documents[k.Class]
		if c == nil {
			c = &documentClass{of: map[string]*keptDocument{}}
			t.documents[k.Class] = c
		}
		c.version = max(c.version, k.Version)
		c.of[k.Name] = &k
	}
	return nil
}

// PutDocument implements Documents.
func (m *Store) PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error) {
	return write(ctx, m, func(t *State, now time.Time) (statestore.Document, error) {
		d, err := t.PutDocument(now, w)
		if err == nil && !w.Quiet {
			m.tell(statestore.Change{Kind: statestore.ChangeDocuments, Class: w.Class, Version: d.Version})
		}
		return d, m.recorded(ctx, now, err)
	})
}

// Documents implements Documents.
func (m *Store) Documents(_ context.Context, class string) (statestore.DocumentSet, error) {
	return read(m, func(t *State, now time.Time) (statestore.DocumentSet, error) { return t.Documents(now, class) })
}

// DocumentsSince implements Documents.
func (m *Store) DocumentsSince(
	_ context.Context, class string, before statestore.DocumentSet,
) (statestore.DocumentSet, error) {
	return read(m, func(t *State, now time.Time) (statestore.DocumentSet, error) {
		return t.DocumentsSince(now, class, before)
	})
}

// DocumentOf implements Documents.
func (m *Store) DocumentOf(_ context.Context, class, name string, queues []string) (statestore.Document, error) {
	return read(m, func(t *State, _ time.Time) (statestore.Document, error) {
		return t.DocumentOf(class, name, queues)
	})
}

// DocumentHistory implements Documents.
func (m *Store) DocumentHistory(
	_ context.Context,
	class, name string,
	before int64,
	limit int,
) ([]statestore.Document, error) {
	return read(m, func(t *State, _ time.Time) ([]statestore.Document, error) {
		return t.DocumentHistory(class, name, before, limit)
	})
}
