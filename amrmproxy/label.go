// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
)

// An ask that names no node label has the label of its application's submission. The AM does not send that label. If
// members have labels, the proxy asks home for it before such asks are split; until home answers, they go only to
// home.

// appLabel is the label of the application's submission.
type appLabel struct {
	text  string
	given bool // the submission names it, which may be ""
	known bool // home has reported it
	asked bool // home was asked
}

// Labelled has the node label of the application's submission and its type, or the error of asking home.
type Labelled struct {
	Label string
	Given bool   // the submission names it, which may be ""
	Type  string // "" if not reported
	User  string // "" if not reported
	Err   error
}

func (Labelled) event() {}

// LabelOf reads the label and type of an application's submission from its report. Hadoop reports a missing label as
// a text.
func LabelOf(r *yarnpb.ApplicationReportProto) Labelled {
	out := Labelled{Type: r.GetApplicationType(), User: r.GetUser()}
	switch label := r.GetAppNodeLabelExpression(); label {
	case "", "<Not set>":
	case "<DEFAULT_PARTITION>":
		out.Given = true
	default:
		out.Label, out.Given = label, true
	}
	return out
}

// WantsLabel reports whether the session needs the application's label: members have labels, and home has not
// reported the application's.
func (s *Session) WantsLabel() bool { return s.phase <= phaseRunning && s.placer.wantsLabel() }

// wantsType reports whether the session needs the application's type, since home did not report it at the first
// launch. By the type the session decides whether UAMs stay and are renumbered.
func (s *Session) wantsType() bool {
	return s.phase == phaseRunning && s.record.Type == "" && len(s.record.UAMs) > 0
}

// wantsReport reports whether home must be asked for data that an AM does not send.
func (s *Session) wantsReport() bool {
	return s.WantsLabel() || s.wantsType() || s.phase == phaseRunning && s.local.wantsUser()
}

func (s *Session) onLabelled(e Labelled) {
	if s.record.Type == "" && e.Type != "" {
		s.record.Type = e.Type
		s.record.changed()
	}
	if s.local.issuer != nil && s.record.User == "" && e.User != "" { // only tokens need it, and each change is saved
		s.record.User = e.User
		s.record.changed()
	}
	if !s.WantsLabel() {
		return
	}
	s.placer.labelled(e)
}

// pendingTable has the number of containers that each member is asked for, by the label of their nodes. It is counted
// once for all groups that are split together. Counting it for each group would cost the square of the number of
// groups.
type pendingTable map[*link]map[string]int64

// beside returns the number of containers that a member is asked for on nodes of a label. elsewhere reports whether
// it is also asked for containers on other nodes, which its headroom includes.
func (t pendingTable) beside(label string, m *link) (n int64, elsewhere bool) {
	n, same := t[m][label]
	return n, len(t[m]) > 1 || len(t[m]) == 1 && !same
}

// wantsLabel reports whether members have labels, and home has not reported the application's.
func (p *placer) wantsLabel() bool {
	if p.label.known || p.view == nil {
		return false
	}
	for i := range p.view.Members {
		m := &p.view.Members[i]
		if len(m.Load.Labels.Partitions) > 0 && m.State != subcluster.StateDeregistered {
			return true
		}
	}
	return false
}

// labelled takes home's report of the application's label, or its failure. Until then asks without a label wait.
func (p *placer) labelled(e Labelled) {
	p.label.asked = true
	if e.Err == nil {
		p.label = appLabel{e.Label, e.Given, true, true}
	}
	for _, g := range p.ledger.groups {
		g.dirty = g.dirty || !g.named
	}
}

// labelOf returns the label of a group of asks, from the asks or from the application's submission. given reports
// whether one of the two names it.
func (p *placer) labelOf(g *group) (label string, given bool) {
	if g.named {
		return g.label, true
	}
	return p.label.text, p.label.given
}

// pendingTable counts the shares of all groups.
func (p *placer) pendingTable() pendingTable {
	t := pendingTable{}
	for _, g := range p.ledger.groups {
		p.count(t, g, 1)
	}
	return t
}

// count adds the shares of a group to a table, or subtracts them for a sign of -1.
func (p *placer) count(t pendingTable, g *group, sign int64) {
	p.ledger.visits++
	label, _ := p.labelOf(g)
	for m, c := range g.star().at {
		if c.share == 0 {
			continue
		}
		if t[m] == nil {
			t[m] = map[string]int64{}
		}
		if t[m][label] += sign * c.share; t[m][label] == 0 {
			delete(t[m], label)
		}
	}
}

// labelAt returns the label with which the UAM of a member is submitted, nil for none. With it asks without a label
// mean the same there as at home. A member without the label would refuse the UAM, and receives no such asks.
func (p *placer) labelAt(m *link) *string {
	if !p.label.given {
		return nil
	}
	if st, ok := p.view.Member(m.id); p.label.text != "" && (!ok || st.Load.Labels.Find(p.label.text) == nil) {
		return nil
	}
	return &p.label.text
}

// mislabelled reports whether a member is asked for a label that it no longer has.
func (p *placer) mislabelled(g *group) bool {
	label := g.label
	if !g.named {
		label = p.label.text
	}
	if label == "" {
		return false
	}
	for m, c := range g.star().at {
		st, ok := p.view.Member(m.id)
		if ok && c.share > 0 && st.Load.Labels.Known && st.Load.Labels.Find(label) == nil {
			return true
		}
	}
	return false
}
