// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/creelrm/creel/router/rest"
)

// A container above every node, or above the queue's limit in each member, is rejected with the numbers, and nothing
// is submitted. One that fits now or later is submitted.
func TestRunRejectsContainersThatNeverFit(t *testing.T) {
	fed := smallWith(t, []string{
		"yarn.scheduler.maximum-allocation-mb=65536", "yarn.scheduler.maximum-allocation-vcores=64",
	})
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	eventually(t, "the limit and the nodes are reported", func() bool {
		res, err := http.Get(s.server + "/api/v1/fit?queue=default&memory_mb=5120&vcores=1")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var doc rest.FitDoc
		return json.NewDecoder(res.Body).Decode(&doc) == nil && !doc.Fits
	})
	before := s.run(exitOK, "app", "list", "-o", "name")
	for line, want := range map[string][]string{
		"run --memory 5g -- sleep 1": {
			"no member can run a container of 5120 MiB, 1 vcores in default", "largest node 4096 MiB, 4 vcores",
			"ask for at most 4096 MiB, 4 vcores (--memory, --vcores)",
		},
		"run --vcores 5 -- sleep 1":     {"a container of 1024 MiB, 5 vcores", "largest node 4096 MiB, 4 vcores"},
		"run --am-memory 5g -- sleep 1": {"a container of 5120 MiB, 1 vcores", "--am-memory"},
	} {
		s.shows(exitUsage, line, want...)
	}
	if after := s.run(exitOK, "app", "list", "-o", "name"); after != before {
		t.Errorf("a rejected run is submitted: %s", after)
	}
	s.shows(exitOK, "run --memory 4g --vcores 4 -- sleep 1", "SUCCEEDED")
}
