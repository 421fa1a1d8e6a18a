// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// A stopped demo reports that it was stopped and that nothing is proved.
func TestStoppedDemoIsReported(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, w := io.Pipe()
	go func() { // once it is up
		text := make([]byte, 4096)
		for n, err := r.Read(text); err == nil; n, err = r.Read(text) {
			if strings.Contains(string(text[:n]), "dashboard") {
				cancel()
			}
		}
	}()
	root := rootCommand()
	root.SetOut(w)
	root.SetErr(w)
	root.SetArgs([]string{"demo", "--nodes", "4", "--hours", "9-9.5"})
	err := root.ExecuteContext(ctx)
	w.Close()
	if err == nil || exitCode(err) != exitGeneral || !strings.Contains(err.Error(), "stopped before the end of its day") {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}
}
