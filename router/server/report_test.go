// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

// words is a report as text: "application text", "UAM text".
type words string

// wordCall asks members that have reports.
type wordCall struct {
	facts   ReportFacts
	reports map[creel.SubclusterID]words
	silent  []creel.SubclusterID
}

var errNone = errors.New("no such application")

func (c *wordCall) UAM(_ context.Context, m *remote.Member, _ creel.ApplicationID) (words, error) {
	if slices.Contains(c.silent, m.ID) {
		return "", &remote.Unavailable{Member: m.ID, Err: errors.New("silent")}
	}
	if r, ok := c.reports[m.ID]; ok {
		return r, nil
	}
	return "", errNone
}

func (c *wordCall) AtHome(ctx context.Context, home *remote.Member) (words, error) {
	return c.UAM(ctx, home, creel.ApplicationID{})
}

func (c *wordCall) Absent(err error) bool { return errors.Is(err, errNone) }

func (c *wordCall) Facts(words) ReportFacts { return c.facts }

func (c *wordCall) IsUAM(r words) bool { return strings.HasPrefix(string(r), "UAM") }

func (c *wordCall) Join(_ context.Context, own router.Part[words], uams, without []router.Part[words]) words {
	text := string(own.Value)
	for _, p := range uams {
		text += "+" + string(p.Value)
	}
	for _, p := range without {
		text += "-" + string(p.Member)
	}
	return words(text)
}

func (c *wordCall) Remembered(r words) []byte { return []byte(r) }

func (c *wordCall) Old(last OldReport) (words, bool) {
	return words("old " + string(last.Bytes) + " of " + string(last.Home)), true
}

func TestReportHasItsUAMs(t *testing.T) {
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	s := overMembers(t, "a", "b", "c")
	s.conf.Homes = &moved{steps: []step{{home: "a"}}}
	all := map[creel.SubclusterID]words{"a": "application", "b": "UAM of b", "c": "another"}
	ended := ReportFacts{State: creel.AppFinished, Logs: creel.LogRunning}
	for _, c := range []struct {
		name string
		call *wordCall
		want words
	}{
		{"an accepted application has no UAMs yet",
			&wordCall{facts: ReportFacts{State: creel.AppAccepted}, reports: all}, "application"},
		{"an ended one without logs needs none",
			&wordCall{facts: ReportFacts{State: creel.AppFinished}, reports: all}, "application"},
		{"a member without a recorded UAM may be silent",
			&wordCall{facts: ended, reports: all, silent: []creel.SubclusterID{"b"}}, "application"},
		{"another application of that id is left out", &wordCall{facts: ended, reports: all}, "application+UAM of b"},
		{"home is away", &wordCall{facts: ended, silent: []creel.SubclusterID{"a"}}, "old application+UAM of b of a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.uamCache = uamCache{}
			if got, err := Report(t.Context(), s, app, "ann", RPC, c.call); err != nil || got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
	c := &wordCall{silent: []creel.SubclusterID{"a"}}
	if _, err := Report(t.Context(), s, app, "bob", RPC, c); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("another user: %v", err)
	}
}
