// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// The documents of a class are children of its node, which has the newest version of any, and their number. Each
// version of a document's history has a node of its own.

// storedDocument is a document in a node. A removed document stays without data as long as its history does.
type storedDocument struct {
	statestore.Document
	Parts []subcluster.Part `json:"parts,omitempty"`
	Kept  []int64           `json:"kept,omitempty"` // versions in the history, oldest first
}

// documentClass is the node of a class.
type documentClass struct {
	Version int64 `json:"version"`
	Size    int   `json:"size"` // documents with data
}

func (t *txn) class(class string) (c documentClass, path string, err error) {
	path = t.store.paths.documents + "/" + name(class)
	n, err := t.get(path)
	if err == nil && n.is && json.Unmarshal(n.data, &c) != nil {
		err = statestore.Unreadable("a class of documents", fmt.Errorf("%s", path))
	}
	return c, path, err
}

func (t *txn) document(path, class, document string) (*storedDocument, error) {
	n, err := t.get(path)
	if err != nil {
		return nil, err
	}
	d := &storedDocument{Document: statestore.Document{Class: class, Name: document}}
	text, err := decode(n.data)
	if err == nil && n.is {
		err = json.Unmarshal(text, d)
	}
	if err != nil {
		return nil, statestore.Unreadable("a document", err)
	}
	return d, nil
}

// repeats reports whether a write is the one that made the document's version.
func (d *storedDocument) repeats(w *statestore.DocumentWrite) bool {
	return d.Version != 0 && d.Replaced == w.Expect && bytes.Equal(d.Data, w.Data) && bytes.Equal(d.Text, w.Text) &&
		d.Revises == w.Revises && d.Author == w.Author && d.Comment == w.Comment
}

// PutDocument implements statestore.Documents.
func (s *Store) PutDocument(ctx context.Context, w statestore.DocumentWrite) (d statestore.Document, err error) {
	if err := statestore.CheckDocument(&w); err != nil {
		return d, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		if w.Source != "" {
			m, err := t.meta()
			if err != nil {
				return err
			}
			if w.Source != m.identity() {
				return statestore.OtherSource(w.Class, w.Name)
			}
		}
		is, err := t.putDocument(&w)
		if is != nil {
			d = is.Document
		}
		if err != nil || d.Version == 0 {
			return err
		}
		if !w.Quiet {
			t.tell(statestore.Change{Kind: statestore.ChangeDocuments, Class: w.Class, Version: d.Version})
		}
		return nil
	})
	return d, err
}

func (t *txn) putDocument(w *statestore.DocumentWrite) (*storedDocument, error) {
	c, parent, err := t.class(w.Class)
	if err != nil {
		return nil, err
	}
	path := parent + "/" + name(w.Name)
	d, err := t.document(path, w.Class, w.Name)
	if err != nil {
		return nil, err
	}
	current := d.Version
	if len(d.Data) == 0 {
		current = 0
	}
	switch {
	case current == 0 && len(w.Data) == 0:
		return d, t.record() // nothing to remove, or the repeat of a lost answer
	case current != w.Expect && d.repeats(w):
		return d, nil // the repeat of a lost answer
	case current != w.Expect:
		return d, statestore.OtherDocument(w.Class, w.Name, current, w.Expect)
	case current == 0 && w.Most > 0 && c.Size >= w.Most:
		return d, statestore.TooManyDocuments(w.Class, w.Name, int64(c.Size))
	}
	if current == 0 {
		c.Size++
	}
	if len(w.Data) == 0 {
		c.Size--
	}
	c.Version = max(c.Version+1, t.now.UnixMilli())
	d.Version, d.Replaced, d.Time, d.Data = c.Version, w.Expect, t.now, w.Data
	d.Author, d.Comment, d.Parts, d.Text, d.Revises = w.Author, w.Comment, w.Parts, w.Text, w.Revises
	t.put(parent, jsonOf(c))
	if d.Revises == 0 {
		if err := t.keepVersion(d, w.Keep); err != nil {
			return d, err
		}
	}
	if len(d.Data) == 0 && len(d.Kept) == 0 {
		t.remove(path)
		return d, t.record()
	}
	data, err := encode(jsonOf(d))
	if err != nil {
		return d, err
	}
	t.put(path, data)
	return d, t.record()
}

// keepVersion adds a document's version to its history, and deletes versions beyond the number to keep.
func (t *txn) keepVersion(d *storedDocument, keep int) error {
	d.Kept = append(d.Kept, d.Version)
	for len(d.Kept) > keep {
		path := t.version(d.Class, d.Name, d.Kept[0])
		if d.Kept[0] != d.Version {
			if _, err := t.get(path); err != nil {
				return err
			}
			t.remove(path)
		}
		d.Kept = d.Kept[1:]
	}
	if keep == 0 {
		return nil
	}
	path := t.version(d.Class, d.Name, d.Version)
	if _, err := t.get(path); err != nil {
		return err
	}
	data, err := encode(jsonOf(d.Document))
	if err == nil {
		t.put(path, data)
	}
	return err
}

// version is the node of a version in the history.
func (t *txn) version(class, document string, version int64) string {
	return fmt.Sprintf("%s/%s %s %019d", t.store.paths.history, name(class), name(document), version)
}

// Documents implements statestore.Documents. The class's node shows that no document changed during the read.
func (s *Store) Documents(ctx context.Context, class string) (statestore.DocumentSet, error) {
	return s.DocumentsSince(ctx, class, statestore.DocumentSet{})
}

// DocumentsSince implements statestore.Documents.
func (s *Store) DocumentsSince(
	ctx context.Context, class string, before statestore.DocumentSet,
) (set statestore.DocumentSet, err error) {
	if err := statestore.CheckName("document class", class); err != nil {
		return set, err
	}
	err = s.unchanged(ctx, s.paths.documents+"/"+name(class), func(t *txn) error {
		c, parent, err := t.class(class)
		if err != nil {
			return err
		}
		m, err := t.meta()
		if err != nil {
			return err
		}
		set = statestore.DocumentSet{Now: t.now, Source: m.identity(), Version: c.Version}
		if before.Unchanged(set.Source, set.Version) {
			set.Documents = before.Documents
			return nil
		}
		names, err := t.children(parent)
		if err != nil {
			return err
		}
		list := make([]*storedDocument, len(names))
		err = each(len(names), func(i int) (err error) {
			list[i], err = t.apart().document(parent+"/"+names[i], class, named(names[i]))
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range list {
			if len(d.Data) > 0 {
				set.Documents = append(set.Documents, d.Document)
			}
		}
		slices.SortFunc(set.Documents, func(a, b statestore.Document) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return set, err
}

// DocumentOf implements statestore.Documents.
func (s *Store) DocumentOf(
	ctx context.Context, class, document string, queues []string,
) (d statestore.Document, err error) {
	if err := statestore.CheckDocumentName(class, document); err != nil {
		return d, err
	}
	err = s.look(ctx, func(t *txn) error {
		path := s.paths.documents + "/" + name(class) + "/" + name(document)
		is, err := t.document(path, class, document)
		if err != nil {
			return err
		}
		if d = is.Document; len(d.Data) == 0 {
			d = statestore.Document{Class: class, Name: document}
			return nil
		}
		d.Author, d.Comment, d.Text = "", "", nil
		if len(is.Parts) == 0 {
			return nil
		}
		texts := []string{string(is.Parts[0].Text)}
		for _, p := range is.Parts[1:] {
			if slices.Contains(queues, p.Leaf) {
				texts = append(texts, string(p.Text))
			}
		}
		d.Data = []byte(subcluster.JoinParts(texts))
		return nil
	})
	return d, err
}

// DocumentHistory implements statestore.Documents.
func (s *Store) DocumentHistory(
	ctx context.Context, class, document string, before int64, limit int,
) (list []statestore.Document, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, err
	}
	path := s.paths.documents + "/" + name(class) + "/" + name(document)
	err = s.unchanged(ctx, path, func(t *txn) error {
		list = nil
		is, err := t.document(path, class, document)
		if err != nil {
			return err
		}
		for _, version := range slices.Backward(is.Kept) {
			if before != 0 && version >= before || len(list) == limit {
				continue
			}
			d, err := t.document(t.version(class, document, version), class, document)
			if err != nil {
				return err
			}
			list = append(list, d.Document)
		}
		return nil
	})
	return list, err
}
