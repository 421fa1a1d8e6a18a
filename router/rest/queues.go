// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/remote"
)

// QueueTreeDoc is the federation's queue tree: a version of its document, and the present state of the queues.
type QueueTreeDoc struct {
	Version  int64                   `json:"version"` // 0: no document, the members' files apply
	Author   string                  `json:"author,omitempty"`
	Comment  string                  `json:"comment,omitempty"`
	Time     time.Time               `json:"time"`
	Document json.RawMessage         `json:"document,omitempty"`
	Text     string                  `json:"text,omitempty"` // the document as its author applied it
	Queues   []rebalancer.QueueState `json:"queues,omitempty"`
	Note     string                  `json:"note,omitempty"` // set if the state store does not answer
}

// SchedulerDoc has the merged queues of the members, from a snapshot that all viewers share.
type SchedulerDoc struct {
	Scheduler json.RawMessage `json:"scheduler,omitempty"` // as in YARN's document; omitted if no member sent one
	Missing   []missing       `json:"missing"`             // members whose queues are not included
}

// schedulerAPI serves the merged queues.
type schedulerAPI struct {
	server *server.Server
	merger func() *router.Merger[[]byte]
	shown  *shared[json.RawMessage] // one item: the merged scheduler document
}

func newScheduler(h *Handler) *schedulerAPI {
	a := &schedulerAPI{server: h.server, merger: h.yarn.merger}
	a.shown = sharedList(schedulerOf(h.server), a.merge, 0, nil)
	return a
}

// schedulerOf asks every member for its scheduler document.
func schedulerOf(s *server.Server) func(ctx context.Context, who string) []router.Part[[]json.RawMessage] {
	return func(ctx context.Context, who string) []router.Part[[]json.RawMessage] {
		return server.Ask(ctx, s, func(ctx context.Context, m *remote.Member) ([]json.RawMessage, error) {
			head := http.Header{"Accept": {"application/json"}}
			doc, _, err := m.Web(ctx, remote.List, http.MethodGet, base+"/scheduler?"+who, "", head, nil)
			if err != nil {
				return nil, err
			}
			if rawjson.Get(doc, "scheduler") == nil {
				return nil, errors.New("its answer has no scheduler document")
			}
			return []json.RawMessage{doc}, nil
		})
	}
}

// merge merges the documents of the members that answered. Earlier answers of other members are not included.
func (a *schedulerAPI) merge(parts []snapshot.Part[json.RawMessage]) []json.RawMessage {
	var present []router.Part[[]byte]
	for i := range parts {
		if p := &parts[i]; p.Err == nil && len(p.Items) == 1 {
			present = append(present, router.Part[[]byte]{Member: p.Member, Value: p.Items[0]})
		}
	}
	if len(present) == 0 {
		return nil
	}
	whole := a.merger().Merge("scheduler document", server.Weigh(a.server, present))
	return []json.RawMessage{rawjson.Get(whole, "scheduler")}
}

// serve serves the shared snapshot of the queues.
func (a *schedulerAPI) serve(w http.ResponseWriter, r *http.Request) {
	rows, parts, err := a.shown.Get(r.Context(), identity(r), false)
	if err != nil {
		problemOf(w, err)
		return
	}
	doc := SchedulerDoc{Missing: missingOf(parts, time.Now())}
	for i := range doc.Missing {
		doc.Missing[i].AgeSeconds = -1 // its queues are not shown
	}
	if len(rows) > 0 {
		doc.Scheduler = rows[0]
	}
	answerTagged(w, r, doc)
}

// QueueTreesDoc is a list of versions.
type QueueTreesDoc struct {
	Versions []QueueTreeDoc `json:"versions"`
}

// QueueTreeOrder requests a new version of the document. A null document removes it.
type QueueTreeOrder struct {
	Document json.RawMessage `json:"document"`
	Text     string          `json:"text,omitempty"` // the document in YAML, as its author wrote it
	Expect   int64           `json:"expect"`         // the version to be replaced, 0 for none
	Comment  string          `json:"comment"`
	DryRun   bool            `json:"dry_run"`
}

func queueTreeDoc(d statestore.Document) QueueTreeDoc {
	doc := QueueTreeDoc{
		Version: d.Authored(), Author: d.Author, Comment: d.Comment, Time: d.Time, Text: string(d.Text),
	}
	if json.Valid(d.Data) {
		doc.Document = d.Data
	}
	return doc
}

func answerTree(w http.ResponseWriter, t operator.QueueTree, note string, err error) {
	doc := queueTreeDoc(t.Document)
	doc.Queues, doc.Note = t.Queues, note
	done(w, err, doc)
}

// queueTreeAPI serves the federation's queue tree, and the mends of the members' queues.
type queueTreeAPI struct {
	operator     *operator.Operator
	applications *appsAPI
}

func (a *queueTreeAPI) get(w http.ResponseWriter, r *http.Request) {
	t, err := a.operator.QueueTree(r.Context())
	if err == nil {
		a.count(r, t.Queues)
	}
	answerTree(w, t, lacking(r.Context()), err)
}

// count replaces the numbers of applications by those of the list of applications, so that all views agree. A
// parent has the sums of its children. The rows of node labels keep the members' numbers.
func (a *queueTreeAPI) count(r *http.Request, queues []rebalancer.QueueState) {
	all, err := a.applications.counted(r)
	if err != nil {
		return // the members' numbers remain
	}
	now := time.Now()
	type at struct {
		queue  string
		member creel.SubclusterID
	}
	by := apps.CountsBy[at]{}
	for _, row := range all.Rows {
		for queue := creel.QueuePath(row.Queue); queue != ""; queue = queue.Parent() {
			for _, member := range []creel.SubclusterID{"", row.Home} {
				by.Add(at{string(queue), member}, row, now)
			}
		}
	}
	set := func(u *rebalancer.QueueUse, key at) {
		c := by.Of(key)
		u.Running, u.Waiting, u.OldestWait = c.Running, c.Waiting, c.OldestWait
	}
	for i := range queues {
		q := &queues[i]
		if q.Label != "" {
			continue
		}
		set(&q.QueueUse, at{string(q.Queue), ""})
		for id, use := range q.Use {
			set(&use, at{string(q.Queue), id})
			q.Use[id] = use
		}
	}
}

func (a *queueTreeAPI) put(w http.ResponseWriter, r *http.Request) {
	var in QueueTreeOrder
	if !order(w, r, &in) || !given(w, &in.Document) {
		return
	}
	t, err := a.operator.PutQueueTree(r.Context(), caller(r), operator.QueueTreeWrite{
		Document: in.Document, Text: []byte(in.Text), Expect: in.Expect, Comment: in.Comment, DryRun: in.DryRun,
	})
	answerTree(w, t, "", err)
}

func (a *queueTreeAPI) history(w http.ResponseWriter, r *http.Request) {
	limit, err := number(r, "limit", 20)
	before, err2 := number(r, "before", 0)
	doc := QueueTreesDoc{Versions: []QueueTreeDoc{}}
	if err = errors.Join(err, err2); err == nil {
		var list []statestore.Document
		list, err = a.operator.QueueTreeHistory(r.Context(), before, int(min(limit, statestore.KeptVersions)))
		for _, d := range list {
			doc.Versions = append(doc.Versions, queueTreeDoc(d))
		}
	}
	done(w, err, doc)
}

// MendsDoc is a list of mends.
type MendsDoc struct {
	Mends []operator.MendReport `json:"mends"`
}

// mends lists the mends of the members' queues, newest first.
func (a *queueTreeAPI) mends(w http.ResponseWriter, r *http.Request) {
	limit, err := number(r, "limit", 20)
	before, err2 := number(r, "before", 0)
	var doc MendsDoc
	if err = errors.Join(err, err2); err == nil {
		doc.Mends, err = a.operator.Mends(r.Context(), before, int(min(limit, statestore.KeptVersions)))
	}
	done(w, err, doc)
}

// mend brings the members' queues to the queue tree, or undoes a mend.
func (a *queueTreeAPI) mend(w http.ResponseWriter, r *http.Request) {
	var in operator.MendOrder
	if !order(w, r, &in) {
		return
	}
	out, err := a.operator.Mend(r.Context(), caller(r), in)
	done(w, err, out)
}
