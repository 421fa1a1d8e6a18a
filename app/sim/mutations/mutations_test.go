// SPDX-License-Identifier: Apache-2.0

// Package mutations proves that the tests detect defects. It reverses decisions of the production code, one at a
// time. A seed of the simulator as in `./test sim`, or the unit test or property that the table names, has to fail
// for each. Nothing is written into the tree: the compiler reads changed files in place of the right ones (-overlay).
// All mutations are in one build, each behind a switch that an environment variable sets, so that a mutation costs
// only its run.
//
//	go test ./app/sim/mutations                        each mutation still applies
//	go test -count=1 -v ./app/sim/mutations -mutate=all
//	go test -count=1 -v ./app/sim/mutations -mutate=REGEXP
package mutations

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var mutate = flag.String("mutate", "", "build the mutations and have those caught whose name matches `REGEXP`, or all")

const (
	root     = "../../.."
	variable = "CREEL_MUTATION"   // names the mutation that is on, by its number
	on       = "switchedMutation" // the variable's value within a mutated package
	sim      = "app/sim"
)

// mutated returns the files of the table with all their mutations in them, each
// behind its switch, by path.
func mutated(t testing.TB) map[string][]byte {
	t.Helper()
	type change struct {
		from, to int
		text     string
	}
	changes := map[string][]change{}
	right := map[string]string{}
	for i := range table {
		m := &table[i]
		if _, ok := right[m.file]; !ok {
			b, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			right[m.file] = string(b)
		}
		text := right[m.file]
		at := strings.Index(text, m.old)
		switch {
		case m.old == "" || strings.Count(text, m.old) != 1:
			t.Fatalf("%s: what it changes stands %d times in %s; change table_test.go with the code",
				m.name, strings.Count(text, m.old), m.file)
		case !strings.Contains(m.wrong, "MUTANT"):
			t.Fatalf("%s: the wrong text has no switch", m.name)
		}
		wrong := strings.ReplaceAll(m.wrong, "MUTANT", fmt.Sprintf("(%s == %q)", on, strconv.Itoa(i+1)))
		changes[m.file] = append(changes[m.file], change{at, at + len(m.old), wrong})
	}
	out := map[string][]byte{}
	for file, list := range changes {
		slices.SortFunc(list, func(a, b change) int { return a.from - b.from })
		var b bytes.Buffer
		end := 0
		for _, c := range list {
			if c.from < end {
				t.Fatalf("two mutations of %s change the same text: %s", file, c.text)
			}
			b.WriteString(right[file][end:c.from] + c.text)
			end = c.to
		}
		b.WriteString(right[file][end:])
		out[file] = b.Bytes()
		name := regexp.MustCompile(`(?m)^package (\w+)$`).FindStringSubmatch(right[file])[1]
		out[path.Join(path.Dir(file), "switched_mutation.go")] = fmt.Appendf(
			nil, "package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n", name, on, variable)
	}
	return out
}

func TestEachMutationApplies(t *testing.T) {
	if len(table) < 25 {
		t.Fatalf("only %d mutations", len(table))
	}
	mutated(t)
	for i := range table {
		m := &table[i]
		if slices.ContainsFunc(table[:i], func(o mutation) bool { return o.name == m.name }) {
			t.Errorf("two mutations are called %q", m.name)
		}
		if m.caughtBy != "" {
			m.test(t)
		}
	}
}

// test returns package and name of the test that catches a mutation.
func (m *mutation) test(t testing.TB) (pkg, name string) {
	t.Helper()
	pkg, name, ok := strings.Cut(m.caughtBy, " ")
	if !ok || !strings.HasPrefix(name, "Test") {
		t.Fatalf("%s: caughtBy is %q, want a package and a test", m.name, m.caughtBy)
	}
	files, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	function, _, _ := strings.Cut(name, "/")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("func "+function+"(")) {
			return pkg, name
		}
	}
	t.Fatalf("%s: there is no %s in %s", m.name, function, pkg)
	return "", ""
}

// build compiles the tests of packages, with the mutated files in place of the
// right ones, and returns each binary.
func build(t testing.TB, packages []string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, text := range mutated(t) {
		right, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		replace[right] = filepath.Join(dir, strings.ReplaceAll(file, "/", "+"))
		if err := os.WriteFile(replace[right], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	binaries := map[string]string{}
	for round := 0; len(packages) > 0; round++ { // binaries are named by the last part of the package
		into := filepath.Join(dir, strconv.Itoa(round))
		args := []string{"test", "-c", "-vet=off", "-overlay", overlay, "-o", into + "/"}
		var later []string
		taken := map[string]bool{}
		for _, p := range packages {
			if taken[path.Base(p)] {
				later = append(later, p)
				continue
			}
			taken[path.Base(p)] = true
			binaries[p] = filepath.Join(into, path.Base(p)+".test")
			args = append(args, "./"+p)
		}
		c := exec.Command("go", args...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		packages = later
	}
	return binaries
}

// failure matches a run's failed tests; the last one and the line with its reason are reported.
var failure = regexp.MustCompile(`--- FAIL: (Test\S+)`)
var reasons = []*regexp.Regexp{
	regexp.MustCompile(`at (?:\d+h)?(?:\d+m)?[\d.]+s: .*`), // the auditor's
	regexp.MustCompile(`panic: .*`),
	regexp.MustCompile(`(?m)^ *(?:\[rapid\] )?(\w+\.go:\d+: .*)$`),
}

// hang bounds a run that would never end. No verdict depends on it, and the longest run takes a minute.
const hang = 30 * time.Minute

// runTest runs one test with a mutation switched on, number 0 for none, and returns the failed test, "" for none.
func runTest(t testing.TB, binary, pkg string, number int, args ...string) (failed, why string) {
	t.Helper()
	c := exec.Command(binary, append(args, "-test.v", "-test.failfast", "-test.timeout="+hang.String())...)
	c.Dir = filepath.Join(root, pkg)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err == nil {
		if !bytes.Contains(out, []byte("--- PASS: ")) {
			t.Fatalf("%s %v runs no test", pkg, args)
		}
		return "", ""
	}
	if bytes.Contains(out, []byte("panic: test timed out after")) { // a slow machine would catch every mutation
		t.Fatalf("%s %v with mutation %d did not end within %v", pkg, args, number, hang)
	}
	failed = "the run"
	if all := failure.FindAllSubmatch(out, -1); len(all) > 0 {
		failed = string(all[len(all)-1][1])
	}
	why = "no reason found: " + string(out[max(0, len(out)-500):])
	for _, r := range reasons {
		if text := r.Find(out); text != nil {
			return failed, strings.TrimSpace(string(text))
		}
	}
	return failed, why
}

// runNamed runs a test; properties always draw the same.
func runNamed(t testing.TB, binary, pkg, name string, number int) (failed, why string) {
	t.Helper()
	args := []string{exactly(name)}
	files, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(`"pgregory.net/rapid"`)) {
			args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1s")
			break
		}
	}
	return runTest(t, binary, pkg, number, args...)
}

// exactly is the -test.run that matches one test or subtest.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + strings.ReplaceAll(parts[i], " ", "_") + "$"
	}
	return "-test.run=" + strings.Join(parts, "/")
}

// runSeeds plays seeds of `./test sim` with faults, a quarter of an hour each.
func runSeeds(t testing.TB, binary string, number int, first, seeds uint64) (failed, why string) {
	t.Helper()
	failed, why = runTest(t, binary, sim, number, exactly("TestSeedsWithFaults"),
		fmt.Sprintf("-first=%d", first), fmt.Sprintf("-seeds=%d", seeds), "-nodes=20", "-minutes=15")
	if _, seed, ok := strings.Cut(failed, "/"); ok {
		failed = "seed " + seed
	}
	return failed, why
}

// The kinds of tests that detect a mutation.
const (
	bySeed     = "seed:"     // a run of the simulator
	byProperty = "property:" // random or exhaustive cases against an invariant
	byScenario = "scenario:"
)

// exhaustive is a property that draws nothing, since it goes through everything.
const exhaustive = "TestEveryOrderOfMessages"

// kind returns the kind of test that detects a mutation, from the text of the test that the table names.
func (m *mutation) kind(t testing.TB) string {
	if m.caughtBy == "" {
		return bySeed
	}
	pkg, name := m.test(t)
	function, _, _ := strings.Cut(name, "/")
	switch {
	case pkg == sim: // a run under the auditor, of one seed
		return bySeed
	case function == exhaustive:
		return byProperty
	}
	files, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, body, there := strings.Cut(string(b), "func "+function+"(")
		if body, _, _ = strings.Cut(body, "\n}\n"); there && strings.Contains(body, "rapid.") {
			return byProperty
		}
	}
	return byScenario
}

// most seeds that are played to catch a mutation.
const most = 25

// caught returns the test that detects a mutation, "" if none does.
func (m *mutation) caught(t testing.TB, binaries map[string]string, number int) (by, why string) {
	t.Helper()
	if m.caughtBy != "" {
		pkg, name := m.test(t)
		if by, why = runNamed(t, binaries[pkg], pkg, name, number); by != "" {
			by = pkg + " " + by
		}
		return by, why
	}
	if by, why = runSeeds(t, binaries[sim], number, m.seed, 1); by != "" {
		return by, why
	}
	return runSeeds(t, binaries[sim], number, 0, most)
}

// Each mutation is detected, and the unchanged code passes.
func TestEachMutationIsCaught(t *testing.T) {
	if *mutate == "" {
		t.Skip("takes a minute or two: run with -mutate=all")
	}
	names, err := regexp.Compile(*mutate)
	if err != nil {
		t.Fatal(err)
	}
	var chosen []int
	packages := []string{sim}
	tests := map[string]bool{}
	for i := range table {
		m := &table[i]
		if *mutate != "all" && !names.MatchString(m.name) {
			continue
		}
		chosen = append(chosen, i)
		if m.caughtBy != "" {
			pkg, _ := m.test(t)
			tests[m.caughtBy] = true
			if !slices.Contains(packages, pkg) {
				packages = append(packages, pkg)
			}
		}
	}
	if len(chosen) == 0 {
		t.Fatal("no mutation has such a name")
	}
	began := time.Now()
	binaries := build(t, packages)
	t.Logf("%d packages built in %.0f s", len(packages), time.Since(began).Seconds())
	var mu sync.Mutex
	var lines []string
	by := map[string]int{}
	t.Cleanup(func() {
		slices.Sort(lines)
		t.Logf("%d of %d mutations caught in %.0f s: %d by seeds, %d by properties, %d by scenarios\n%s",
			len(lines), len(chosen), time.Since(began).Seconds(), by[bySeed], by[byProperty], by[byScenario],
			strings.Join(lines, "\n"))
		if n := by[bySeed] + by[byProperty]; *mutate == "all" && n < 25 {
			t.Errorf("only %d are caught by a seed or a property", n)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		if by, why := runSeeds(t, binaries[sim], 0, 0, 5); by != "" {
			t.Errorf("without a mutation %s fails: %s", by, why)
		}
		for test := range tests {
			pkg, name, _ := strings.Cut(test, " ")
			if failed, why := runNamed(t, binaries[pkg], pkg, name, 0); failed != "" {
				t.Errorf("without a mutation %s of %s fails: %s", failed, pkg, why)
			}
		}
	})
	for _, i := range chosen {
		m := &table[i]
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			who, why := m.caught(t, binaries, i+1)
			if who == "" {
				t.Fatalf("NOT CAUGHT: %s", m.name)
			}
			mu.Lock()
			defer mu.Unlock()
			by[m.kind(t)]++
			lines = append(lines, fmt.Sprintf("%-75s %s %s, %.1f s: %.120s",
				m.name, m.kind(t), who, time.Since(began).Seconds(), why))
		})
	}
}
