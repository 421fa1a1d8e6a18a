// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"os"
	"strings"
	"testing"
)

// Guide returns a command of docs/guide/migrate.md without the program's name. words are its beginning, and zooKeeper
// and conf replace the guide's servers and directory.
func Guide(t testing.TB, words, zooKeeper, conf string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		if strings.HasPrefix(line, words) {
			return strings.Fields(strings.NewReplacer("z1:2181,z2:2181,z3:2181", zooKeeper, "/etc/hadoop/conf", conf).
				Replace(strings.TrimPrefix(line, "creel ")))
		}
	}
	t.Fatalf("the guide has no line %q", words)
	return nil
}
