// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
)

// The document with the record of mends; each version is one mend.
const (
	mendClass = "queues-mended"
	mendName  = "members"
)

// Members changes the queues of members for a user. An error has the member's message.
type Members interface {
	QueueConf(ctx context.Context, m creel.SubclusterID, user string) (rebalancer.QueueConf, error)
	ChangeQueues(ctx context.Context, m creel.SubclusterID, user string, changes []rebalancer.QueueChange) error
	RemoveQueues(
		ctx context.Context, m creel.SubclusterID, user string, q []creel.QueuePath, also []rebalancer.QueueChange,
	) error
}

// MendResult is the actual or planned result for a member's queues.
type MendResult struct {
	rebalancer.MemberMend
	Error string `json:"error,omitempty"` // the member cannot be changed, or rejected the changes
	Done  bool   `json:"done,omitempty"`
}

// MendReport is a mend of the members' queues, with the changes in each member.
type MendReport struct {
	Version int64        `json:"version,omitempty"` // for undoing it, 0 if there were no changes
	Author  string       `json:"author,omitempty"`
	Comment string       `json:"comment,omitempty"`
	Time    time.Time    `json:"time,omitzero"`
	Members []MendResult `json:"members"`
}

// MendOrder requests a mend.
type MendOrder struct {
	Members []creel.SubclusterID `json:"members"` // none: all
	Comment string               `json:"comment"`
	DryRun  bool                 `json:"dry_run"`
	Undo    int64                `json:"undo"` // the mend to undo; 0: mend drift
}

// Mend brings the queues of members to the federation's queue tree, or undoes an earlier mend. The planned changes
// are stored before any member is called. Each member applies all of its changes or none. A member's error is in its
// MendResult.
func (o *Operator) Mend(ctx context.Context, user string, w MendOrder) (MendReport, error) {
	if !w.DryRun {
		if err := o.allow(user, "change the queues of members"); err != nil {
			return MendReport{}, err
		}
	}
	if w.Undo < 0 {
		return MendReport{}, noMend(w.Undo)
	}
	view := o.conf.View()
	if view == nil || o.conf.Members == nil {
		return MendReport{}, noView("the members' queues")
	}
	for _, id := range w.Members {
		if _, ok := view.Member(id); !ok {
			return MendReport{}, noMember(id)
		}
	}
	var out MendReport
	var err error
	if w.Undo > 0 {
		out, err = o.undone(ctx, user, w)
	} else {
		out, err = o.drift(ctx, user, w)
	}
	if err != nil || w.DryRun || !slices.ContainsFunc(out.Members, MendResult.changes) {
		return out, err
	}
	if out.Version, err = o.recordMend(ctx, user, w, out); err != nil {
		return MendReport{}, err
	}
	each(out.Members, func(_ int, m *MendResult) {
		if !m.changes() {
			return
		}
		if err := o.carryOut(ctx, user, m, w.Undo > 0); err != nil {
			m.Error = err.Error()
		} else {
			m.Done = true
		}
	})
	return out, nil
}

func (m MendResult) changes() bool { return m.Error == "" && len(m.Changes) > 0 }

// Failed returns the number of members that could not be asked, or rejected their changes.
func (m *MendReport) Failed() int {
	n := 0
	for i := range m.Members {
		if m.Members[i].Error != "" {
			n++
		}
	}
	return n
}

// each calls do for all members at the same time, so that a slow member does not delay others.
func each(list []MendResult, do func(i int, m *MendResult)) {
	var all sync.WaitGroup
	for i := range list {
		all.Go(func() { do(i, &list[i]) })
	}
	all.Wait()
}

// drift compares the members' configurations with the queue tree.
func (o *Operator) drift(ctx context.Context, user string, w MendOrder) (MendReport, error) {
	out := MendReport{Members: []MendResult{}}
	d, err := o.document(ctx, rebalancer.TreeClass, rebalancer.TreeName)
	if err != nil {
		return out, err
	}
	tree := &rebalancer.Tree{}
	if len(d.Data) > 0 {
		if tree, err = rebalancer.ParseTree(d.Data, d.Version); err != nil {
			return out, err
		}
	}
	view := o.conf.View()
	for i := range view.Members {
		if m := &view.Members[i]; m.State.Alive() && (len(w.Members) == 0 || slices.Contains(w.Members, m.ID)) {
			out.Members = append(out.Members, MendResult{MemberMend: rebalancer.MemberMend{Member: m.ID}})
		}
	}
	confs := make([]rebalancer.QueueConf, len(out.Members))
	each(out.Members, func(i int, m *MendResult) {
		conf, err := o.conf.Members.QueueConf(ctx, m.Member, user)
		if err != nil {
			m.Error = err.Error()
		}
		confs[i] = conf
	})
	known := map[creel.SubclusterID]rebalancer.QueueConf{}
	for i := range out.Members {
		if out.Members[i].Error == "" {
			known[out.Members[i].Member] = confs[i]
		}
	}
	for _, mend := range rebalancer.Mend(view, tree, known) {
		at := slices.IndexFunc(out.Members, func(x MendResult) bool { return x.Member == mend.Member })
		out.Members[at].MemberMend = mend
	}
	return out, nil
}

// recordMend stores the planned changes.
func (o *Operator) recordMend(ctx context.Context, user string, w MendOrder, m MendReport) (int64, error) {
	data, err := json.Marshal(m.Members)
	if err != nil {
		return 0, err
	}
	if w.Comment == "" && w.Undo > 0 {
		w.Comment = fmt.Sprintf("undoes %d", w.Undo)
	}
	is, err := o.document(ctx, mendClass, mendName)
	if err != nil {
		return 0, err
	}
	var names []string
	for i := range m.Members {
		if m.Members[i].changes() {
			names = append(names, string(m.Members[i].Member))
		}
	}
	ctx = o.conf.Events.Recording(ctx, statestore.Event{
		Kind: statestore.EventMend, Subject: string(creel.RootQueue), User: user,
		After: "queues of " + strings.Join(names, ", "), Detail: w.Comment,
	})
	made, err := o.conf.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: mendClass, Name: mendName, Expect: is.Version, Data: data, Author: user, Comment: w.Comment,
		Keep: statestore.KeptVersions, Quiet: true,
	})
	if errors.Is(err, creel.ErrConflict) {
		err = fmt.Errorf("another user is mending queues: %w", err)
	}
	return made.Version, err
}

// undone returns the changes that undo a mend. It covers only values that have not changed since the mend.
func (o *Operator) undone(ctx context.Context, user string, w MendOrder) (MendReport, error) {
	out := MendReport{Members: []MendResult{}}
	list, err := o.Mends(ctx, w.Undo+1, 1)
	if err != nil {
		return out, err
	}
	if len(list) == 0 || list[0].Version != w.Undo {
		return out, noMend(w.Undo)
	}
	for _, m := range list[0].Members {
		if m.changes() && (len(w.Members) == 0 || slices.Contains(w.Members, m.Member)) {
			out.Members = append(out.Members, m)
		}
	}
	each(out.Members, func(_ int, m *MendResult) {
		conf, err := o.conf.Members.QueueConf(ctx, m.Member, user)
		var back []rebalancer.QueueChange
		if err == nil {
			back, err = m.Undo(conf)
		}
		m.Changes, m.Notes = back, nil
		if err != nil {
			m.Error = err.Error()
		}
	})
	return out, nil
}

func noMend(version int64) error {
	kind := creel.ErrQueueNotFound // of such queues
	if version < 1 {
		kind = creel.ErrInvalidRequest
	}
	return &creel.Error{
		Kind: kind, What: fmt.Sprintf("there is no mend of version %d", version),
		Why: fmt.Sprintf("versions begin with 1, and the last %d are remembered", statestore.KeptVersions),
		Try: "see `creel queue mend --history`",
	}
}

// carryOut makes a member change its queues. To undo an addition, the queue is removed in a second call: it must be
// stopped first, and is started again if it cannot be removed.
func (o *Operator) carryOut(ctx context.Context, user string, m *MendResult, undo bool) error {
	if !undo {
		return o.conf.Members.ChangeQueues(ctx, m.Member, user, m.Changes)
	}
	var back, stop, start []rebalancer.QueueChange
	var remove []creel.QueuePath
	for _, c := range m.Changes {
		if c.Remove {
			remove = append(remove, c.Queue)
			stop = append(stop, rebalancer.QueueChange{Queue: c.Queue, Key: "state", Is: "STOPPED"})
			start = append(start, rebalancer.QueueChange{Queue: c.Queue, Key: "state", Is: "RUNNING"})
		} else {
			back = append(back, c)
		}
	}
	if len(remove) == 0 {
		return o.conf.Members.ChangeQueues(ctx, m.Member, user, back)
	}
	if err := o.conf.Members.ChangeQueues(ctx, m.Member, user, stop); err != nil {
		return err
	}
	err := o.conf.Members.RemoveQueues(ctx, m.Member, user, remove, back)
	if err != nil {
		return errors.Join(err, o.conf.Members.ChangeQueues(ctx, m.Member, user, start))
	}
	return nil
}

// Mends lists the mends, newest first, below before (0: from the newest).
func (o *Operator) Mends(ctx context.Context, before int64, limit int) ([]MendReport, error) {
	list, err := o.conf.Store.DocumentHistory(ctx, mendClass, mendName, before, limit)
	if err != nil {
		return nil, err
	}
	out := []MendReport{}
	for _, d := range list {
		m := MendReport{Version: d.Version, Author: d.Author, Comment: d.Comment, Time: d.Time}
		if err := json.Unmarshal(d.Data, &m.Members); err != nil {
			return nil, fmt.Errorf("the mend of version %d cannot be read: %w", d.Version, err)
		}
		out = append(out, m)
	}
	return out, nil
}
