// SPDX-License-Identifier: Apache-2.0

// Package mutations proves that the simulator sees: decisions of the code that
// ships are made wrongly, one at a time, and a seed of those that `./test sim`
// runs has to catch each. Those that the table calls missed are caught by none
// yet; -mutate=all fails when one of them is, so that the table stays true. Nothing is
// written into the tree: the compiler reads the wrong file in place of the right
// one (-overlay).
//
//	go test ./internal/app/sim/mutations                           each mutation still applies
//	go test -count=1 -v ./internal/app/sim/mutations -mutate=caught
//	go test -count=1 -v ./internal/app/sim/mutations -mutate=all   also those that are not caught yet
package mutations

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var mutate = flag.String("mutate", "", "build mutations and run seeds until one fails: `caught` or all")

const root = "../../../.."

// apply gives the wrong text of a mutation's file.
func (m *mutation) apply(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		t.Fatalf("%s: what it changes stands %d times in %s; change table_test.go with the code", m.name, n, m.file)
	}
	return []byte(strings.Replace(string(b), m.old, m.wrong, 1))
}

func TestEachMutationApplies(t *testing.T) {
	if len(table) < 10 {
		t.Fatalf("only %d mutations", len(table))
	}
	for i := range table {
		table[i].apply(t)
	}
}

// build compiles the simulator's tests, with a wrong file in place of a right one.
func build(t testing.TB, m *mutation) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "sim.test")
	args := []string{"test", "-c", "-o", binary}
	if m != nil {
		right, err := filepath.Abs(filepath.Join(root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		wrong, overlay := filepath.Join(dir, "wrong.go"), filepath.Join(dir, "overlay.json")
		doc, err := json.Marshal(map[string]any{"Replace": map[string]string{right: wrong}})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(wrong, m.apply(t), 0o600), os.WriteFile(overlay, doc, 0o600)); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", overlay)
	}
	c := exec.Command("go", append(args, "./internal/app/sim")...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// Of a run: the first test that failed, and what the auditor says there.
var failure = regexp.MustCompile(`--- FAIL: (Test\S+)`)
var said = regexp.MustCompile(`(?m)at (?:\d+h)?(?:\d+m)?[\d.]+s: .*|panic: .*`)

// run plays a quiet morning and then seeds with faults, of those of `./test sim`,
// and returns what failed first, "" for nothing.
func run(t testing.TB, binary string, seeds, minutes int) (failed, why string) {
	t.Helper()
	c := exec.Command(binary, "-test.run", "^(TestAQuietMorning|TestSeedsWithFaults)$", "-test.v", "-test.failfast",
		fmt.Sprintf("-seeds=%d", seeds), "-nodes=20", fmt.Sprintf("-minutes=%d", minutes), "-test.timeout=10m")
	c.Dir = filepath.Join(root, "internal/app/sim")
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err == nil {
		return "", ""
	}
	name := "the run"
	if all := failure.FindAllStringSubmatch(string(out), -1); len(all) > 0 {
		name = all[len(all)-1][1]
	}
	why = string(said.Find(out))
	if why == "" {
		why = "no breach: " + string(out[max(0, len(out)-500):])
	}
	return name, why
}

// Each mutation is caught, as the table says, and what ships is not.
func TestEachMutationIsCaught(t *testing.T) {
	if *mutate == "" {
		t.Skip("takes minutes: run with -mutate=caught or -mutate=all")
	}
	var chosen []*mutation
	for i := range table {
		if *mutate == "all" || !table[i].missed {
			chosen = append(chosen, &table[i])
		}
	}
	if len(chosen) < 10 {
		t.Fatalf("only %d mutations", len(chosen))
	}
	var mu sync.Mutex
	var lines []string
	t.Cleanup(func() {
		slices.Sort(lines)
		t.Logf("%d of %d mutations caught\n%s", len(lines), len(chosen), strings.Join(lines, "\n"))
	})
	t.Run("none", func(t *testing.T) {
		if failed, why := run(t, build(t, nil), 5, 15); failed != "" {
			t.Fatalf("without a mutation %s fails: %s", failed, why)
		}
	})
	for _, m := range chosen {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			failed, why := run(t, build(t, m), 25, 15)
			switch {
			case failed == "" && m.missed:
				t.Logf("not caught yet: %s", m.name)
				return
			case failed == "":
				t.Fatalf("NOT CAUGHT: %s", m.name)
			case m.missed:
				t.Errorf("caught now by %s: %s; say so in the table", failed, why)
			}
			mu.Lock()
			defer mu.Unlock()
			t.Logf("caught by %s: %s", failed, why)
			lines = append(
				lines,
				fmt.Sprintf("%-75s %s, %.0f s: %.120s", m.name, failed, time.Since(began).Seconds(), why),
			)
		})
	}
}
