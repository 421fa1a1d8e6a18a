// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/router/rest"
)

// While `creel demo` plays a recorded day, the first page charts the router's history of containers, submissions and
// wait times. The picture is the README's, of the whole demo.
func TestTheFirstPageOfADemo(t *testing.T) {
	hours, points := "9-10", 2
	if *screenshots {
		hours, points = "9-17", 12
	}
	demo := process.Start(t, process.Command{
		Name: "demo", Dir: t.TempDir(), Args: []string{rm.Binary(t), "demo", "--hours", hours, "--keep"},
	})
	demo.WaitLine(t, "dashboard http://")
	_, after, _ := strings.Cut(demo.Output(), "dashboard http://")
	web, _, _ := strings.Cut(after, "/")
	b := newBrowser(t)
	b.open("http://" + web + "/")
	b.untilLive()
	known := func() (n int) {
		for _, r := range api[rest.OverviewDoc](t, web, "/api/v1/overview").Rates {
			if r.Containers > 0 && r.Submissions > 0 && r.GrantP50 >= 0 && r.GrantP99 >= r.GrantP50 {
				n++
			}
		}
		return n
	}
	demo.Await(t, "the router to have kept some of the work", func() bool { return known() >= points })
	b.until("the charts show it", func() bool { return b.count(".plot:not([hidden]) canvas") >= 5 })
	if n := b.count(".still .chart polyline"); n < 3 {
		t.Errorf("%d lines remain for browsers without JavaScript", n)
	}
	if text := b.text("#sentence"); !strings.HasPrefix(text, "All 3 members are well.") {
		t.Errorf("the demo is told of as %q", text)
	}
	b.axe("overview of a demo")
	b.screenshot("demo")
}
