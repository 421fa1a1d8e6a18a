// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Documents are small texts that several processes change by turns, each by compare-and-set on its version. They are
// the federation's queue tree, the rebalancer's plan, and the escrow records of queues with a federation-wide
// maximum. The packages that write them define their content.
type Documents interface {
	// PutDocument writes a document if its version is w.Expect (0: there is none). The new version is higher than any
	// before in its class. Empty data removes the document and leaves only the history that w.Keep retains; removing a
	// missing document is success.
	//
	// It returns creel.ErrConflict with the current document if the version differs, and creel.ErrConflict if w.Source
	// is set and names another store. The same write again is success, unless another write followed. It returns
	// creel.ErrBusy if the class would exceed its number of documents (w.Most).
	PutDocument(ctx context.Context, w DocumentWrite) (Document, error)
	// Documents reads all documents of a class at one moment of the store.
	Documents(ctx context.Context, class string) (DocumentSet, error)
	// DocumentsSince is Documents for a caller that read the class before. If the class is unchanged since, in the same
	// store, the result is the old set with the current time. The caller must not change its documents.
	DocumentsSince(ctx context.Context, class string, before DocumentSet) (DocumentSet, error)
	// DocumentOf reads the head of a document and its rows of queues with these leaf names (DocumentWrite.Parts), all
	// of the newest version. subcluster.JoinParts joins the data. It returns the whole document if the writer did not
	// cut it; it may do so if another document of the class is newer. The version is 0 if there is no document. Author,
	// comment and text are left out.
	DocumentOf(ctx context.Context, class, name string, queues []string) (Document, error)
	// DocumentHistory returns stored versions of a document, newest first, below before (0: from the newest), at most
	// limit. Recomputed data (DocumentWrite.Revises) is in no version of the history.
	DocumentHistory(ctx context.Context, class, name string, before int64, limit int) ([]Document, error)
}

// MaxDocument is the longest document, in bytes.
const MaxDocument = 4 << 20

// Document is one version of a document.
type Document struct {
	Class   string    `json:"class"`
	Name    string    `json:"name"`
	Version int64     `json:"version"`
	Time    time.Time `json:"time"` // store's clock
	Data    []byte    `json:"data"`
	Author  string    `json:"author,omitempty"`
	Comment string    `json:"comment,omitempty"`
	// Replaced is the version that this one replaced, 0 for none.
	Replaced int64 `json:"replaced,omitempty"`
	// Text is the document as its author wrote it, with comments; empty if that is Data.
	Text []byte `json:"text,omitempty"`
	// Revises is the author's version, if a program recomputed values in its data; 0: this is the author's version.
	Revises int64 `json:"revises,omitempty"`
}

// Authored is the version that the author wrote.
func (d *Document) Authored() int64 {
	if d.Revises > 0 {
		return d.Revises
	}
	return d.Version
}

// DocumentWrite asks for a new version.
type DocumentWrite struct {
	Class, Name     string
	Expect          int64 // the document's current version, 0 for none
	Data            []byte
	Author, Comment string
	Text            []byte // Document.Text
	Revises         int64  // Document.Revises; the history stays unchanged, and Keep is ignored
	Keep            int    // number of versions that stay in the history, 0 to KeptVersions
	Most            int    // limit of documents in the class, for a new document; 0: no limit
	Source          string // DocumentSet.Source that the decision was based on, or ""
	Quiet           bool   // not announced by Watch: for documents that many processes poll
	// Parts, if set, are stored beside the data, for partial reads: the head first, then rows of queues by leaf name.
	// They are derived from the data: the same write again has the same parts.
	Parts []subcluster.Part
}

// DocumentSet is a class at one moment.
type DocumentSet struct {
	Documents []Document // by name
	Now       time.Time  // store's clock
	// Source names the server that answered, in its present epoch. It changes when the store may have lost writes
	// which it acknowledged (failed over, restarted, restored, emptied). "" if unknown.
	Source string
	// Version is the highest version of any document of the class, including removed ones.
	Version int64
}

// Unchanged reports whether the set is from this store and has this version.
func (s *DocumentSet) Unchanged(source string, version int64) bool {
	return source != "" && s.Source == source && s.Version == version
}

// Find returns a document of the set.
func (s *DocumentSet) Find(name string) (Document, bool) {
	i, ok := slices.BinarySearchFunc(s.Documents, name, func(d Document, n string) int {
		return strings.Compare(d.Name, n)
	})
	if !ok {
		return Document{}, false
	}
	return s.Documents[i], true
}

// CheckDocumentName rejects invalid document names.
func CheckDocumentName(class, name string) error {
	if err := CheckName("document class", class); err != nil {
		return err
	}
	return CheckName("document name", name)
}

// CheckDocument rejects writes that cannot be stored.
func CheckDocument(w *DocumentWrite) error {
	if err := CheckDocumentName(w.Class, w.Name); err != nil {
		return err
	}
	switch {
	case len(w.Data) > MaxDocument:
		return bad("document refused", "it has %d bytes, more than %d", len(w.Data), MaxDocument)
	case len(w.Text) > MaxDocument:
		return bad("document refused", "its text has %d bytes, more than %d", len(w.Text), MaxDocument)
	case w.Revises < 0 || w.Revises > 0 && (len(w.Data) == 0 || w.Revises > w.Expect):
		return bad("document refused", "version %d of %d bytes does not revise version %d",
			w.Expect, len(w.Data), w.Revises)
	case len(w.Author) > 256 || len(w.Comment) > 4096:
		return bad("document refused", "author is longer than 256 bytes or comment longer than 4096")
	case w.Expect < 0:
		return bad("document refused", "expected version %d is negative", w.Expect)
	case w.Most < 0:
		return bad("document refused", "the bound of %d documents is negative", w.Most)
	case w.Keep < 0 || w.Keep > KeptVersions:
		return bad("document refused", "%d versions to keep are not between 0 and %d", w.Keep, KeptVersions)
	}
	for i, p := range w.Parts {
		if (p.Leaf == "") != (i == 0) || len(p.Text) == 0 {
			return bad("document refused", "its part %d, of leaf %.80q, has %d bytes: the head comes first, has no leaf, "+
				"and none is empty", i, p.Leaf, len(p.Text))
		}
		if len(p.Text) > MaxDocument {
			return bad("document refused", "its part of leaf %.80q has %d bytes, more than %d",
				p.Leaf, len(p.Text), MaxDocument)
		}
	}
	return nil
}

// OtherDocument returns the error for a document that another write changed meanwhile.
func OtherDocument(class, name string, is, expected int64) error {
	return failf(creel.ErrConflict, "read it and decide again on that version",
		fmt.Sprintf("%s document %q not written", class, name), "its version is %d, not %d", is, expected)
}

// OtherSource returns the error for a store other than the one a write was decided on.
func OtherSource(class, name string) error {
	return failf(creel.ErrConflict, "read it again from the store as it is now",
		fmt.Sprintf("%s document %q not written", class, name), "the store failed over or restarted meanwhile")
}

// TooManyDocuments returns the error for a class that already has the number of documents that the write allows.
func TooManyDocuments(class, name string, are int64) error {
	return failf(creel.ErrBusy, "try again after removing some",
		fmt.Sprintf("%s document %q not written", class, name), "there are %d of them already", are)
}
