// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/workload"
)

var spec = Spec{Command: []string{"true"}, Containers: 3, MemoryMB: 128, VCores: 1}

func containers(n int) (out []workload.Grant) {
	at := creel.AttemptID{Application: creel.ApplicationID{ID: 1}, Attempt: 1}
	for i := range n {
		out = append(out, workload.Grant{
			Container: creel.ContainerID{Attempt: at, ID: int64(i + 2)}, Node: creel.NodeID{Host: "n", Port: 1},
		})
	}
	return out
}

func TestJobEndsAfterEachContainerCompletes(t *testing.T) {
	j := NewJob(spec, false)
	s := j.Registered()
	if len(s.Asks) != 1 || s.Asks[0].Count != 3 || !s.Asks[0].Size.Equal(creel.NewResource(128, 1)) {
		t.Fatalf("it asks for %+v", s.Asks)
	}
	grants := containers(4)
	s = j.Allocated(grants, nil)
	if len(s.Starts) != 3 || len(s.Releases) != 1 || s.Releases[0] != grants[3].Container || len(s.Asks) != 0 {
		t.Fatalf("of four granted, wanting three: %+v", s)
	}
	j.NotStarted(grants[0].Container, "its disk is full")
	s = j.StartFailed(grants[0].Container)
	if s.Finish || len(s.Releases) != 1 || len(s.Asks) != 0 {
		t.Fatalf("one that did not start is given back and not asked for again: %+v", s)
	}
	s = j.Allocated(nil, []workload.Completion{{Container: grants[1].Container}, {Container: grants[1].Container}})
	if s.Finish || j.Share() != 2./3 {
		t.Fatalf("after two of three: %+v, share %v", s, j.Share())
	}
	s = j.Allocated(nil, []workload.Completion{{Container: grants[2].Container, Exit: 3, Diagnostics: "Exit code: 3\nno such file\n"}})
	if !s.Finish || !s.Failed {
		t.Fatalf("at the end: %+v", s)
	}
	for _, part := range []string{"2 of 3 containers failed", "its disk is full", "exit code 3 (no such file)"} {
		if !strings.Contains(s.Diagnostics, part) {
			t.Errorf("%q does not say %q", s.Diagnostics, part)
		}
	}
}

func TestForgottenAMRepeatsPendingAsks(t *testing.T) {
	j := NewJob(spec, true)
	j.Registered()
	grants := containers(2)
	j.Allocated(grants, nil)
	if s := j.Registered(); len(s.Asks) != 1 || s.Asks[0].Count != 1 {
		t.Errorf("after a restart of the ResourceManager it asks for %+v", s.Asks)
	}
}

// Whatever the events and their order, a job ends exactly when all its containers have ended, and never asks for more
// than are missing.
func TestAJobCountsEachContainerOnce(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		want := rapid.IntRange(1, 8).Draw(t, "containers")
		j := NewJob(Spec{Command: []string{"x"}, Containers: want, MemoryMB: 1, VCores: 1}, false)
		pool := containers(want + 3)
		var running []workload.Grant
		granted, ended, failed, finished := 0, 0, 0, false
		check := func(s workload.Steps) {
			for _, start := range s.Starts {
				running = append(running, start.Grant)
			}
			for _, a := range s.Asks {
				if missing := want - ended - len(running); int(a.Count) != missing {
					t.Fatalf("asks for %d, %d are missing", a.Count, missing)
				}
			}
			if s.Finish != (ended == want && !finished) || s.Finish && s.Failed != (failed > 0) {
				t.Fatalf("%+v after %d of %d ended, %d failed", s, ended, want, failed)
			}
			finished = finished || s.Finish
		}
		check(j.Registered())
		for range 40 {
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				if granted < len(pool) {
					granted++
					check(j.Allocated(pool[granted-1:granted], nil))
				}
			case 1, 2:
				if len(running) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				exit := int32(rapid.IntRange(-1, 1).Draw(t, "exit"))
				c := running[i].Container
				running = append(running[:i:i], running[i+1:]...)
				ended++
				if exit != 0 {
					failed++
				}
				check(j.Allocated(nil, []workload.Completion{{Container: c, Exit: exit}, {Container: c, Exit: exit}}))
			case 3:
				check(j.Registered())
			}
		}
	})
}

// A shell reads back any argument unchanged.
func TestCommandGetsWordsVerbatim(t *testing.T) {
	for _, words := range [][]string{
		{"printf", "%s|", "a b", "it's", `"quoted"`, "$HOME", "`id`", `back\slash`, "*", "", "#x", "a;b", "<LOG>"},
		{"sh", "-c", `printf '%s|' "$0" 'x y' "\$"`, "zero"},
	} {
		s := Spec{Command: words, Containers: 1, MemoryMB: 1, VCores: 1, Env: map[string]string{"V": `a "b" $c`}}
		command := s.launch(false).GetCommand()[0]
		line, ok := strings.CutSuffix(command, Logs)
		if !ok {
			t.Fatalf("%q does not keep its output", command)
		}
		// As a NodeManager's launch script has it.
		got, err := exec.Command("/bin/bash", "-c", `exec /bin/bash -c "`+line+`"`).Output()
		if err != nil {
			t.Fatal(err)
		}
		want, err := exec.Command("/bin/bash", "-c", quoted(words)).Output()
		if err != nil || string(got) != string(want) {
			t.Errorf("%q prints %q, not %q, %v", words, got, want, err)
		}
	}
}

func TestASpecIsReadBackOrRefused(t *testing.T) {
	s := Spec{Command: []string{"a", "b c"}, Containers: 2, MemoryMB: 5, VCores: 1, Env: map[string]string{"K": "v"}}
	back, err := Decode(s.Encode())
	if err != nil || back.line() != "a 'b c'" || back.Env["K"] != "v" || !back.Size().Equal(s.Size()) {
		t.Errorf("%+v, %v", back, err)
	}
	for _, bad := range []Spec{
		{}, {Command: []string{"x"}, MemoryMB: 1, VCores: 1}, {Command: []string{"x"}, Containers: 1, VCores: 1},
		{Command: []string{"a\nb"}, Containers: 1, MemoryMB: 1, VCores: 1},
		{Command: []string{"x"}, Containers: 1, MemoryMB: 1, VCores: 1, Env: map[string]string{"A=B": ""}},
		{Command: []string{strings.Repeat("x", maxSpec)}, Containers: 1, MemoryMB: 1, VCores: 1},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
	if _, err := Decode("%"); err == nil {
		t.Error("what is no spec is read")
	}
}

func TestSimulatedNodeFollowsCommandExit(t *testing.T) {
	for line, want := range map[string]int{"false": 1, "exit 3": 3, "sh -c 'exit 4'": 4, "sleep 2": -1, "exit many": -1} {
		code, ok := exitCode(line)
		if !ok {
			code = -1
		}
		if code != want {
			t.Errorf("%q ends with %d, want %d", line, code, want)
		}
	}
}

func TestAMNamesMissingEnvironment(t *testing.T) {
	env := map[string]string{}
	read := func(string) ([]byte, error) { return nil, errors.New("no such file") }
	expect := func(part string) {
		t.Helper()
		if _, _, err := FromEnvironment(func(k string) string { return env[k] }, read); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
	expect("CREEL_SHELL")
	env[EnvSpec] = spec.Encode()
	expect("CONTAINER_ID")
	env["CONTAINER_ID"] = "container_e1_1_0001_01_000001"
	expect("HADOOP_TOKEN_FILE_LOCATION")
	read = func(string) ([]byte, error) { return []byte("HDTS\x00\x00\x00"), nil }
	expect("no AMRM token")
}

// quoted writes words for a shell in the plainest way, for comparison.
func quoted(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "'"+strings.ReplaceAll(w, "'", `'"'"'`)+"'")
	}
	return strings.Join(out, " ")
}
