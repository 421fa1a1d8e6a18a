// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
)

// An ask that names no node label has that of its application's submission, which an AM
// does not tell. Where members have labels the proxy asks home for it before such asks
// are split; while home does not tell, they are home's alone.

// appLabel is the label of the application's submission.
type appLabel struct {
	text  string
	given bool // the submission names it, also none
	known bool // home has told
	asked bool // home was asked, and may not have told
}

// Labelled brings the node label of the application's submission and its type, or why home
// did not tell them.
type Labelled struct {
	Label string
	Given bool   // the submission names it, also none
	Type  string // "" where it is not told
	Err   error
}

func (Labelled) event() {}

// LabelOf reads the label and type of an application's submission in its report, where
// Hadoop writes words for no label.
func LabelOf(r *yarnpb.ApplicationReportProto) Labelled {
	out := Labelled{Type: r.GetApplicationType()}
	switch label := r.GetAppNodeLabelExpression(); label {
	case "", "<Not set>":
	case "<DEFAULT_PARTITION>":
		out.Given = true
	default:
		out.Label, out.Given = label, true
	}
	return out
}

// WantsLabel reports whether the session has to know the application's label: members
// have labels, and home has not told it.
func (s *Session) WantsLabel() bool {
	if s.label.known || s.view == nil || s.phase > phaseRunning {
		return false
	}
	for i := range s.view.Members {
		m := &s.view.Members[i]
		if len(m.Load.Labels.Partitions) > 0 && m.State != subcluster.StateDeregistered {
			return true
		}
	}
	return false
}

// wantsType reports whether the session has to know the application's type, by which its
// UAMs stay and are made again: home did not tell it when the first was launched.
func (s *Session) wantsType() bool {
	return s.phase == phaseRunning && s.record.Type == "" && len(s.record.UAMs) > 0
}

// wantsReport reports whether home is to be asked for what an AM does not tell.
func (s *Session) wantsReport() bool { return s.WantsLabel() || s.wantsType() }

func (s *Session) onLabelled(e Labelled) {
	if s.record.Type == "" && e.Type != "" {
		s.record.Type = e.Type
		s.changed()
	}
	if !s.WantsLabel() {
		return
	}
	s.label.asked = true
	if e.Err == nil {
		s.label = appLabel{e.Label, e.Given, true, true}
	}
	for _, g := range s.ledger.groups {
		g.dirty = g.dirty || !g.named
	}
}

// labelOf is the label that a group of asks has, by its own word or its application's, and whether one of
// the two names it.
func (s *Session) labelOf(g *group) (label string, given bool) {
	if g.named {
		return g.label, true
	}
	return s.label.text, s.label.given
}

// pendingBeside is how many containers a member is asked for beside a group, which is placed
// anew, on nodes of the same label. elsewhere reports whether there are others, of which the
// member's headroom has the room, too.
func (s *Session) pendingBeside(g *group, m *member) (n int64, elsewhere bool) {
	label, _ := s.labelOf(g)
	for _, o := range s.ledger.groups {
		c := o.star().at[m]
		if c == nil || c.share == 0 || o == g {
			continue
		}
		if of, _ := s.labelOf(o); of == label {
			n += c.share
		} else {
			elsewhere = true
		}
	}
	return n, elsewhere
}

// labelAt is the label that the UAM of a member has of its application, so that asks
// without one mean there what they mean at home; nil for none. A member that does not
// have it would refuse the UAM, and gets no such asks.
func (s *Session) labelAt(m *member) *string {
	if !s.label.given {
		return nil
	}
	if st, ok := s.view.Member(m.id); s.label.text != "" && (!ok || st.Load.Labels.Find(s.label.text) == nil) {
		return nil
	}
	return &s.label.text
}

// mislabelled reports whether a member is asked for a label that it does not have any more.
func (s *Session) mislabelled(g *group) bool {
	label := g.label
	if !g.named {
		label = s.label.text
	}
	if label == "" {
		return false
	}
	for m, c := range g.star().at {
		st, ok := s.view.Member(m.id)
		if ok && c.share > 0 && st.Load.Labels.Known && st.Load.Labels.Find(label) == nil {
			return true
		}
	}
	return false
}
