// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

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
// created is created.
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
		if _, err := m.amLabel(s, ""); err != nil {
			return err
		}
	}
	if err := d.place(m); err != nil {
		return err
	}
	// The home of a UAM, or of an application that moves here, has placed it already.
	placed := d.rule != "" || creel.IsUAM(s.Unmanaged, s.Name, s.Tags) || !s.Since.IsZero()
	d.unmapped = !placed && m.sched.MappedOnly(d.path)
	if d.queue == nil && d.create && !d.unmapped {
		if d.queue = m.sched.CreateQueue(d.path); d.queue != nil {
			d.path = d.queue.Path()
		}
	}
	largest := &m.sizes.Most
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
	d.path, d.create = creel.QueuePath(s.Queue), m.sched.MakesUndeclared()
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
	if d.queue = m.sched.Find(string(d.path)); d.queue != nil {
		d.path = d.queue.Path()
	}
	return nil
}

// checkQueue checks the user's rights and the label of the AM in the queue, and sets the priority there.
func (d *admission) checkQueue(m *Machine) error {
	s, q := d.s, d.queue
	if !m.MaySubmit(string(d.path), s.User, s.Groups) {
		return &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: fmt.Sprintf("User %s does not have permission to submit %s to queue %s", s.User, s.ID, d.path),
		}
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
	_, err := m.amLabel(s, d.path)
	return err
}
