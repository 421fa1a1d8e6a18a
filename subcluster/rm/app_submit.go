// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Submit accepts an application. A known application stays unchanged, so that a client may repeat its call; the
// exception is a UAM that restarts (Begins). A submission that placement, an ACL or its own content forbids is an
// error and leaves no trace. If only its queue cannot accept it, it becomes a failed application, as in YARN.
func (m *Machine) Submit(now time.Time, s *Submission) error {
	m.at(now)
	d := admission{s: s, before: m.apps.byID[s.ID]}
	refused := m.disowned.refuses(s)
	if a := d.before; a != nil && !a.beginsAgain(s) {
		if refused != nil && a.uam() {
			return refused // its router must not treat this ResourceManager as the home
		}
		return d.repeat()
	}
	if refused != nil {
		return refused
	}
	if err := d.check(m); err != nil {
		return err
	}
	m.apps.admit(&d)
	m.settle()
	return nil
}

// admit applies a checked submission.
func (l *appLife) admit(d *admission) {
	m := l.m
	s, q := d.s, d.queue
	a := &app{id: s.ID, sub: s, path: d.path, rule: d.rule, unmapped: d.unmapped, submitted: m.now}
	if d.before != nil {
		a.issued, a.issuedLow = d.before.issued, d.before.issuedLow
	} else {
		a.issued, a.issuedLow = l.issued.of(a.id), l.issued.lowOf(a.id)
	}
	if since := nanos(s.Since); since > 0 && since < m.now && s.Claim > 0 {
		a.submitted = since
	}
	d.enlist(m, a)
	l.counted(a, q, func(c *sched.AppCounts) { c.Submitted++ })
	if a.isUAM() {
		l.uams[a] = struct{}{}
	}
	l.setLifetime(a, q)
	a.state = appNewSaving
	if why := l.refusal(a, q); why != "" {
		l.refuse(a, q, why) // its first record has the end, so that no restart decides again
		return
	}
	l.save(a, func() {
		if a.state == appNewSaving {
			a.state = appSubmitted
			l.accept(a)
		}
	})
}

// An admission is a submission checked against the queues and limits of this moment. Machine.admit applies it.
type admission struct {
	s      *Submission
	before *app // the application of this id: an ended UAM that restarts; nil: none

	path     creel.QueuePath
	rule     string       // the placement rule that chose the queue; "": none
	create   bool         // the queue may be created
	unmapped bool         // the queue accepts mapped submissions only, and no rule mapped this one
	queue    *sched.Queue // nil: it does not exist, and the application fails
	priority int32
	am       *amounts.Size // of the AM's container; nil for an unmanaged application
}

// enlist adds the application, in the place of the one that it follows. A recovered one was checked before.
func (d *admission) enlist(m *Machine, a *app) {
	m.sched.AddApp(&a.App, a.id, a, d.am, m.sched.Policy().CapPriority(d.priority))
	a.SetTags(a.sub.Tags)
	m.apps.byID[a.id] = a
	if d.before != nil {
		m.apps.succeed(d.before, a)
	} else {
		m.apps.list = append(m.apps.list, a)
	}
}

// repeat answers a repeated submission of a known application.
func (d *admission) repeat() error {
	if owner := d.before.sub.User; owner != d.s.User {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "cannot submit " + d.s.ID.String() + " as " + d.s.User,
			Why:  "the application of this id belongs to " + owner,
			Try:  "get your own id with getNewApplication",
		}
	}
	return nil
}

// check decides the queue, the priority and the size of the AM. An error rejects the submission. A queue that may be
// created is created, unless the submission is rejected.
func (d *admission) check(m *Machine) error {
	s := d.s
	if s.ID.IsZero() || s.User == "" {
		return invalid(
			"invalid submission of "+s.ID.String(),
			"it has no application id or no user",
			"get an id from getNewApplication",
		)
	}
	if m.cfg.Labels == LabelsOff {
		if _, err := m.labels.ofAM(s, ""); err != nil {
			return err
		}
	}
	if err := d.place(m); err != nil {
		return err
	}
	// The home of a UAM, or of an application that moves here, has placed it already.
	placed := d.rule != "" || creel.IsUAM(s.Unmanaged, s.Name, s.Tags) || !s.Since.IsZero()
	d.unmapped = !placed && m.sched.Tree().MappedOnly(d.path)
	created := false
	if d.queue == nil && d.create && !d.unmapped {
		if d.queue = m.sched.CreateQueue(d.path); d.queue != nil {
			d.path, created = d.queue.Path(), true
		}
	}
	err := d.fit(m)
	if err != nil && created {
		m.sched.RemoveMade(d.queue)
	}
	return err
}

// fit decides the priority and the size of the AM in the queue.
func (d *admission) fit(m *Machine) error {
	s, largest := d.s, &m.sizes.Most
	d.priority = s.Priority
	if d.queue != nil {
		largest = d.queue.Largest()
		if err := d.checkQueue(m); err != nil {
			return err
		}
	}
	if s.Unmanaged {
		return nil
	}
	v, err := m.sizes.Normalize(s.AM.Resource, largest)
	if err != nil {
		return err
	}
	d.am = m.sizes.Of(v)
	return nil
}

// place sets the queue by the placement rules.
func (d *admission) place(m *Machine) error {
	s := d.s
	d.path, d.create = creel.QueuePath(s.Queue), m.sched.Policy().MakesUndeclared()
	if m.cfg.Placement != nil {
		request := queues.PlacementRequest{
			Application: s.ID, User: s.User, Groups: s.Groups, Name: s.Name, Type: s.Type, Tags: s.Tags, Queue: s.Queue,
		}
		p, err := m.cfg.Placement.Place(request, m.isLeaf)
		if err != nil {
			d.path = ""
			return err
		}
		if p.Queue != "" {
			d.path, d.rule, d.create = p.Queue, p.Rule, p.Create
		}
	}
	if d.path == "" {
		d.path = "default"
	}
	if d.queue = m.sched.Tree().Find(string(d.path)); d.queue != nil {
		d.path = d.queue.Path()
	}
	return nil
}

// checkQueue checks the user's rights and the label of the AM in the queue, and sets the priority there.
func (d *admission) checkQueue(m *Machine) error {
	s, q := d.s, d.queue
	checked := m.cfg.ACLs || !m.sched.Policy().ListsNeedACLs()
	if checked && !m.MaySubmit(string(d.path), s.User, s.Groups) {
		return refusal(creel.ErrNotPermitted, submissionForbidden, s.User, s.ID, d.path)
	}
	if !s.HasPriority {
		d.priority = q.Spec().DefaultPriorityOf(s.User, s.Groups, m.cfg.ACLs)
	}
	if p, ok := m.Spec().WorkflowPriority(s.Tags, q.Path()); ok {
		d.priority = p
	}
	if err := m.MayHavePriority(s.ID, q.Path(), s.User, s.Groups, d.priority); err != nil {
		return err
	}
	if s.Unmanaged {
		return nil
	}
	_, err := m.labels.ofAM(s, d.path)
	return err
}

// QueueFor returns the queue in which a submission would run, whether or not it exists. The error is that of a rule
// that rejects the submission.
func (r Reader) QueueFor(s *Submission) (creel.QueuePath, error) {
	d := admission{s: s}
	err := d.place(r.m)
	return d.path, err
}

// maxBeginnings limits the attempts of a UAM that restarts again and again: each attempt stays in its record.
const maxBeginnings = 1000

// Begins reports whether a submission would start something: its application is unknown, or is an ended UAM that the
// submission restarts.
func (r Reader) Begins(s *Submission) bool {
	a, known := r.m.apps.byID[s.ID]
	return !known || a.beginsAgain(s)
}

// beginsAgain reports whether s starts the next attempt of an ended UAM. A proxy may end an idle UAM, or lose it, and
// later need the member again. The submission names the ended attempt that the proxy has seen, so that a late or
// repeated submission starts nothing. Hadoop's ResourceManagers accept an id only once.
func (a *app) beginsAgain(s *Submission) bool {
	return s.After > 0 && int(s.After) == len(a.attempts) && len(a.attempts) < maxBeginnings &&
		s.Unmanaged && s.Claim == 0 && a.uam() && a.state.ended() && !a.InQueue() && s.User == a.sub.User
}

// succeed replaces the ended UAM with the same id by a new one. Attempt numbers continue, so that no container reuses
// an earlier id. No containers are passed on: those of the ended UAM have ended with it.
func (l *appLife) succeed(before, a *app) {
	a.attempts = before.attempts
	for _, t := range a.attempts {
		t.app, t.done = a, nil
	}
	if i := slices.Index(l.ended, before); i >= 0 {
		l.ended = slices.Delete(l.ended, i, i+1)
	}
	if i := slices.Index(l.list, before); i >= 0 {
		l.list[i] = a
	}
}

func (m *Machine) isLeaf(p creel.QueuePath) bool {
	return m.sched.Tree().Leaf(p) != nil
}

// accept brings an application into its queue, or fails it with the reason. Its queue may have changed or filled up
// since its submission.
func (l *appLife) accept(a *app) {
	m := l.m
	q := m.sched.Tree().Find(string(a.path))
	if why := l.refusal(a, q); why != "" {
		l.refuse(a, q, why)
		return
	}
	l.enter(a, q)
	a.state = appAccepted
	m.attempts.start(a)
}

// refusal returns the reason why a queue rejects an application, "" if it accepts it. A nil queue does not exist.
func (l *appLife) refusal(a *app, q *sched.Queue) string {
	switch {
	case a.unmapped:
		return fmt.Sprintf(submissionUnmapped, a.id, a.sub.User, a.path)
	case q == nil:
		return fmt.Sprintf(submittedNowhere, a.id, a.sub.User, a.path)
	}
	return q.Refuses(a.id, a.sub.User)
}

func (l *appLife) refuse(a *app, q *sched.Queue, why string) {
	a.refused = true
	l.counted(a, q, func(c *sched.AppCounts) { c.Submitted-- })
	l.finish(a, appFailed, creel.FinalFailed, why)
}

func (l *appLife) enter(a *app, q *sched.Queue) {
	a.path = q.Path()
	l.m.sched.Enter(&a.App, q, a.sub.User)
}
