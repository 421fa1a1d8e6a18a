// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/epochs"
	"github.com/creelrm/creel/subcluster"
)

// Mode is the end condition of a drain. In each mode the member gets no new applications, no new UAMs, and no new
// containers of applications that span into it.
type Mode string

// The modes.
const (
	// Stop has no end condition: present work continues.
	Stop Mode = "stop"
	// Finish ends when no application and no container is left there.
	Finish Mode = "finish"
	// Move is Finish, and also moves applications that wait there to other members.
	Move Mode = "move"
)

// ParseMode reads a mode; "" is Stop.
func ParseMode(text string) (Mode, error) {
	switch text {
	case "", string(Stop):
		return Stop, nil
	case string(Finish), string(Move):
		return Mode(text), nil
	}
	return "", &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: fmt.Sprintf("unknown drain mode %.40q", text),
		Try:  "stop, finish or move",
	}
}

// DrainProgress is the progress of a drain. It is empty for a member that is not being drained.
type DrainProgress struct {
	Mode   Mode   `json:"mode"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// The member's counts at its last heartbeat.
	Running    int64 `json:"running"`
	Waiting    int64 `json:"waiting"`
	Containers int64 `json:"containers"`
	// Done reports whether no application and no container is left. The member must be alive, and the drain must have
	// lasted for settle.
	Done bool `json:"done"`
}

// settle is the time after the start of a drain until a member's reports include all work that was on its way. It
// covers a router's next read of the store (2 s), a submission forwarded meanwhile, and the heartbeat that reports
// it. It exceeds the 12 s in which creel's ResourceManager reads the drain without a change notice. After these it
// rejects submissions from a router that was paused.
const settle = 15 * time.Second

// The store has one line about a drain: "finish, by alice: new disks". A text of another form is the reason of a
// Stop.
func drainLine(mode Mode, user, reason string) string {
	line := string(mode)
	if user != "" {
		line += ", by " + user
	}
	if reason != "" {
		line += ": " + reason
	}
	return line
}

// DrainOf returns the progress of a member's drain, nil if it is not being drained.
func DrainOf(view *subcluster.View, m *subcluster.Status) *DrainProgress {
	if m.Draining == "" {
		return nil
	}
	head, reason, _ := strings.Cut(m.Draining, ": ")
	word, by, _ := strings.Cut(head, ", by ")
	d := &DrainProgress{Mode: Mode(word), By: by, Reason: reason}
	if d.Mode != Stop && d.Mode != Finish && d.Mode != Move {
		d.Mode, d.By, d.Reason = Stop, "", m.Draining
	}
	load := &m.Load.Metrics
	d.Running, d.Waiting, d.Containers = load.AppsRunning, load.AppsPending, load.ContainersAllocated
	d.Done = m.State == subcluster.StateDraining && view.At.Sub(m.Since) >= settle &&
		d.Running+d.Waiting+d.Containers == 0
	return d
}

// Drain stops new work for a member. A second call changes mode and reason.
func (o *Operator) Drain(ctx context.Context, user string, id creel.SubclusterID, mode Mode, reason string) error {
	if err := o.allow(user, "drain "+string(id)); err != nil {
		return err
	}
	if strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' }) || strings.Contains(user, ": ") {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the reason of a drain is one line of text",
			Try:  "leave out line breaks",
		}
	}
	before, err := o.record(ctx, id)
	if err != nil {
		return err
	}
	line := drainLine(mode, user, reason)
	ctx = o.conf.Events.Recording(ctx, statestore.Event{
		Kind: statestore.EventDrain, Subject: string(id), User: user, Before: before.Draining, After: string(mode),
		Detail: reason,
	})
	return o.conf.Store.Drain(ctx, id, line)
}

// Undrain makes a member accept new work again.
func (o *Operator) Undrain(ctx context.Context, user string, id creel.SubclusterID) error {
	if err := o.allow(user, "end the drain of "+string(id)); err != nil {
		return err
	}
	before, err := o.record(ctx, id)
	if err != nil {
		return err
	}
	ctx = o.conf.Events.Recording(ctx, statestore.Event{
		Kind: statestore.EventDrain, Subject: string(id), User: user, Before: before.Draining, After: "accepts work",
	})
	return o.conf.Store.Drain(ctx, id, "")
}

// Deregister deregisters a member that stopped without deregistering, so that no process waits for it. For a member
// that still sends heartbeats it fails with creel.ErrConflict: the next heartbeat would register it again.
func (o *Operator) Deregister(ctx context.Context, user string, id creel.SubclusterID) error {
	if err := o.allow(user, "deregister "+string(id)); err != nil {
		return err
	}
	if err := o.registered(ctx, id); err != nil {
		return err
	}
	m, ok := o.conf.View().Member(id)
	if !ok {
		return noMember(id)
	}
	if m.State.Alive() {
		return &creel.Error{
			Kind: creel.ErrConflict,
			What: fmt.Sprintf("subcluster %s is not deregistered", id),
			Why: fmt.Sprintf(
				"its last heartbeat came %s ago, and with the next it would register again",
				units.Age(m.Age.Seconds()),
			),
			Try: "stop its ResourceManager or agent, or drain it: `creel subcluster drain " + string(id) + "`",
		}
	}
	ctx = o.conf.Events.Recording(ctx, statestore.Event{
		Kind: statestore.EventMember, Subject: string(id), User: user, Before: m.State.String(),
		After: "deregistered",
	})
	return o.conf.Store.Deregister(ctx, id, m.Epoch)
}

// Silent returns the members that Deregister would accept, sorted by id: they sent no heartbeat within their lease
// and are not deregistered.
func (o *Operator) Silent() (ids []creel.SubclusterID) {
	view := o.conf.View()
	if view == nil {
		return nil
	}
	for i := range view.Members {
		switch view.Members[i].State {
		case subcluster.StateSuspect, subcluster.StateLost:
			ids = append(ids, view.Members[i].ID)
		}
	}
	return ids
}

// Remove deletes the record of a member that has deregistered, or was silent for three leases. The home records of
// its applications stay for a while, so that they are found if the member returns. Another call completes a removal
// that stopped halfway.
func (o *Operator) Remove(ctx context.Context, user string, id creel.SubclusterID) error {
	if err := o.allow(user, "remove "+string(id)); err != nil {
		return err
	}
	err := o.registered(ctx, id)
	if errors.Is(err, creel.ErrSubclusterNotFound) {
		left, failed := o.leftOf(ctx, id)
		if failed != nil {
			return failed
		}
		if !left {
			return err
		}
	} else if err != nil {
		return err
	} else if err := o.conf.Store.RemoveMember(o.conf.Events.Recording(ctx, statestore.Event{
		Kind: statestore.EventMember, Subject: string(id), User: user, After: "removed",
	}), id); err != nil {
		return err
	}
	if err := statestore.NoteRemoval(ctx, o.conf.Store, id, user); err != nil {
		return err
	}
	return epochs.Forget(ctx, o.conf.Store, id)
}

// leftOf reports whether the store has a removal note of a member, or home records of its applications.
func (o *Operator) leftOf(ctx context.Context, id creel.SubclusterID) (bool, error) {
	gone, err := statestore.RemovalsIn(ctx, o.conf.Store)
	if _, noted := gone.Find(string(id)); noted || err != nil {
		return noted, err
	}
	homes, _, err := o.conf.Store.HomesAt(ctx, id, "", 1)
	return len(homes) > 0, err
}

// registered returns creel.ErrSubclusterNotFound for a member without a record in the store.
func (o *Operator) registered(ctx context.Context, id creel.SubclusterID) error {
	_, err := o.record(ctx, id)
	return err
}

// record returns a member's record in the store.
func (o *Operator) record(ctx context.Context, id creel.SubclusterID) (none subcluster.Record, err error) {
	if err := subcluster.ValidID(id); err != nil {
		return none, err
	}
	records, err := o.conf.Store.Records(ctx)
	if err != nil {
		return none, err
	}
	for i := range records.Members {
		if records.Members[i].ID == id {
			return records.Members[i], nil
		}
	}
	return none, noMember(id)
}

func noMember(id creel.SubclusterID) error {
	return &creel.Error{
		Kind: creel.ErrSubclusterNotFound,
		What: fmt.Sprintf("there is no subcluster %.80q", string(id)),
		Try:  "see `creel subcluster list`",
	}
}
