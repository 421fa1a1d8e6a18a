// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Processor seconds of a stage are its own: neither those of an earlier end-to-end package, nor those of the stages
// that run beside it and end meanwhile. The go command is replaced by a script.
func TestStageHasItsOwnProcessorSeconds(t *testing.T) {
	dir := t.TempDir()
	script := `#!/usr/bin/env bash
spin() {
	local i used=0m0
	until [[ $used > 0m1.3 ]]; do
		for ((i = 0; i < 10000; i++)); do :; done
		times >"` + dir + `/times.$$" # not in a subshell, which counts from zero
		read -r used _ <"` + dir + `/times.$$"
	done
}
case "$*" in
*e2e/rest | *staticcheck*) spin ;;
*mutations*) touch ` + dir + `/over ;;
vet*) until [[ -e ` + dir + `/over ]]; do sleep 0.05; done; sleep 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
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
		for stage, own := range map[string]bool{c.own: true, c.none: false} {
			row := regexp.MustCompile(`(?m)^` + stage + ` +\w+ +\d+ +(\d+)`).FindSubmatch(out)
			if row == nil || (string(row[1]) != "0") != own {
				t.Errorf("./test %s: the row of %s is %q in\n%s", strings.Join(c.stages, " "), stage, row, out)
			}
		}
	}
}
