// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Processor seconds of a stage are its own: neither those of an earlier end-to-end package, nor those of the stages
// that run beside it and end meanwhile. The go command is replaced by a script.
func TestStageHasItsOwnProcessorSeconds(t *testing.T) {
	dir := t.TempDir()
	script := `#!/usr/bin/env bash
spin() {
	local i used=0m0
	until [[ $used > 0m3 ]]; do
		for ((i = 0; i < 10000; i++)); do :; done
		times >"` + dir + `/times.$$" # not in a subshell, which counts from zero
		read -r used _ <"` + dir + `/times.$$"
	done
}
case "$*" in
*e2e/rest | *staticcheck*) spin ;;
*mutations*) echo >` + dir + `/over ;;
vet*) read -r _ <` + dir + `/over; sleep 1 ;; # a loop would take seconds of its own
esac
`
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "over"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stages    []string
		own, none string
	}{
		{[]string{"e2e/rest", "e2e/wire"}, "e2e/rest", "e2e/wire"},
		{[]string{"beside", "vet", "beside-over"}, "static", "vet"},
	} {
		cmd := exec.Command("./test", c.stages...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CREEL_CACHE="+dir)
		out, _ := cmd.CombinedOutput() // stages that need the real go command fail
		seconds := func(stage string) int {
			row := regexp.MustCompile(`(?m)^` + stage + ` +\w+ +\d+ +(\d+)`).FindSubmatch(out)
			if row == nil {
				t.Fatalf("./test %s: no row of %s in\n%s", strings.Join(c.stages, " "), stage, out)
			}
			n, _ := strconv.Atoi(string(row[1])) // digits
			return n
		}
		// Shells take some themselves, more of it on a busy machine.
		if own, none := seconds(c.own), seconds(c.none); own < 2 || none > own/2 {
			t.Errorf("./test %s: %s took %d processor seconds, %s %d, in\n%s",
				strings.Join(c.stages, " "), c.own, own, c.none, none, out)
		}
	}
}
