// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/reference/metrics.md")

// TestEachMetricHasItsRow generates docs/reference/metrics.md from the metrics of a running federation.
func TestEachMetricHasItsRow(t *testing.T) {
	const file = "../../docs/reference/metrics.md"
	fed := small(t, 1)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	s.shows(exitOK, "run --containers 1 --memory 128m -- sleep 1", "SUCCEEDED")
	type metric struct {
		kind, help string
		labels     map[string]bool
		roles      []string
	}
	found := map[string]*metric{}
	for _, d := range []struct{ role, address string }{
		{"router", fed.Routers[0].Address("web")},
		{"rebalancer", fed.Rebalancers[0].Address("web")},
		{"proxy", fed.Proxies[0].Address("web")},
		{"rm", fed.RMs[0].Address("web")},
	} {
		answer, err := http.Get("http://" + d.address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", d.role, answer.Status, err)
		}
		kinds, helps := map[string]string{}, map[string]string{}
		for line := range strings.Lines(string(text)) {
			f := strings.SplitN(strings.TrimSpace(line), " ", 4)
			switch {
			case len(f) == 4 && f[1] == "HELP":
				helps[f[2]] = f[3]
			case len(f) == 4 && f[1] == "TYPE":
				kinds[f[2]] = f[3]
			}
		}
		for name, kind := range kinds {
			if !strings.HasPrefix(name, "creel_") {
				continue
			}
			if helps[name] == "" {
				t.Errorf("%s of the %s has no help", name, d.role)
			}
			if found[name] == nil {
				found[name] = &metric{kind: kind, help: helps[name], labels: map[string]bool{}}
			}
			m := found[name]
			if !slices.Contains(m.roles, d.role) {
				m.roles = append(m.roles, d.role)
			}
			for line := range strings.Lines(string(text)) {
				rest, is := strings.CutPrefix(line, name)
				rest, _ = strings.CutPrefix(rest, "_bucket")
				if inner, labelled := strings.CutPrefix(rest, "{"); is && labelled {
					for _, pair := range strings.Split(inner[:strings.LastIndex(inner, "}")], "\",") {
						if label, _, ok := strings.Cut(pair, "=\""); ok && label != "le" && label != "quantile" {
							m.labels[label] = true
						}
					}
				}
			}
		}
	}
	if len(found) < 60 {
		t.Fatalf("only %d metrics", len(found))
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\nLook up a metric of `/metrics` (Prometheus): its type, its labels and the daemons that have it. Metrics of Go and of the process, " +
		"which every daemon has, are left out.\n\nMade from a running federation: `go test ./cmd/creel -run TestEachMetricHasItsRow -update`.\n\n" +
		"| metric | type | labels | daemons | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := found[name]
		labels := "`" + strings.Join(slices.Sorted(maps.Keys(m.labels)), "`, `") + "`"
		if len(m.labels) == 0 {
			labels = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, m.kind, labels, strings.Join(m.roles, ", "), strings.ReplaceAll(m.help, "|", "\\|"))
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/reference/metrics.md lacks this row: go test ./cmd/creel -run TestEachMetricHasItsRow -update\n%s", line)
		}
	}
}
