// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/programs"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

//go:embed testdata/every.py
var every string

// A public client library reads every document it knows, and makes every change it offers.
func TestPublicClientLibrary(t *testing.T) {
	python, err := programs.Path("python3")
	if err != nil {
		t.Fatal(err)
	}
	packages := hadoop.PythonPath(t)
	r := rm.Start(t, rm.Options{Volatile: true, Conf: patient})
	s := newSystem(t, "creel", r.Process, r.Addresses)
	s.play()
	id := s.apps["running"]
	vars := s.vars()
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	_, all, code := process.Run(ctx, t, process.Command{
		Name: "every",
		Dir:  t.TempDir(),
		Args: []string{
			python,
			"-c",
			every,
			"http://" + s.Web,
			hadoop.OSUser(t),
			id.String(),
			vars.Replace("{running.attempt}"),
			vars.Replace("{running.container}"),
			"127.0.0.2:1",
		},
		Env: []string{"PYTHONPATH=" + packages},
	})
	if code != 0 || !strings.Contains(all, "read 22 documents, changed 6 things") {
		t.Fatalf("exit code %d\n%s", code, all)
	}
	s.until("it is dead", func() bool {
		return s.report("alice", id).GetYarnApplicationState() == pb.YarnApplicationStateProto_KILLED
	})
}
