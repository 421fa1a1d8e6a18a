// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/creelrm/creel/app/demo"
)

// A few minutes of a recorded day come through two routers to a federation that knows nothing of it, and end there.
func TestARecordedDayIsSubmittedElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	out := s.run(0, "load", "day", "--server", s.server, "--server", "http://"+fed.Routers[1].Address("web"),
		"--hours", "9-9.1", "--speed", "600", "--nodes", "4")
	var r demo.Submission
	at := strings.Index(out, "{")
	if err := json.NewDecoder(strings.NewReader(out[max(at, 0):])).Decode(&r); err != nil || r.Accepted != r.Jobs || r.Jobs < 3 {
		t.Fatalf("%+v of\n%s%v", r, out, err)
	}
	ids := strings.Fields(s.run(0, "app", "list", "-o", "name"))
	if len(ids) != r.Jobs {
		t.Errorf("%d applications are listed, %d jobs were submitted", len(ids), r.Jobs)
	}
	for _, id := range ids {
		s.run(0, "app", "wait", "--for", "state=FINISHED", id)
	}
	s.run(exitUsage, "load", "day", "--server", "http://192.0.2.1:8089")
	s.run(exitUsage, "load", "day", "--hours", "9")
	s.run(exitUsage, "load", "day", "--speed", "0")
	for _, wrong := range []string{
		"submit --rate -3", "submit --client 192.0.2.1:1", "alloc --masters 0", "nodes --nodes 0", "rest x", "report --call no",
	} {
		s.run(exitUsage, append([]string{"load"}, strings.Fields(wrong)...)...)
	}
}
