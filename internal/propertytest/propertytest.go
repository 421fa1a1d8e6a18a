// SPDX-License-Identifier: Apache-2.0

// Package propertytest draws the cases of property tests and fuzz targets. They depend only on the test's name, so that
// a test gives the same result at each run. A search for new cases is a separate run:
//
//	CREEL_SEARCH=fresh go test -count=1 ./policies
//
// draws from a seed that it prints, and CREEL_SEARCH=SEED repeats it. In a search each property is checked
// CREEL_SEARCH_CHECKS times (1000).
package propertytest

import (
	crand "crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// search returns the seed requested by CREEL_SEARCH, or 0 outside a search.
var search = sync.OnceValues(func() (uint64, error) { return searchSeed(os.Getenv("CREEL_SEARCH")) })

func searchSeed(text string) (uint64, error) {
	switch text {
	case "":
		return 0, nil
	case "fresh":
		var b [4]byte
		_, _ = crand.Read(b[:]) // never fails
		return 1 + uint64(binary.LittleEndian.Uint32(b[:])), nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seed == 0 {
		return 0, fmt.Errorf("CREEL_SEARCH=%s: want fresh, or the positive number that an earlier search printed", text)
	}
	return seed, nil
}

// Searching reports whether this run searches for new cases.
func Searching() bool { return os.Getenv("CREEL_SEARCH") != "" }

// Seed returns the seed of a test: the same at each run, but a fresh one in a search. It is never 0.
func Seed(t rapid.TB) uint64 {
	t.Helper()
	base, err := search()
	if err != nil {
		t.Fatalf("%v", err)
	}
	if base != 0 {
		t.Logf("CREEL_SEARCH=%d repeats what this test draws", base)
	}
	return seedOf(t.Name(), base)
}

func seedOf(name string, base uint64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	if base != 0 {
		_ = binary.Write(h, binary.LittleEndian, base)
	}
	return max(h.Sum64(), 1)
}

// Rand returns a generator with the test's Seed.
func Rand(t rapid.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}

// rapidFlags are rapid's settings. They are global, and rapid reads the seed when a check begins.
var rapidFlags struct {
	once    sync.Once
	mu      sync.Mutex // locked from setting the seed until rapid has read it
	seedSet bool       // set by the command line or RAPID_SEED, to repeat a failure
	err     error
}

func readRapidFlags() {
	f := &rapidFlags
	f.seedSet = flag.Lookup("rapid.seed").Value.String() != "0"
	if !Searching() {
		return
	}
	checksSet := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(set *flag.Flag) { checksSet = checksSet || set.Name == "rapid.checks" })
	if checksSet {
		return
	}
	checks := os.Getenv("CREEL_SEARCH_CHECKS")
	if checks == "" {
		checks = "1000"
	}
	if n, err := strconv.Atoi(checks); err != nil || n < 1 {
		f.err = fmt.Errorf("CREEL_SEARCH_CHECKS=%s: want a positive number", checks)
		return
	}
	f.err = flag.Set("rapid.checks", checks)
}

// Check is rapid.Check with the test's Seed. The flags of rapid that repeat a failure (-rapid.seed, -rapid.failfile)
// work.
func Check(t rapid.TB, prop func(*rapid.T)) {
	t.Helper()
	f := &rapidFlags
	f.once.Do(readRapidFlags)
	if f.err != nil {
		t.Fatalf("%v", f.err)
	}
	if f.seedSet {
		rapid.Check(t, prop)
		return
	}
	seed := Seed(t)
	f.mu.Lock()
	unlock := sync.OnceFunc(f.mu.Unlock)
	defer unlock()
	if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
		t.Fatalf("%v", err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		unlock()
		prop(rt)
	})
}

// Fuzz returns a fuzz target. Plain `go test` gives it mutants of its seeds, beside the seeds:
//
//	func FuzzParse(t *testing.F) {
//		f := propertytest.Fuzz(t)
//		f.Add("a=1,b=2")
//		f.Fuzz(func(t *testing.T, s string) { ... })
//	}
//
// `go test -fuzz` draws its inputs itself, and receives only the seeds.
func Fuzz(t *testing.F) *F { return &F{F: t, Mutants: 1000} }

// F is a fuzz target with mutants.
type F struct {
	*testing.F
	Mutants int // number of mutants

	seeds [][]any
}

// Add adds a seed.
func (f *F) Add(args ...any) {
	f.Helper()
	f.seeds = append(f.seeds, args)
	f.F.Add(args...)
}

// Fuzz runs the target with the seeds and their mutants. A failure prints its input.
func (f *F) Fuzz(target any) {
	f.Helper()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		f.F.Fuzz(target)
		return
	}
	if len(f.seeds) == 0 {
		f.Fatal("a fuzz target needs a seed")
	}
	for _, args := range mutants(f.seeds, f.Mutants, Rand(f)) {
		f.F.Add(args...)
	}
	f.F.Fuzz(printing(f.Name(), target))
}
