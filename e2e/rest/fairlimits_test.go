// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// Both start with a maximum below the minimum of a queue, and show the same queues.
func TestFairMaximumBelowMinimumMatchesHadoop(t *testing.T) {
	allocations := filepath.Join(t.TempDir(), "fair-scheduler.xml")
	if err := os.WriteFile(allocations, []byte(`<?xml version="1.0"?>
<allocations>
  <queue name="a"><minResources>2048 mb,2 vcores</minResources><maxResources>1024 mb,1 vcores</maxResources></queue>
  <queue name="b"><minResources>1024 mb,1 vcores</minResources></queue>
</allocations>`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDuo(t, &configuration{}, "testdata/fair-trees-known.txt", rules(t, fairTreesKnownLines), hadoop.Conf{
		"yarn.resourcemanager.scheduler.class":   "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
		"yarn.scheduler.fair.allocation.file":    allocations,
		"yarn.scheduler.fair.update-interval-ms": "50",
	})
	d.compare("crossed.none")
	t.Logf("%d fields compared", d.fields)
}
