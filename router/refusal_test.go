// SPDX-License-Identifier: Apache-2.0

package router

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster"
)

// A member's refusals are the first sentence while it is alive, the worst kind first.
func TestRefusalOfLiveMemberIsJudged(t *testing.T) {
	view := func(state subcluster.State) *subcluster.View {
		return subcluster.NewView(time.Unix(0, 0), []subcluster.Status{
			{Member: subcluster.Member{ID: "east"}, State: state},
			{Member: subcluster.Member{ID: "west"}, State: subcluster.StateActive},
		}, nil)
	}
	var j Judge
	now := time.Unix(100, 0)
	j.Refused("east", []Refusal{
		{"refresh", "does not answer refreshes", "open its admin port"},
		{"impersonation", "refuses calls for other users: no rule.", "set hadoop.proxyuser.creel.groups there"},
	})
	s := j.Summarize(now, view(subcluster.StateActive), Tally{})
	if want := "east refuses calls for other users: no rule, and 1 more refusal."; s.State != Warn ||
		!strings.HasPrefix(s.Sentence, want) || s.Remedy != "set hadoop.proxyuser.creel.groups there" {
		t.Errorf("%+v, want %q", s, want)
	}
	if s := j.Summarize(now, view(subcluster.StateLost), Tally{}); strings.Contains(s.Sentence, "refuses") {
		t.Errorf("a lost member: %q", s.Sentence)
	}
	j.Refused("east", nil)
	if s := j.Summarize(now, view(subcluster.StateActive), Tally{}); s.State != Good {
		t.Errorf("after the repair: %+v", s)
	}
}

// The time of the call and the whole seconds of the answer are no difference of clocks.
func TestClocksBeyondToleranceAreRefused(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		theirs, took time.Duration
		want         string
	}{
		{0, 0, ""},
		{-time.Second, 0, ""},
		{30 * time.Second, 0, ""},
		{-31 * time.Second, 0, ""},
		{-10 * time.Second, time.Minute, ""},
		{95 * time.Second, 0, "has a clock 95 s ahead of this router's"},
		{-96 * time.Second, 0, "has a clock 95 s behind this router's"},
		{3 * time.Hour, time.Second, "has a clock 2 h ahead of this router's"},
	} {
		r, refused := JudgeClock(at.Add(c.theirs), at, at.Add(c.took))
		if r.Text != c.want || refused != (c.want != "") {
			t.Errorf("%v after %v: %q, want %q", c.theirs, c.took, r.Text, c.want)
		}
	}
}
