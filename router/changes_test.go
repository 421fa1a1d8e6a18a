// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

func TestChangesOfTheFederationAreEvents(t *testing.T) {
	var c router.Changes
	both := viewOf(subcluster.StateActive, subcluster.StateActive)
	frozen := viewOf(subcluster.StateActive, subcluster.StateLost)
	frozen.Freeze = &subcluster.Freeze{Reason: "it is dark"}
	at := time.Unix(1_800_000_000, 0)
	for _, o := range []router.Observation{
		{}, {View: both}, {View: both},
		{View: frozen, Open: map[creel.SubclusterID][]string{"a": {"read"}}}, {View: both},
	} {
		o.Now, at = at, at.Add(time.Second)
		c.Observe(o)
	}
	var texts []string
	for _, e := range c.Events() {
		texts = append(texts, e.Kind+" "+e.Text)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{
		"member a is active", "member b was active and is lost", "view the view froze: it is dark",
		"breaker calls of kind read to a are cut off", "breaker a is called again", "view the view is followed again",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no event %q in\n%s", want, all)
		}
	}
	if len(texts) != 8 || !strings.HasPrefix(texts[len(texts)-1], "member a is active") {
		t.Errorf("events, newest first:\n%s", all)
	}
}
