// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
)

// short is a day that is over in a few seconds.
func short(out *bytes.Buffer) Config {
	return Config{
		Day:     Day{Trace: "fb2009-1", Hours: "9-9.1", Speed: 120, Subclusters: 2, Nodes: 20, Seed: 1},
		Defines: []string{"creel.store.url=memory"},
		Out:     out,
		Repeat:  "creel demo --hours 9-9.1",
	}
}

func TestABadVerdictLeavesItsEvidence(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	c := short(&out)
	c.broken = func() error { return errors.New("a queue has more than there is") }
	var verdict []bool
	err := Run(t.Context(), c, func(_ *Summary, good bool) error {
		verdict = append(verdict, good)
		return nil
	})
	if err != nil || len(verdict) != 1 || verdict[0] {
		t.Fatalf("verdicts %v, %v\n%s", verdict, err, &out)
	}
	said := regexp.MustCompile(`(?m)^evidence: (\S+): .*\nrepeat:   (.*)$`).FindStringSubmatch(out.String())
	if said == nil {
		t.Fatalf("nothing tells where the evidence is:\n%s", &out)
	}
	if said[2] != c.Repeat {
		t.Errorf("it is repeated by %q", said[2])
	}
	for name, holds := range map[string]string{
		"summary.json": `"broken": `,
		"broken.txt":   "broken: a queue has more than there is",
		"repeat.txt":   c.Repeat,
		"daemons.log":  `"msg"`,
	} {
		if b, err := os.ReadFile(filepath.Join(said[1], name)); err != nil || !strings.Contains(string(b), holds) {
			t.Errorf("%s holds no %q (%v): %.300s", name, holds, err, b)
		}
	}
	if journals, err := filepath.Glob(filepath.Join(said[1], "sc-*", "*")); err != nil || len(journals) < 2 {
		t.Errorf("journals of two ResourceManagers are expected, not %v, %v", journals, err)
	}
}

func TestADayWithoutARebalancerAndWithIt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	c := short(&out)
	c.Compare, c.Day.Steady = true, 4*time.Second
	err := Run(t.Context(), c, func(s *Summary, good bool) error {
		if !good || s.Without == nil || s.Without.Applications != s.Applications || s.Without.Room.Looks == 0 {
			t.Errorf("two good days of the same work are expected:\n%s", &out)
		}
		// How full the federation gets within four seconds, and how often it is sampled, depends on the machine.
		for _, s := range []*Summary{s.Steady, s.Without.Steady} {
			if s == nil || !s.good() || s.Applications.Submitted < 10 || s.EntitlementError.Samples == 0 || s.Room.InUse == 0 {
				t.Errorf("a good steady part with samples of resources in use is expected after each:\n%s", &out)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`(?m)^without a rebalancer:$`, `(?m)^with it:$`, `(?m)^the same day +without it +with it$`,
		`(?m)^guarantee lacked, p99 +[\d.]+ % +[\d.]+ %$`, `(?m)^steady part: guarantee lacked, p99 +[\d.]+ % +[\d.]+ %$`,
		`(?m)^steady part: queues x looks +\d+ +\d+$`} {
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("no line is like %s:\n%s", line, &out)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("good verdicts leave %v behind, %v", left, err)
	}
}

func TestProgressIsBarOnlyOnTerminal(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		want     string
	}{
		{true, "\r\x1b[K[............]     1 of 4 submitted      1 running      0 ended         3 containers       3/s  submits for 9s more" +
			"\r\x1b[Ksc-1 is killed\n" +
			"\r\x1b[K[............]     1 of 4 submitted      1 running      0 ended         3 containers       3/s  submits for 9s more" +
			"\r\x1b[K[######......]     4 of 4 submitted      2 running      2 ended         9 containers       6/s  2 to end" +
			"\r\x1b[K"},
		{false, "   1s     1 of 4 submitted      1 running      0 ended         3 containers       3/s  submits for 9s more\n" +
			"sc-1 is killed\n" +
			"  11s     4 of 4 submitted      2 running      2 ended         9 containers       6/s  2 to end\n"},
	} {
		var out bytes.Buffer
		s := &screen{out: &out, terminal: c.terminal}
		now := state{after: time.Second, last: 10 * time.Second, jobs: 4, accepted: 1, running: 1, containers: 3, lastSeconds: 3}
		s.show(now)
		fmt.Fprintln(s, "sc-1 is killed")
		if !c.terminal {
			now.after = 4 * time.Second
			s.show(now) // too early for another line
		}
		s.show(state{after: 11 * time.Second, last: 10 * time.Second, jobs: 4, accepted: 4, running: 2, ended: 2, containers: 9, lastSeconds: 6})
		s.done()
		want := strings.NewReplacer("............", strings.Repeat(".", barWidth), "######......",
			strings.Repeat("#", barWidth/2)+strings.Repeat(".", barWidth/2)).Replace(c.want)
		if out.String() != want {
			t.Errorf("terminal %v:\n%q, wanted\n%q", c.terminal, out.String(), want)
		}
	}
}

// A resource asked for a moment ago is not late; one that has been due since the previous sample is.
func TestShortfallCountsFromPreviousSample(t *testing.T) {
	var a auditor
	total := creel.NewResource(1000, 1000)
	look := func(used, demand int64) {
		a.shortfalls(map[creel.QueuePath]*queueUse{"root.a": {
			guaranteed: creel.NewResource(400, 400), used: creel.NewResource(used, used), demand: creel.NewResource(demand, demand),
		}}, total, time.Now())
	}
	look(0, 200)   // owed for the first time
	look(100, 900) // 200 of it were owed before
	look(400, 900) // all that it is guaranteed
	look(0, 0)     // nothing is asked for any more
	look(0, 50)
	if want := []float64{0.5, 0}; fmt.Sprint(a.errors) != fmt.Sprint(want) {
		t.Errorf("shortfalls are %v, wanted %v", a.errors, want)
	}
}

// A queue's entitlement includes only what its users' federation-wide limits allow.
func TestDemandAboveUserLimitsIsNotOwed(t *testing.T) {
	tree, err := rebalancer.ParseTree([]byte(`{"queues":[{"queue":"root.a","user_limit":{"memory":100,"vcores":100}}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	of := func(n int64) creel.Resource { return creel.NewResource(n, n) }
	for _, c := range []struct {
		needs map[string]creel.Resource
		want  int64
	}{
		{map[string]creel.Resource{"ann": of(900)}, 100},
		{map[string]creel.Resource{"ann": of(850), "bob": of(50)}, 150},
		{map[string]creel.Resource{"ann": of(450), "bob": of(450)}, 200},
	} {
		u := &queueUse{used: of(80), demand: of(900), needs: c.needs}
		if withinLimits(map[creel.QueuePath]*queueUse{"root.a": u}, nil); !u.demand.Equal(of(900)) {
			t.Errorf("without a document it is owed up to %v", u.demand)
		}
		if withinLimits(map[creel.QueuePath]*queueUse{"root.a": u}, tree); !u.demand.Equal(of(c.want)) {
			t.Errorf("where users need %v it is owed up to %v, wanted %d of each", c.needs, u.demand, c.want)
		}
	}
}

// The guarantee of the federation's document counts, whatever capacities the plan gives members at the moment.
func TestGuaranteesComeFromDocument(t *testing.T) {
	tree, err := rebalancer.ParseTree([]byte(`{"queues":[{"queue":"root.a","guarantee":{"memory":300,"vcores":300}},`+
		`{"queue":"root.b","maximum":{"memory":900,"vcores":900}}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	members := creel.NewResource(500, 500)
	queues := map[creel.QueuePath]*queueUse{
		"root.a": {guaranteed: members}, "root.b": {guaranteed: members}, "root.c": {guaranteed: members},
	}
	byDocument(queues, nil) // there is none
	if got := queues["root.a"].guaranteed; !got.Equal(members) {
		t.Errorf("without a document root.a has %v", got)
	}
	byDocument(queues, tree)
	for path, want := range map[creel.QueuePath]int64{"root.a": 300, "root.b": 500, "root.c": 500} {
		if got := queues[path].guaranteed; !got.Equal(creel.NewResource(want, want)) {
			t.Errorf("%s is guaranteed %v, wanted %d of each", path, got, want)
		}
	}
}

// The figures of the steady part are of the time when queues are known to want more than there is.
func TestSteadyPartShortfallsCountItsTime(t *testing.T) {
	start := time.Unix(1000, 0)
	a := auditor{from: start.Add(10 * time.Second), to: start.Add(30 * time.Second)}
	total := creel.NewResource(1000, 1000)
	for at := range 40 {
		used := int64(100)
		switch {
		case at == 10:
			used = 300 // owed since the look before, which does not count
		case at > 10 && at < 30:
			used = 400
		}
		a.shortfalls(map[creel.QueuePath]*queueUse{"root.a": {
			guaranteed: creel.NewResource(400, 400), used: creel.NewResource(used, used), demand: creel.NewResource(900, 900),
		}}, total, start.Add(time.Duration(at)*time.Second))
	}
	var s Summary
	a.fill(&s, io.Discard)
	if e := s.EntitlementError; e.Samples != 20 || math.Abs(e.P99-0.25) > 1e-9 || math.Abs(e.Mean-0.25/20) > 1e-9 {
		t.Errorf("the looks from the 10th second to the 30th are expected: %+v", e)
	}
}

// A bad steady part is a bad verdict.
func TestTheVerdictIsOfTheSteadyPartToo(t *testing.T) {
	var s Summary
	s.Applications.Submitted, s.Applications.Finished = 1, 1
	steady := s
	if s.Steady = &steady; !s.good() {
		t.Error("both are good")
	}
	if steady.Applications.Lost = 1; s.good() {
		t.Error("one application of the steady part is lost")
	}
}
