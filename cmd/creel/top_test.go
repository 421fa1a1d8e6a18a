// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTopListsLargestApplicationsFirst(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	for name, memory := range map[string]string{"small": "1024", "large": "3072", "middle": "2048"} {
		s.run(exitOK, "app", "submit", "--name", name, "--memory", memory, "--env", "CREEL_SIM_MS=60000", "--", "sleep", "60")
	}
	var doc topDoc
	eventually(t, "all have their AM", func() bool {
		if err := json.Unmarshal([]byte(s.run(exitOK, "top", "--limit", "2", "-o", "json")), &doc); err != nil {
			t.Fatal(err)
		}
		return doc.Overview.Sum.AllocatedMB >= 6144 && len(doc.Applications) == 2 && doc.Applications[0].MemoryMB >= 3072
	})
	if a := doc.Applications; a[0].Name != "large" || a[1].Name != "middle" || len(doc.Queues) > 2 || len(doc.Missing) > 0 {
		t.Errorf("top: %+v", doc)
	}
	for _, q := range doc.Queues {
		if q.Path == "root" {
			t.Errorf("a parent stands beside its children: %+v", doc.Queues)
		}
	}
	out := s.run(exitOK, "top", "--sort", "name")
	for _, want := range []string{"good ", "use ", "SUBCLUSTER", "root.default", "WAITS-FOR", "3.0 GiB"} {
		if !strings.Contains(out, want) {
			t.Errorf("top does not show %q:\n%s", want, out)
		}
	}
	if strings.Index(out, " large ") > strings.Index(out, " small ") {
		t.Errorf("they are not in the order of names:\n%s", out)
	}
	s.run(exitUsage, "top", "--limit", "0")
	s.run(exitUsage, "top", "--sort", "colour")
}
