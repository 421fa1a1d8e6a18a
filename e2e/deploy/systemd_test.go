// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

// systemd's own tool accepts the units and rates the exposure of a compromised service as low.
func TestSystemdTakesTheUnits(t *testing.T) {
	analyze, err := programs.Path("systemd-analyze")
	if err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob(root + "/deploy/systemd/*.service")
	if err != nil || len(units) != 5 {
		t.Fatalf("units %q, %v", units, err)
	}
	dir := t.TempDir()
	for _, unit := range units {
		b, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// It looks for the program that it would start.
		text := strings.Replace(string(b), "/usr/bin/creel ", "/bin/true ", 1)
		path := filepath.Join(dir, filepath.Base(unit))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
		if err != nil || strings.Contains(string(out), filepath.Base(unit)+":") {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
		// In tenths of 0 (nothing) to 10 (everything); a unit without a word about it has 9.6.
		out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--threshold=20", path).
			CombinedOutput()
		if err != nil {
			t.Errorf("%s is too open: %v\n%s", unit, err, out)
		}
	}
}
