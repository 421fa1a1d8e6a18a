// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os/exec"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

const prometheus = root + "/deploy/prometheus"

// Prometheus' own tool reads the alert rules and the configuration, and holds the
// rules against the recorded series beside them.
func TestAlertRulesHoldAgainstRecordedSeries(t *testing.T) {
	promtool, err := programs.Path("promtool")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"},
		{"test", "rules", "alerts_test.yml"},
	} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = prometheus
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
