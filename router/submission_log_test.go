// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
)

func TestTheLastSubmissionsOfAQueueAreRemembered(t *testing.T) {
	r := router.NewSubmissionLog(6)
	add := func(n int, queue creel.QueuePath) {
		r.Add(policies.Submission{Name: fmt.Sprint(n), Queue: queue}, "sc-1")
	}
	show := func(queue creel.QueuePath, most int) (out string) {
		for _, s := range r.Of(queue, most) {
			out += s.Name + " "
		}
		return out
	}
	if got := show("root.a", 9); got != "" {
		t.Errorf("of none: %q", got)
	}
	for n := range 5 {
		add(n, []creel.QueuePath{"root.a", "b", "root.x.b"}[n%3])
	}
	for n, want := range map[creel.QueuePath]string{"root.a": "0 3 ", "root.b": "1 4 ", "root.x.b": "1 2 4 "} {
		if got := show(n, 9); got != want {
			t.Errorf("of %s: %q, want %q", n, got, want)
		}
	}
	for n := 5; n < 20; n++ {
		add(n, "root.a")
	}
	if got := show("root.a", 9); got != "14 15 16 17 18 19 " {
		t.Errorf("the six that fit: %q", got)
	}
	if got := show("root.a", 2); got != "18 19 " {
		t.Errorf("the last two: %q", got)
	}
}
