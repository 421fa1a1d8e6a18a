// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/statestore"
)

// Audit configures the leader's checks of the federation's invariants on the members' reports.
type Audit struct {
	Every  time.Duration                                         // between checks; 0: no checks
	Within time.Duration                                         // longest time that a temporary breach may last
	Tell   func(i invariants.Invariant, of string, breach error) // called for each breach, besides the log; may be nil
}

// auditor is the state of the leader's checks.
type auditor struct {
	reports invariants.Reports
	looked  time.Time            // by this process's clock
	told    map[string]time.Time // logged breaches, by invariant and subject
	audited rebalancer.AuditReport
}

// Audited returns the result of this process's checks, for metrics; nil before the first check.
func (l *Leader) Audited() *rebalancer.AuditReport { return l.audited.Load() }

// beginAudit resets the counts.
func (l *Leader) beginAudit() {
	a := &l.auditor
	a.told = map[string]time.Time{}
	a.reports = invariants.Reports{
		Within: l.Audit.Within, Step: l.Shaping.MostStep(), Band: l.Shaping.Band(), Linger: l.Terms.Linger,
	}
	a.reports.Tally.Tell = l.breach
	a.audited = rebalancer.AuditReport{Leader: l.Name, WithinMS: l.Audit.Within.Milliseconds()}
}

// audit makes one check.
func (l *Leader) audit(ctx context.Context) error {
	limit, cancel := context.WithTimeout(statestore.Under(ctx, l.lease), max(l.Every, time.Second))
	defer cancel()
	a := &l.auditor
	look := &invariants.Look{View: l.view, Tree: l.known, Plan: l.before}
	caps, err := l.Store.Documents(limit, rebalancer.EscrowClass)
	if err != nil {
		return err
	}
	users, err := l.Store.Documents(limit, rebalancer.UsersClass)
	if err != nil {
		return err
	}
	look.At = users.Now
	look.InForce = !l.lapsed && l.before != nil && look.At.Before(l.before.Ends())
	for i := range caps.Documents {
		r := &escrow.Record{}
		if err := json.Unmarshal(caps.Documents[i].Data, r); err != nil {
			return err
		}
		look.Caps = append(look.Caps, r)
	}
	for i := range users.Documents {
		r := &escrow.UsersRecord{}
		if err := json.Unmarshal(users.Documents[i].Data, r); err != nil {
			return err
		}
		look.Users = append(look.Users, r)
	}
	a.reports.Look(look)
	l.lapsed = false
	a.audited.At, a.audited.Looks = look.At, a.audited.Looks+1
	a.audited.Invariants = a.audited.Invariants[:0:0]
	for _, i := range invariants.Reported {
		a.audited.Invariants = append(a.audited.Invariants, rebalancer.InvariantCount{
			Name: string(i), Checked: a.reports.Tally.Checked[i], Broken: a.reports.Tally.Broken[i],
		})
	}
	out := a.audited
	out.Breaches = slices.Clone(out.Breaches)
	l.audited.Store(&out)
	return l.writeAudit(limit, &out)
}

// breach logs a breach, and adds it to the report.
func (l *Leader) breach(i invariants.Invariant, of string, breach error) {
	if l.Audit.Tell != nil {
		l.Audit.Tell(i, of, breach)
	}
	at := l.view.At
	key := string(i) + " " + of
	if last, told := l.auditor.told[key]; told && at.Sub(last) < rebalancer.BreachAgain {
		return
	}
	if len(l.auditor.told) > 10_000 {
		clear(l.auditor.told)
	}
	l.auditor.told[key] = at
	l.Log.Warn("invariant of the federation's queues broken",
		"invariant", string(i), "of", of, "breach", breach.Error(), "runbook", "docs/operations/alerts.md")
	l.record(context.Background(), statestore.Event{
		Kind: statestore.EventInvariant, Subject: of, After: string(i), Result: statestore.EventFailed,
		Detail: breach.Error(),
	})
	b := append(l.auditor.audited.Breaches, rebalancer.AuditBreach{
		At: at, Invariant: string(i), Of: of, Breach: breach.Error(),
	})
	l.auditor.audited.Breaches = b[max(0, len(b)-rebalancer.KeptBreaches):]
}

// writeAudit stores the result for operators.
func (l *Leader) writeAudit(ctx context.Context, a *rebalancer.AuditReport) error {
	set, err := l.Store.Documents(ctx, rebalancer.ControlClass)
	if err != nil {
		return err
	}
	is, _ := set.Find(rebalancer.AuditName)
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = l.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: rebalancer.ControlClass, Name: rebalancer.AuditName, Expect: is.Version, Data: data, Author: l.Name,
		Quiet: true,
	})
	if errors.Is(err, creel.ErrConflict) {
		return nil // the reply to an earlier write was lost; the next check writes the result again
	}
	return err
}
