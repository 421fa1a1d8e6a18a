// SPDX-License-Identifier: Apache-2.0

package propertytest

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDraws is run by the tests below in a process of its own; it logs what it draws.
func TestDraws(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // rapid's seed is global
			var drawn []int
			Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.Int().Draw(t, "n")) })
			t.Logf("DREW %s: %d numbers %v, then %d", name, len(drawn), drawn, Rand(t).Int())
		})
	}
}

// draws returns by name what TestDraws draws in a process with these variables and flags.
func draws(t *testing.T, env []string, flags ...string) (drawn map[string]string, output string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestDraws$", "-test.v"}, flags...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "CREEL_SEARCH") || strings.HasPrefix(v, "RAPID_")
	}), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	drawn = map[string]string{}
	for _, m := range regexp.MustCompile(`DREW (\w+): (.*)`).FindAllStringSubmatch(string(out), -1) {
		drawn[m[1]] = m[2]
	}
	if len(drawn) != 2 {
		t.Fatalf("no draws in %s", out)
	}
	return drawn, string(out)
}

func TestDrawsDependOnTheTestOnly(t *testing.T) {
	one, _ := draws(t, nil)
	two, _ := draws(t, nil)
	if !reflect.DeepEqual(one, two) {
		t.Errorf("two runs drew\n%v\n%v", one, two)
	}
	if one["first"] == one["second"] {
		t.Errorf("two tests drew the same: %s", one["first"])
	}
	if !strings.HasPrefix(one["first"], "100 numbers") {
		t.Errorf("want 100 checks: %s", one["first"])
	}
}

func TestSearchDrawsFreshCases(t *testing.T) {
	env := []string{"CREEL_SEARCH=fresh", "CREEL_SEARCH_CHECKS=120"}
	plain, _ := draws(t, nil)
	one, out := draws(t, env)
	two, _ := draws(t, env)
	if one["first"] == two["first"] || one["first"] == plain["first"] || one["first"] == one["second"] {
		t.Errorf("runs drew\n%v\n%v\n%v", plain, one, two)
	}
	if !strings.HasPrefix(one["first"], "120 numbers") {
		t.Errorf("want 120 checks: %s", one["first"])
	}
	printed := regexp.MustCompile(`CREEL_SEARCH=\d+`).FindString(out)
	if again, _ := draws(t, []string{printed, env[1]}); !reflect.DeepEqual(one, again) {
		t.Errorf("%s drew\n%v, not\n%v", printed, again, one)
	}
}

func TestSeedOfTheCommandLineIsUsed(t *testing.T) {
	one, _ := draws(t, nil, "-rapid.seed=5")
	two, _ := draws(t, []string{"RAPID_SEED=5"})
	first := func(m map[string]string, name string) string {
		numbers, _, _ := strings.Cut(m[name], ", then")
		return numbers
	}
	if first(one, "first") != first(one, "second") || first(one, "first") != first(two, "first") {
		t.Errorf("seed 5 drew\n%v\n%v", one, two)
	}
}

func TestSearchSeedIsAPositiveNumber(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "17": 17} {
		if seed, err := searchSeed(text); seed != want || err != nil {
			t.Errorf("%q is seed %d, %v", text, seed, err)
		}
	}
	for _, text := range []string{"0", "-1", "x", "1.5"} {
		if seed, err := searchSeed(text); err == nil {
			t.Errorf("%q is seed %d", text, seed)
		}
	}
	if seed, err := searchSeed("fresh"); seed == 0 || err != nil {
		t.Errorf("a fresh seed is %d, %v", seed, err)
	}
}

func TestMutantsDependOnTheSeedOnly(t *testing.T) {
	seeds := [][]any{
		{[]byte("GET /a?b=12 HTTP/1.1"), "text 7", int8(1), uint64(2), 3, 0.5, float32(1), true},
		{[]byte{}, "", int8(0), uint64(0), 0, 0.0, float32(0), false},
	}
	before := fmt.Sprint(seeds)
	one, two := fmt.Sprint(mutants(seeds, 400, Rand(t))), fmt.Sprint(mutants(seeds, 400, Rand(t)))
	if one != two {
		t.Error("one seed gave two lists of mutants")
	}
	if fmt.Sprint(seeds) != before {
		t.Error("the seeds were written to")
	}
}

func TestMutantsReachEdgesOfEachType(t *testing.T) {
	missing := map[string]bool{
		"int8 -128": true, "int8 127": true, "uint16 65535": true, "int -1": true, fmt.Sprint("int64 ", math.MaxInt64): true,
		fmt.Sprint("int64 ", math.MinInt64): true, "bool false": true, "float64 NaN": true, "float32 -1": true, "string ": true,
		"[]uint8 []": true,
	}
	seed := []any{int8(1), uint16(2), 3, int64(4), true, 0.5, float32(1), "abc", []byte("abc")}
	for _, args := range mutants([][]any{seed}, 5000, Rand(t)) {
		for _, arg := range args {
			delete(missing, fmt.Sprintf("%T %v", arg, arg))
		}
	}
	if len(missing) > 0 {
		t.Errorf("no mutant is %v", missing)
	}
}

func TestEachChangeOfBytes(t *testing.T) {
	rnd := Rand(t)
	for _, how := range changes {
		results := map[string]bool{}
		for range 200 {
			results[string(changed([]byte("id=12;next"), []byte("other"), how, rnd))] = true
			changed(nil, nil, how, rnd) // nothing to change is no fault
		}
		delete(results, "id=12;next")
		if len(results) < 5 {
			t.Errorf("change %d makes only %v", how, results)
		}
	}
}

func TestMutantsAreBounded(t *testing.T) {
	for _, args := range mutants([][]any{{strings.Repeat("a", longest)}}, 200, Rand(t)) {
		if n := len(args[0].(string)); n > longest {
			t.Fatalf("a mutant has %d bytes", n)
		}
	}
}

// FuzzFailing is run by TestFailureOfAMutantPrintsItsInput in a process of its own, where it fails at the first mutant
// without an a.
func FuzzFailing(t *testing.F) {
	f := Fuzz(t)
	f.Mutants = 50
	f.Add("aaa", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		switch os.Getenv("CREEL_TEST_FAILURE") {
		case "fatal":
			if !strings.Contains(s, "a") {
				t.Fatal("no a")
			}
		case "panic":
			if !strings.Contains(s, "a") {
				panic("no a")
			}
		}
	})
}

func TestFailureOfAMutantPrintsItsInput(t *testing.T) {
	for _, how := range []string{"fatal", "panic"} {
		cmd := exec.Command(os.Args[0], "-test.run=^FuzzFailing$")
		cmd.Env = append(os.Environ(), "CREEL_TEST_FAILURE="+how, "CREEL_SEARCH=1")
		out, err := cmd.CombinedOutput()
		want := regexp.MustCompile(`testdata/fuzz/FuzzFailing/NAME:\s+go test fuzz v1\s+string\("[^a]*"\)\s+int\(-?\d+\)`)
		if err == nil || !want.Match(out) || !strings.Contains(string(out), "FuzzFailing/seed#") {
			t.Errorf("%s: %v: %s", how, err, out)
		}
	}
}
