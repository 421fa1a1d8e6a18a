// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// The printed options of a drawn run repeat it: read as a corpus line, they yield the same flags.
func TestTheOptionsOfADrawnRunRepeatIt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	days := map[string]bool{}
	for seed := range uint64(200) {
		f := drawn(seed)
		again := &simFlags{}
		set := pflag.NewFlagSet("again", pflag.ContinueOnError)
		again.define(set)
		if err := set.Parse(strings.Fields(f.options(seed))); err != nil || *again != *f {
			t.Fatalf("%s gives %+v (%v), want %+v", f.options(seed), *again, err, *f)
		}
		if _, err := f.config(seed); err != nil || f.valid() != nil {
			t.Errorf("%s: %v, %v", f.options(seed), err, f.valid())
		}
		days[f.trace] = true
	}
	if len(days) != 7 {
		t.Errorf("200 seeds draw the days %v", days)
	}
}

func TestACorpusRunsEachLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "corpus.txt")
	run := func(text string) (string, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := runSim(&simFlags{corpus: file, parallel: 1, speed: 1, cores: 8, memory: 1024, seeds: 1, seed: 1}, &out)
		return out.String(), err
	}
	line := "--seed 3 --hours 9-9.02 --nodes 2 --faults"
	if out, err := run("# nothing\n\n" + line + " # found\n" + line + " --trace tiny\n"); err != nil ||
		!strings.Contains(out, "2 seeds, ") || !strings.Contains(out, "virtual days an hour") {
		t.Errorf("%v: %s", err, out)
	}
	for text, want := range map[string]string{
		"# nothing\n":              "has no line",
		line + "\n--node 2 # typo": "corpus.txt:2: unknown flag",
		"--cores 0":                "--cores must be",
		"--hours 9":                "expected FROM-TO",
	} {
		if _, err := run(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
