// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/app/sim/compare"
	"github.com/creelrm/creel/e2e/rm"
)

func TestMain(m *testing.M) { rm.Main(m) }

// section is the report's text below a heading of a queue or a member.
type section struct {
	Rows  [][]string // cells of the table
	Top   float64    // of the chart, in percent
	Lines [][]float64
}

// sections reads the report as it stands in the browser.
func sections(b *browser) map[string]section {
	b.t.Helper()
	text := b.eval(`JSON.stringify(Object.fromEntries([...document.querySelectorAll("h3")].map(h => {
		const table = h.nextElementSibling, figure = table.nextElementSibling;
		return [h.innerText, {
			Rows: [...table.querySelectorAll("tbody tr")].map(r => [...r.cells].map(c => c.innerText)),
			Top: parseFloat(figure.querySelector("p").innerText.match(/[0-9.]+/)[0]),
			Lines: [...figure.querySelectorAll("polyline")].map(l => [...l.points].map(p => p.y)),
		}]; })))`)
	var out map[string]section
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// The report of two runs is one file: Chromium opens it without a network and without a
// complaint, and each figure and line in it is the one that the JSON of the same command has.
func TestTheReportOfTwoSimulatedRuns(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	page := filepath.Join(dir, "report.html")
	cmd := exec.CommandContext(t.Context(), rm.Binary(t), "sim", "--hours", "9-9.2", "--nodes", "10", "--cores", "4",
		"--policy", write("one <b>&.json", `{"home":{"policy":"weighted","weights":{"sc-2":1}},"split":{"policy":"home"}}`),
		"--against", write("balanced.json", `{"home":{"policy":"balanced"}}`), "--html", page, "-o", "json")
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR=")
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Notes []string      `json:"notes"`
		Runs  []compare.Run `json:"runs"`
	}
	if err := json.Unmarshal(printed, &doc); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if out := regexp.MustCompile(`(?i)(src|href|url\(|@import|<script|<link)[^>]{0,80}`).Find(source); out != nil {
		t.Errorf("the page needs something else: %s", out)
	}

	b := newBrowser(t)
	b.open("file://" + page)
	if title := b.text("h1"); title != doc.Runs[0].Name+" against "+doc.Runs[1].Name {
		t.Errorf("its title is %q", title)
	}
	if n := b.eval(`String(performance.getEntriesByType("resource").length)`); n != "0" {
		t.Errorf("it has loaded %s other files", n)
	}
	found := sections(b)
	if len(found) != 6 || len(doc.Runs) != 2 {
		t.Fatalf("%d runs; the page has %v", len(doc.Runs), found)
	}
	percent := func(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }
	same := func(name string, run int, cells ...string) {
		t.Helper()
		cells = append([]string{doc.Runs[run].Name}, cells...)
		if rows := found[name].Rows; len(rows) != 2 || strings.Join(rows[run], "|") != strings.Join(cells, "|") {
			t.Errorf("%s: the page has %q, and the JSON %q in line %d", name, rows, cells, run)
		}
	}
	line := func(name string, i int, values []float64) {
		t.Helper()
		s := found[name]
		if len(s.Lines) <= i || len(s.Lines[i]) != len(values) || len(values) < 10 {
			t.Fatalf("%s: line %d of %d", name, i, len(s.Lines))
		}
		for j, y := range s.Lines[i] { // 4 of 120 above and below
			if got := s.Top * (116 - y) / 112; math.Abs(got-100*values[j]) > 0.005*s.Top+0.1 {
				t.Errorf("%s: point %d of line %d is at %.2f%%, and the JSON says %s", name, j, i, got, percent(values[j]))
				return
			}
		}
	}
	all := b.rows("table") // of the first, and of all that follow
	for i, r := range doc.Runs {
		want := []string{r.Name, "good", percent(r.Utilisation), strconv.FormatInt(r.WorkLost.Containers, 10), "0.00", "0.00"}
		if strings.Join(all[i], "|") != strings.Join(want, "|") {
			t.Errorf("%q, want %q", all[i], want)
		}
		for _, q := range r.Queues {
			same(string(q.Queue), i, strconv.Itoa(q.Applications), strconv.Itoa(q.Refused), strconv.Itoa(q.Failed),
				strconv.FormatInt(q.Containers, 10), compare.Seconds(q.WaitS.P50), compare.Seconds(q.WaitS.P99),
				compare.Seconds(q.StartS.P50), compare.Seconds(q.StartS.P99), percent(q.Used), percent(q.Entitled),
				percent(q.Short), fmt.Sprintf("%.2f", q.MembersOfApp), strconv.FormatInt(q.WorkLost.Containers, 10))
			line(string(q.Queue), 2*i, q.UsedOver)
			line(string(q.Queue), 2*i+1, q.EntitledOver)
		}
		for _, m := range r.Members {
			same(string(m.Member), i, strconv.Itoa(m.Nodes), strconv.Itoa(m.Applications), strconv.FormatInt(m.Containers, 10),
				compare.Seconds(m.WaitS.P50), compare.Seconds(m.WaitS.P99), percent(m.Utilisation),
				strconv.FormatInt(m.Preempted, 10))
			line(string(m.Member), i, m.UsedOver)
		}
	}
	b.axe("the report")
	b.narrow()
	if wide := b.eval(`String(document.documentElement.scrollWidth > window.innerWidth)`); wide != "false" {
		t.Error("on a narrow screen the page itself scrolls sideways")
	}
	b.quiet()
}
