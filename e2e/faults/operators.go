// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
)

// step is the scrape interval of a test's daemons. Prometheus scrapes less often, and so observes less.
const step = 500 * time.Millisecond

// operators records the operators' view of one test's federation: the daemons' logs, and the series that Prometheus
// would have recorded.
type operators struct {
	row failure

	mu      sync.Mutex
	logs    []*process.Process
	targets map[string]string   // web ports of daemons by name; a dead daemon stays, as in prometheus.yml
	series  map[string][]string // by metric and labels; one value a scrape, "_" if absent
	scrapes int

	said string // the log line found
}

// watching is the view of the running test. Tests of this package run one at a time.
var watching struct {
	mu sync.Mutex
	*operators
}

// operatorsSee checks, at the end of the test, the operators' view against the test's row of
// docs/operations/failures.md. The line must be in a log, at WARN or ERROR, or be the last output of a daemon that
// refused to start. The metric must have changed. promtool must find the alert firing on the recorded series if the
// fault lasts as long as its rule waits. Metrics that only a broken promise would change must not have changed.
func operatorsSee(t *testing.T) {
	t.Helper()
	i := slices.IndexFunc(failures, func(f failure) bool { return f.test == t.Name() })
	if i < 0 {
		t.Fatalf("%s has no row among the failures", t.Name())
	}
	o := &operators{row: failures[i], targets: map[string]string{}, series: map[string][]string{}}
	watch := func(o *operators) {
		watching.mu.Lock()
		watching.operators = o
		watching.mu.Unlock()
	}
	watch(o)
	end := make(chan struct{})
	var scraping sync.WaitGroup
	scraping.Go(func() {
		tick := time.NewTicker(step)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				o.scrape()
			}
		}
	})
	t.Cleanup(func() { // after the cleanup of every daemon
		close(end)
		scraping.Wait()
		watch(nil)
		if !t.Failed() {
			o.judge(t)
		}
	})
}

// started records a daemon's new process.
func started(d *daemon) {
	watching.mu.Lock()
	defer watching.mu.Unlock()
	if o := watching.operators; o != nil {
		o.mu.Lock()
		o.logs = append(o.logs, d.Process)
		o.mu.Unlock()
	}
}

// about returns all log lines about an application and its attempts, process after process in the order of their start.
// Processes that have ended are included: the cause of a late failure is often in their logs.
func about(id string) string {
	watching.mu.Lock()
	defer watching.mu.Unlock()
	o, number := watching.operators, strings.TrimPrefix(id, "application")
	if o == nil || number == "" {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, p := range o.logs {
		b.WriteString(p.Lines(number))
	}
	return b.String()
}

// serves records a daemon that serves. It is scraped until the test ends the daemon.
func serves(t testing.TB, d *daemon) {
	watching.mu.Lock()
	defer watching.mu.Unlock()
	o, name := watching.operators, d.Name
	if o == nil || d.at["web"] == "" {
		return
	}
	o.mu.Lock()
	o.targets[name] = d.at["web"]
	o.mu.Unlock()
	t.Cleanup(func() {
		o.mu.Lock()
		delete(o.targets, name)
		o.mu.Unlock()
	})
}

// awaitDown waits until a scrape has failed at an ended daemon, if the test's row is about that. A restart may be
// faster than a scrape.
func awaitDown(t testing.TB, name string) {
	t.Helper()
	watching.mu.Lock()
	o := watching.operators
	watching.mu.Unlock()
	if o == nil || o.row.metric != "up" {
		return
	}
	series := fmt.Sprintf("up{instance=%q}", name)
	if err := process.Poll(nil, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.targets[name] == "" || slices.Contains(o.series[series], "0")
	}); err != nil {
		t.Fatalf("no scrape met %s after its end: %v", name, err)
	}
}

// awaitScraped waits until a scrape has found at least so much of the row's metric at a daemon.
func awaitScraped(t testing.TB, name string, least float64) {
	t.Helper()
	watching.mu.Lock()
	o := watching.operators
	watching.mu.Unlock()
	sum := 0.0
	if err := process.Poll(nil, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		sum = 0
		for series, values := range o.series {
			if strings.Contains(series, fmt.Sprintf("instance=%q", name)) {
				v, _ := strconv.ParseFloat(values[len(values)-1], 64) // "_" is 0
				sum += v
			}
		}
		return sum >= least
	}); err != nil {
		t.Fatalf("%s of %s is %g in the last scrape, want %g: %v", o.row.metric, name, sum, least, err)
	}
}

var scraper = &http.Client{Timeout: step, Transport: &http.Transport{DisableKeepAlives: true}}

// scrape records one value of each series of the row's metric.
func (o *operators) scrape() {
	o.mu.Lock()
	targets := make(map[string]string, len(o.targets))
	for name, at := range o.targets {
		targets[name] = at
	}
	o.mu.Unlock()
	found := make(chan map[string]string)
	for name, at := range targets {
		go func() { found <- o.read(name, at) }()
	}
	now := map[string]string{}
	for range targets {
		for series, value := range <-found {
			now[series] = value
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for series := range now {
		if o.series[series] == nil {
			o.series[series] = slices.Repeat([]string{"_"}, o.scrapes)
		}
	}
	for series := range o.series {
		value, ok := now[series]
		starts := value == "0" && strings.HasPrefix(series, "up{") && !slices.Contains(o.series[series], "1")
		if !ok || starts { // the first scrapes of a busy machine may fail
			value = "_"
		}
		o.series[series] = append(o.series[series], value)
	}
	o.scrapes++
}

// read returns one daemon's series of the row's metric; up is computed by Prometheus itself.
func (o *operators) read(name, at string) map[string]string {
	label := fmt.Sprintf("instance=%q", name)
	out := map[string]string{"up{" + label + "}": "0"}
	resp, err := scraper.Get("http://" + at + "/metrics")
	if err != nil {
		return o.only(out)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		metric, labels, labelled := strings.Cut(series, "{")
		switch {
		case metric != o.row.metric:
		case labelled:
			out[metric+"{"+label+","+labels] = value
		default:
			out[metric+"{"+label+"}"] = value
		}
	}
	out["up{"+label+"}"] = "1"
	return o.only(out)
}

// only removes up from series unless the row is about it.
func (o *operators) only(series map[string]string) map[string]string {
	if o.row.metric != "up" {
		for name := range series {
			if strings.HasPrefix(name, "up{") {
				delete(series, name)
			}
		}
	}
	return series
}

// judge compares the observations with the row.
func (o *operators) judge(t *testing.T) {
	t.Helper()
	if o.row.log != "" && !slices.ContainsFunc(o.logs, o.says) {
		t.Errorf("no log says %q at WARN or ERROR", o.row.log)
	}
	if o.row.log != "" && !strings.Contains(o.said, `"try":`) && !strings.Contains(o.said, ": creel: ") {
		t.Errorf("the line does not say what to do: %s", o.said)
	}
	if o.row.metric == "" {
		return
	}
	if len(o.series) == 0 {
		t.Errorf("no daemon has the metric %s", o.row.metric)
		return
	}
	moved := slices.ContainsFunc(slices.Collect(maps.Values(o.series)), func(values []string) bool {
		return worst(values) != first(values)
	})
	if moved == o.row.breach {
		t.Errorf("%s moved: %v; want %v\n%v", o.row.metric, moved, !o.row.breach, o.series)
	}
	o.promtool(t)
}

// says reports whether a daemon's log has the row's text at WARN or ERROR, or as output of a failed start.
func (o *operators) says(p *process.Process) bool {
	for line := range strings.Lines(p.Output()) {
		if strings.Contains(line, o.row.log) &&
			(strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`) || p.Ended() && p.Exit() != nil) {
			o.said = p.Name + ": " + line
			return true
		}
	}
	return false
}

// first returns the first value of a series. worst returns the value farthest from it.
func first(values []string) string {
	i := slices.IndexFunc(values, func(v string) bool { return v != "_" })
	return values[i]
}

func worst(values []string) string {
	out, far := first(values), 0.0
	from, _ := strconv.ParseFloat(out, 64)
	for _, v := range values {
		if f, err := strconv.ParseFloat(v, 64); err == nil && max(f-from, from-f) > far {
			out, far = v, max(f-from, from-f)
		}
	}
	return out
}

// promtool checks with Prometheus' own tool whether the row's alert fires on the series, after the worst recorded
// value has lasted for ten minutes more. The counters of a restarted daemon start at zero, which rules allow for.
func (o *operators) promtool(t *testing.T) {
	t.Helper()
	tool, err := programs.Path("promtool")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(root + "/deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	const lasts = 10 * time.Minute
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 1s\ntests:\n- interval: %dms\n  input_series:\n",
		rules, step.Milliseconds())
	for series, values := range o.series {
		after := worst(values)
		if strings.HasSuffix(o.row.metric, "_total") {
			after = values[len(values)-1]
		}
		fmt.Fprintf(&b, "  - series: '%s'\n    values: '%s %sx%d'\n",
			series, strings.Join(values, " "), after, lasts/step)
	}
	fires := 1
	if o.row.breach {
		fires = 0
	}
	at := (time.Duration(o.scrapes) * step).Round(time.Second)
	if !strings.HasSuffix(o.row.metric, "_total") {
		at += lasts // not for counters: by then their increase has left the window
	}
	fmt.Fprintf(&b, "  promql_expr_test:\n"+
		"  - expr: '(count(ALERTS{alertname=\"%s\",alertstate=\"firing\"}) or vector(0)) > bool 0'\n"+
		"    eval_time: %s\n    exp_samples: [{labels: '{}', value: %d}]\n", o.row.alert, at, fires)
	file := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(context.Background(), tool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool does not find what the row says of %s (fires: %d): %v\n%s\n%s", o.row.alert, fires, err, out, b.String())
	}
}
