// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each metric of the dashboard exists with the labels that the panel uses, each variable is defined, and the signals
// of members and queues link to the console.
func TestDashboardUsesMetricsThatExist(t *testing.T) {
	labels := map[string]string{"creel_store_operation_duration_seconds": "operation, result"} // with a store on Redis
	row := regexp.MustCompile("(?m)^\\| `(creel_\\w+)` \\| \\w+ \\| ([^|]*) \\|")
	for _, m := range row.FindAllStringSubmatch(string(read(t, root, "docs/reference/metrics.md")), -1) {
		labels[m[1]] = m[2]
	}
	var board struct {
		Templating struct{ List []struct{ Name string } }
		Links      []struct{ URL string }
		Panels     []struct {
			Title       string
			FieldConfig struct {
				Defaults struct{ Links []struct{ URL string } }
			}
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, root, "deploy/grafana/dashboards/creel.json"), &board); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
	}
	if want := []string{"federation", "member", "queue", "console"}; !slices.Equal(variables, want) {
		t.Errorf("variables %q, want %q", variables, want)
	}
	linked := 0
	metric := regexp.MustCompile(`\b(creel_\w+)\{([^}]*)\}`)
	for _, p := range board.Panels {
		for _, l := range p.FieldConfig.Defaults.Links {
			if linked++; !strings.HasPrefix(l.URL, "${console}/") {
				t.Errorf("%s links to %s", p.Title, l.URL)
			}
		}
		for _, target := range p.Targets {
			found := metric.FindAllStringSubmatch(target.Expr, -1)
			if len(found) == 0 || len(found) != strings.Count(target.Expr, "creel_") {
				t.Errorf("%s: not every metric has matchers: %s", p.Title, target.Expr)
			}
			for _, m := range found {
				name := m[1]
				if _, known := labels[name]; !known {
					name = regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
				}
				has, known := labels[name]
				if !known {
					t.Errorf("%s: there is no metric %s", p.Title, m[1])
				}
				for _, l := range regexp.MustCompile(`(\w+)\s*[=!]`).FindAllStringSubmatch(m[2], -1) {
					if l[1] != "federation" && !strings.Contains(has, l[1]) { // Prometheus adds that one
						t.Errorf("%s: %s has no label %s", p.Title, m[1], l[1])
					}
				}
				for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(m[2], -1) {
					if !slices.Contains(variables, v[1]) {
						t.Errorf("%s: there is no variable %s", p.Title, v[1])
					}
				}
			}
		}
	}
	if linked < 6 || len(board.Links) < 2 {
		t.Errorf("%d panels link to the console, and the dashboard %d times", linked, len(board.Links))
	}
}
