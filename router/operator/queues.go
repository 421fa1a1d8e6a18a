// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictyaml"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// QueueTree is the federation's queue tree: the document, and the present state of the queues. If there is no
// document, its version is 0, and the state comes from the members' files.
type QueueTree struct {
	Document statestore.Document
	Queues   []rebalancer.QueueState
}

// QueueTreeWrite requests a new version of the document.
type QueueTreeWrite struct {
	Document []byte // empty removes it
	Text     []byte // the document as the user wrote it, in YAML; empty: Document
	Expect   int64  // the user's version to be replaced, 0 for none
	Comment  string
	DryRun   bool // check, but write nothing
}

// QueueTree reads the tree.
func (o *Operator) QueueTree(ctx context.Context) (QueueTree, error) {
	d, err := o.document(ctx, rebalancer.TreeClass, rebalancer.TreeName)
	if err = without(ctx, err, "the federation's queue tree"); err != nil {
		return QueueTree{}, err
	}
	out, err := o.compare(d)
	if err != nil {
		return out, err
	}
	return out, without(ctx, o.addHeld(ctx, out.Queues), "parts of maxima")
}

// addHeld adds to queues the parts of maxima that members hold without a lease, and the members that do not enforce
// user limits.
func (o *Operator) addHeld(ctx context.Context, queues []rebalancer.QueueState) error {
	held, _, err := ReadEscrow(ctx, o.conf.Store)
	if err != nil {
		return err
	}
	view := o.conf.View()
	for i := range queues {
		for j := range view.Members {
			m := &view.Members[j]
			if len(queues[i].UserLimit) > 0 && m.ByAgent() && m.State != subcluster.StateDeregistered {
				queues[i].Held = append(queues[i].Held, fmt.Sprintf(
					"%s takes no part in the user limit: its ResourceManager is Hadoop's", m.ID))
			}
		}
		for _, e := range held {
			if e.Queue == queues[i].Queue && e.Label == queues[i].Label && e.Lasts != "" {
				queues[i].Held = append(queues[i].Held, fmt.Sprintf("%s holds %d MiB of its maximum, %s", e.Member,
					e.Cap[creel.MemoryName], e.Lasts))
			}
		}
	}
	return nil
}

func (o *Operator) compare(d statestore.Document) (QueueTree, error) {
	tree, view := &rebalancer.Tree{}, o.conf.View()
	if len(d.Data) > 0 {
		var err error
		if tree, err = rebalancer.ParseTree(d.Data, d.Version); err != nil {
			return QueueTree{Document: d}, err
		}
	}
	if view == nil {
		return QueueTree{}, noView("the federation's queues")
	}
	return QueueTree{d, rebalancer.Compare(view, tree)}, nil
}

func noView(what string) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable, What: what + " are not known",
		Why: "this router has not read the state store yet", Try: "try again in a moment",
	}
}

// document reads a document; if there is none, it has no data and version 0.
func (o *Operator) document(ctx context.Context, class, name string) (statestore.Document, error) {
	set, err := o.conf.Store.Documents(ctx, class)
	if err != nil {
		return statestore.Document{}, err
	}
	d, _ := set.Find(name)
	return d, nil
}

// PutQueueTree writes the tree for a user. Percentages are written with their present amounts. If guarantees exceed
// the total, or children's exceed their parent's, the error is creel.ErrInvalidRequest. If the stored version is not
// the expected one, it is creel.ErrConflict.
func (o *Operator) PutQueueTree(ctx context.Context, user string, w QueueTreeWrite) (QueueTree, error) {
	if !w.DryRun {
		if err := o.allow(user, "change the federation's queue tree"); err != nil {
			return QueueTree{}, err
		}
	}
	data := w.Document
	if len(data) > 0 {
		tree, err := readTree(&w)
		if err != nil {
			return QueueTree{}, err
		}
		view := o.conf.View()
		tree.ResolveIn(view, 0)
		for _, label := range tree.Pools() {
			if err := resolved(view, tree, label); err != nil {
				return QueueTree{}, err
			}
		}
		if err := tree.CheckIn(view); err != nil {
			return QueueTree{}, err
		}
		if data, err = tree.Encode(); err != nil {
			return QueueTree{}, err
		}
	}
	for try := 1; ; try++ {
		is, err := o.document(ctx, rebalancer.TreeClass, rebalancer.TreeName)
		if err == nil && is.Authored() != w.Expect && (w.DryRun || is.Revises > 0) {
			err = statestore.OtherDocument(rebalancer.TreeClass, rebalancer.TreeName, is.Authored(), w.Expect)
		}
		if err != nil {
			return QueueTree{}, err
		}
		if w.DryRun {
			return o.compare(statestore.Document{Data: data, Version: is.Authored()})
		}
		expect := w.Expect
		if is.Authored() == w.Expect {
			expect = is.Version // the rebalancer may have recomputed its percentages
		}
		recording := o.conf.Events.Recording(ctx, statestore.Event{
			Kind: statestore.EventTree, Subject: string(creel.RootQueue), User: user, Before: string(is.Text),
			After: string(w.Text), Detail: w.Comment,
		})
		made, err := o.conf.Store.PutDocument(recording, statestore.DocumentWrite{
			Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: expect, Data: data, Text: w.Text,
			Author: user, Comment: w.Comment, Keep: statestore.KeptVersions,
		})
		if errors.Is(err, creel.ErrConflict) && made.Authored() == w.Expect && try < 3 {
			continue // recomputed meanwhile
		}
		if err != nil {
			return QueueTree{}, err
		}
		return o.compare(made)
	}
}

// readTree reads the document of a write. It rejects a text that is another document.
func readTree(w *QueueTreeWrite) (*rebalancer.Tree, error) {
	tree, err := rebalancer.ParseTree(w.Document, 0)
	if err != nil || len(w.Text) == 0 {
		w.Text = w.Document
		return tree, err
	}
	data, err := strictyaml.JSON(w.Text, rebalancer.TreeShape())
	if err == nil {
		var same *rebalancer.Tree
		if same, err = rebalancer.ParseTree(data, 0); err == nil && !reflect.DeepEqual(same, tree) {
			err = errors.New("its queues differ")
		}
	}
	if err != nil {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "the text of the queue tree is not its document", Why: err.Error(),
			Try: "send the document as text, or no text",
		}
	}
	return tree, nil
}

// resolved rejects percentages of nodes that do not exist.
func resolved(view *subcluster.View, tree *rebalancer.Tree, label string) error {
	if !rebalancer.Total(view.In(label)).IsZero() {
		return nil
	}
	for i := range tree.In(label).Queues {
		q := &tree.In(label).Queues[i]
		switch {
		case q.GuaranteePercent+q.MaximumPercent+q.UserLimitPercent == 0:
		case label == "":
			return noView("the sizes that percentages refer to")
		default:
			return &creel.Error{
				Kind: creel.ErrInvalidRequest, What: "the federation's queue tree is invalid",
				Why: fmt.Sprintf("%s has percentages of the nodes of label %s, and no subcluster reports such nodes",
					q.Path, label),
				Try: "give amounts, or label nodes first: see `creel node labels`",
			}
		}
	}
	return nil
}

// QueueTreeHistory lists versions, newest first, below before (0: from the newest).
func (o *Operator) QueueTreeHistory(ctx context.Context, before int64, limit int) ([]statestore.Document, error) {
	return o.conf.Store.DocumentHistory(ctx, rebalancer.TreeClass, rebalancer.TreeName, before, limit)
}

// Rebalancer is the rebalancer's state. It has the plan in force or the last one, the plan that this router would
// compute now, the pause of plans, and the last changes.
type Rebalancer struct {
	InForce   bool                  `json:"in_force"` // routers, proxies and members follow the plan
	Plan      *subcluster.Plan      `json:"plan,omitempty"`
	PlanAge   float64               `json:"plan_age_s,omitempty"`
	Next      *subcluster.Plan      `json:"next,omitempty"`
	Paused    *rebalancer.Pause     `json:"paused,omitempty"`
	Decisions []rebalancer.Decision `json:"decisions"`
	Escrow    []Escrow              `json:"escrow,omitempty"`
	// UserLimits is the same for users of queues with a user limit.
	UserLimits []Escrow `json:"user_limits,omitempty"`
	// Audited is the result of the leader's checks, if creel.rebalancer.audit.interval enables them.
	Audited *rebalancer.AuditReport `json:"audited,omitempty"`
	Note    string                  `json:"note,omitempty"` // set if the state store does not answer
}

// Escrow is one member's part of a queue's federation-wide maximum, or of a user's limit in the queue.
type Escrow struct {
	Queue   creel.QueuePath    `json:"queue"`
	Label   string             `json:"label,omitempty"` // of the nodes
	User    string             `json:"user,omitempty"`  // "*": each user without a record
	Maximum subcluster.Amounts `json:"maximum"`
	Member  creel.SubclusterID `json:"member"`
	Cap     subcluster.Amounts `json:"cap"`
	Needs   subcluster.Amounts `json:"needs"`
	Share   subcluster.Amounts `json:"share,omitempty"` // by the plan; nil for an even split
	// LeaseSeconds is the rest of the lease, by the store's clock; 0: it is over.
	LeaseSeconds float64 `json:"lease_s"`
	// Lasts is the reason why the part does not depend on a lease, for members running Hadoop's ResourceManager.
	Lasts string `json:"lasts,omitempty"`
}

// ReadEscrow reads the members' parts of maxima and of user limits.
func ReadEscrow(ctx context.Context, store interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}) (maxima, users []Escrow, err error) {
	set, err := store.Documents(ctx, rebalancer.EscrowClass)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range set.Documents {
		var r escrow.Record
		if err := json.Unmarshal(d.Data, &r); err != nil {
			return nil, nil, fmt.Errorf("the escrow record of %s cannot be read: %w", d.Name, err)
		}
		maxima = append(maxima, holders("", &r, set.Now)...)
	}
	if set, err = store.Documents(ctx, rebalancer.UsersClass); err != nil {
		return nil, nil, err
	}
	for _, d := range set.Documents {
		var r escrow.UsersRecord
		if err := json.Unmarshal(d.Data, &r); err != nil {
			return nil, nil, fmt.Errorf("the escrow records of users of %s cannot be read: %w", d.Name, err)
		}
		for user, of := range r.All {
			users = append(users, holders(user, of, set.Now)...)
		}
	}
	return maxima, users, nil
}

func holders(user string, r *escrow.Record, now time.Time) (out []Escrow) {
	label, amounts := r.Label, subcluster.AmountsOf
	if label == escrow.Opportunistic {
		label, amounts = "", containersOf
	}
	for _, h := range r.Holders {
		out = append(out, Escrow{
			r.Queue, label, user, amounts(r.Maximum), h.Member, amounts(h.Cap),
			amounts(h.Needs), amounts(h.Share), max(0, h.Ends.Sub(now)).Seconds(), h.Lasts(),
		})
	}
	return out
}

// containersOf returns a number of opportunistic containers. Such amounts have no other type.
func containersOf(r creel.Resource) subcluster.Amounts {
	return subcluster.Amounts{escrow.OpportunisticType: r.Get(escrow.OpportunisticType)}
}

// Breaches lists the invariants of the federation's queues that the leading rebalancer found broken in the last
// minutes, the newest first.
func (o *Operator) Breaches(ctx context.Context) ([]rebalancer.AuditBreach, error) {
	view := o.conf.View()
	if view == nil {
		return nil, nil
	}
	control, err := o.conf.Store.Documents(ctx, rebalancer.ControlClass)
	if err = without(ctx, err, "broken invariants"); err != nil {
		return nil, err
	}
	report, err := auditIn(control)
	if err != nil || report == nil {
		return nil, err
	}
	return report.Present(view.At), nil
}

// auditIn reads the result of the leader's checks, nil if there is none.
func auditIn(control statestore.DocumentSet) (*rebalancer.AuditReport, error) {
	d, ok := control.Find(rebalancer.AuditName)
	if !ok {
		return nil, nil
	}
	report := &rebalancer.AuditReport{}
	return report, json.Unmarshal(d.Data, report)
}

// Rebalancer reads the rebalancer's state.
func (o *Operator) Rebalancer(ctx context.Context) (*Rebalancer, error) {
	out := &Rebalancer{Decisions: []rebalancer.Decision{}}
	view := o.conf.View()
	if view == nil {
		return nil, noView("plans")
	}
	d, err := o.document(ctx, subcluster.PlanClass, subcluster.PlanName)
	if err = without(ctx, err, "the plan"); err != nil {
		return nil, err
	}
	if len(d.Data) > 0 {
		if out.Plan, err = subcluster.ParsePlan(d.Data, d.Version, d.Time); err != nil {
			return nil, err
		}
		out.InForce, out.PlanAge = view.At.Before(out.Plan.Ends()), max(0, view.At.Sub(out.Plan.At)).Seconds()
	}
	control, err := o.conf.Store.Documents(ctx, rebalancer.ControlClass)
	if err = without(ctx, err, "decisions"); err != nil {
		return nil, err
	}
	if d, ok := control.Find(rebalancer.PauseName); ok {
		out.Paused = &rebalancer.Pause{}
		if err := json.Unmarshal(d.Data, out.Paused); err != nil {
			return nil, err
		}
		out.Paused.At = d.Time
	}
	if d, ok := control.Find(rebalancer.DecisionsName); ok {
		var log rebalancer.Decisions
		if err := json.Unmarshal(d.Data, &log); err != nil {
			return nil, err
		}
		out.Decisions = log.Decisions
	}
	if out.Audited, err = auditIn(control); err != nil {
		return nil, err
	}
	out.Escrow, out.UserLimits, err = ReadEscrow(ctx, o.conf.Store)
	if err = without(ctx, err, "parts of maxima"); err != nil {
		return nil, err
	}
	d, err = o.document(ctx, rebalancer.TreeClass, rebalancer.TreeName)
	if err = without(ctx, err, "the federation's queue tree"); err != nil {
		return nil, err
	}
	tree := &rebalancer.Tree{}
	if len(d.Data) > 0 {
		if tree, err = rebalancer.ParseTree(d.Data, d.Version); err != nil {
			return nil, err
		}
	}
	slowStart := time.Duration(0)
	if out.Plan != nil {
		slowStart = time.Duration(out.Plan.SlowStartMS) * time.Millisecond
	}
	if pools := rebalancer.ReadPools(view, tree, out.Plan, slowStart); len(pools[0].Members) > 0 {
		out.Next = (&rebalancer.Planner{}).PlanPools(pools, out.Plan, rebalancer.PlanBounds{}, false, view.At)
	}
	return out, nil
}

// PauseRebalancer stops the publishing of plans, or allows it again.
func (o *Operator) PauseRebalancer(ctx context.Context, user string, paused bool, reason string) error {
	if err := o.allow(user, "pause or resume the rebalancer"); err != nil {
		return err
	}
	state := map[bool]string{true: "paused", false: "plans are published"}
	recording := o.conf.Events.Recording(ctx, statestore.Event{
		Kind: statestore.EventRebalance, Subject: string(creel.RootQueue), User: user, Before: state[!paused],
		After: state[paused], Detail: reason,
	})
	w := statestore.DocumentWrite{
		Class: rebalancer.ControlClass, Name: rebalancer.PauseName, Author: user, Comment: reason,
		Keep: statestore.KeptVersions,
	}
	if paused {
		var err error
		if w.Data, err = json.Marshal(rebalancer.Pause{By: user, Reason: reason}); err != nil {
			return err
		}
	}
	for range 3 {
		is, err := o.document(ctx, w.Class, w.Name)
		if err != nil {
			return err
		}
		w.Expect = is.Version
		if _, err = o.conf.Store.PutDocument(recording, w); !errors.Is(err, creel.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%w: another user paused or resumed it at the same time", creel.ErrConflict)
}
