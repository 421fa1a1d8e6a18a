// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A real ResourceManager without a journal warns of it at its start.
func TestVolatileResourceManagerWarns(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready.json")
	args := []string{"rm", "--ready-file", ready}
	for _, port := range []string{"", ".scheduler", ".resource-tracker", ".admin", ".webapp"} {
		args = append(args, "-D", "yarn.resourcemanager"+port+".address=127.0.0.1:0")
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "CREEL_TEST_AS_CREEL=1", "HADOOP_CONF_DIR=")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(ready); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		<-ended
	}
	if !strings.Contains(out.String(), "creel.rm.data is not set: a restart loses all applications") {
		t.Errorf("the log has no warning:\n%s", out.String())
	}
}
