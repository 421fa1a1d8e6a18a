// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
)

// QueueTreeDoc is the federation's queue tree: a version of its document, and the
// queues as they are.
type QueueTreeDoc struct {
	Version  int64                   `json:"version"` // 0: no document, all is derived from the members' files
	Author   string                  `json:"author,omitempty"`
	Comment  string                  `json:"comment,omitempty"`
	Time     time.Time               `json:"time"`
	Document json.RawMessage         `json:"document,omitempty"`
	Queues   []rebalancer.QueueState `json:"queues,omitempty"`
}

// QueueTreesDoc is a list of versions.
type QueueTreesDoc struct {
	Versions []QueueTreeDoc `json:"versions"`
}

// QueueTreeOrder asks for a new version of the document. A null document removes it.
type QueueTreeOrder struct {
	Document json.RawMessage `json:"document"`
	Expect   int64           `json:"expect"` // the version that is to be replaced, 0 for none
	Comment  string          `json:"comment"`
	DryRun   bool            `json:"dry_run"`
}

func queueTreeDoc(d statestore.Document) QueueTreeDoc {
	doc := QueueTreeDoc{Version: d.Version, Author: d.Author, Comment: d.Comment, Time: d.Time}
	if json.Valid(d.Data) {
		doc.Document = d.Data
	}
	return doc
}

func answerTree(w http.ResponseWriter, t operator.QueueTree, err error) {
	doc := queueTreeDoc(t.Document)
	doc.Queues = t.Queues
	done(w, err, doc)
}

func (h *Handler) queueTree(w http.ResponseWriter, r *http.Request) {
	t, err := h.conf.Operator.QueueTree(r.Context())
	answerTree(w, t, err)
}

func (h *Handler) putQueueTree(w http.ResponseWriter, r *http.Request) {
	var in QueueTreeOrder
	if !order(w, r, &in) {
		return
	}
	if string(in.Document) == "null" {
		in.Document = nil
	}
	t, err := h.conf.Operator.PutQueueTree(r.Context(), caller(r), operator.QueueTreeWrite{
		Document: in.Document, Expect: in.Expect, Comment: in.Comment, DryRun: in.DryRun,
	})
	answerTree(w, t, err)
}

func (h *Handler) queueTreeHistory(w http.ResponseWriter, r *http.Request) {
	limit, err := number(r, "limit", 20)
	before, err2 := number(r, "before", 0)
	doc := QueueTreesDoc{Versions: []QueueTreeDoc{}}
	if err = errors.Join(err, err2); err == nil {
		var list []statestore.Document
		list, err = h.conf.Operator.QueueTreeHistory(r.Context(), before, int(min(limit, statestore.KeptVersions)))
		for _, d := range list {
			doc.Versions = append(doc.Versions, queueTreeDoc(d))
		}
	}
	done(w, err, doc)
}

func (h *Handler) rebalancer(w http.ResponseWriter, r *http.Request) {
	state, err := h.conf.Operator.Rebalancer(r.Context())
	done(w, err, state)
}

func (h *Handler) pauseRebalancer(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Paused bool   `json:"paused"`
		Reason string `json:"reason"`
	}
	if !order(w, r, &in) {
		return
	}
	err := h.conf.Operator.PauseRebalancer(r.Context(), caller(r), in.Paused, in.Reason)
	done(w, err, map[string]bool{"paused": in.Paused})
}
