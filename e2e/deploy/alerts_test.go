// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

const prometheus = root + "/deploy/prometheus"

// Every alert has a runbook, and the page names no other alert.
func TestEveryAlertHasARunbook(t *testing.T) {
	names := func(path, pattern string) (list []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(read(t, root, path)), -1) {
			list = append(list, m[1])
		}
		slices.Sort(list)
		return list
	}
	rules := names("deploy/prometheus/alerts.yml", `(?m)^ *- alert: (\w+)$`)
	for _, rule := range rules {
		link := "runbook_url: https://github.com/creelrm/creel/blob/main/docs/operations/alerts.md#" + strings.ToLower(rule)
		if len(names("deploy/prometheus/alerts.yml", "(?m)^ *("+regexp.QuoteMeta(link)+")$")) != 1 {
			t.Errorf("alert %s has no line %q", rule, link)
		}
	}
	sections := names("docs/operations/alerts.md", `(?m)^## (\w+)$`)
	if !slices.Equal(rules, sections) || len(rules) < 10 {
		t.Errorf("alerts %q, sections of docs/operations/alerts.md %q", rules, sections)
	}
}

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
