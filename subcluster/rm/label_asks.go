// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// labelChecker finds the labels of asks in one queue and rejects invalid ones, like Hadoop's SchedulerUtils.
type labelChecker struct {
	m          *Machine
	queue      creel.QueuePath
	accessible []string
	byDefault  string
}

func (x *nodeLabels) checker(queue creel.QueuePath) *labelChecker {
	m := x.m
	c := &labelChecker{m: m, queue: queue}
	if q := m.sched.Tree().Leaf(queue); q != nil && m.sched.Policy().KnowsLabels() {
		c.accessible, c.byDefault = q.Labels(), q.DefaultLabel()
	}
	return c
}

// label returns the label of an ask at a place: its own, else the first default that is set, else the queue's. Only
// the ask of "*" may name one. A removed label is returned with the error, because earlier asks wait for it.
func (c *labelChecker) label(place string, say LabelExpression, defaults ...LabelExpression) (string, error) {
	anywhere := place == sched.AnyPlace || place == ""
	if !say.Given && anywhere {
		for _, d := range defaults {
			if d.Given {
				say = d
				break
			}
		}
		if !say.Given {
			say.Text = c.byDefault
		}
	}
	label := strings.TrimSpace(say.Text)
	switch {
	case label == "":
		return "", nil
	case !anywhere:
		return "", refusal(creel.ErrInvalidLabel, labelAtPlace, c.queue.Leaf(), place)
	case strings.Contains(label, "&&"):
		return "", refusal(creel.ErrInvalidLabel, severalLabels, c.queue.Leaf(), label)
	case !queues.Accesses(c.accessible, label):
		return "", refusal(creel.ErrInvalidLabel, labelInaccessible,
			c.queue.Leaf(), label, strings.Join(c.accessible, ","))
	}
	if _, known := c.m.labels.inForce.cluster[label]; !known {
		return label, refusal(creel.ErrInvalidLabel, labelUnknown, label)
	}
	return label, nil
}

// errLabelsUnused is the error of asks with a label while labels are off.
func errLabelsUnused() error {
	return refusal(creel.ErrInvalidLabel, labelsUnused)
}

// ofAM is the label of an application's AM in its queue.
func (x *nodeLabels) ofAM(s *Submission, queue creel.QueuePath) (string, error) {
	m := x.m
	if m.cfg.Labels == LabelsOff {
		if s.Label.Text != "" && s.Label.Text != "*" || s.AM.Label.Text != "" {
			return "", errLabelsUnused()
		}
		return "", nil
	}
	c := x.checker(queue)
	forAMs := LabelExpression{m.cfg.AMLabel, m.cfg.AMLabel != ""}
	label, err := c.label(sched.AnyPlace, s.AM.Label, s.Label, forAMs)
	if err != nil {
		return label, err
	}
	for i := range s.AMPlaces {
		if _, err := c.label(s.AMPlaces[i].ResourceName, s.AMPlaces[i].Label); err != nil {
			return "", err
		}
	}
	return label, nil
}

// ofAsks returns the labels of the asks of a call. Asks of hosts and racks have the label of the "*" ask at the
// same key, in the call or an earlier one.
func (x *nodeLabels) ofAsks(t *attempt, asks []Ask) ([]string, error) {
	out := x.asked[:0]
	if x.m.cfg.Labels == LabelsOff {
		for i := range asks {
			if l := asks[i].Label.Text; l != "" && l != "*" {
				return nil, errLabelsUnused()
			}
		}
		return out, nil
	}
	c := x.checker(t.app.Queue().Path())
	for i := range asks {
		label, err := c.label(asks[i].ResourceName, asks[i].Label, t.app.sub.Label)
		if err != nil {
			return nil, err
		}
		out = append(out, label)
	}
	for i := range asks {
		if k := &asks[i]; k.ResourceName != sched.AnyPlace && k.ResourceName != "" {
			out[i] = labelOfKey(t, asks, out, k)
		}
	}
	x.asked = out
	return out, nil
}

func labelOfKey(t *attempt, asks []Ask, labels []string, k *Ask) string {
	for i := range asks {
		x := &asks[i]
		if (x.ResourceName == sched.AnyPlace || x.ResourceName == "") && x.Priority == k.Priority &&
			x.AllocationRequestID == k.AllocationRequestID && x.ExecutionType == k.ExecutionType {
			return labels[i]
		}
	}
	return t.app.AskLabel(k.Priority, k.AllocationRequestID, k.ExecutionType)
}
