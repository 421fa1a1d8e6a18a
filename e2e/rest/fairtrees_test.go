// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

//go:embed testdata/fair-trees.txt
var fairTreeLines string

//go:embed testdata/fair-trees-known.txt
var fairTreesKnownLines string

// Many kinds of FairScheduler's files, each given to a real ResourceManager and to ours at
// their start: a queue that a file declares no more stays with Hadoop for a while.
func TestDocumentsOfManyFairTrees(t *testing.T) {
	const file = "testdata/fair-trees-known.txt"
	known := rules(t, fairTreesKnownLines)
	all := configurations(t, fairTreeLines)
	fields := 0
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			allocations := filepath.Join(t.TempDir(), "fair-scheduler.xml")
			text := "<?xml version=\"1.0\"?>\n<allocations>\n" + strings.Join(c.file, "\n") + "\n</allocations>\n"
			if err := os.WriteFile(allocations, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			d := startDuo(t, c, file, known, hadoop.Conf{
				"yarn.resourcemanager.scheduler.class":   "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
				"yarn.scheduler.fair.allocation.file":    allocations,
				"yarn.scheduler.fair.update-interval-ms": "50",
			}.With(c.conf))
			d.compare(c.name + ".none")
			d.both(func(s *configuredSystem) { s.addSized("127.0.0.2", 16384, 16) })
			d.await("a node", 1)
			d.playGiven(c)
			fields += d.fields
		})
	}
	unused(t, file, known)
	t.Logf("%d files, %d fields compared, %d rules", len(all), fields, len(known))
}
