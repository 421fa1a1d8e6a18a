// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository returns a tree with one commit, of version 1.2.3.
func repository(t *testing.T) (dir string, git func(args ...string) string) {
	dir = t.TempDir()
	git = func(args ...string) string {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)
		env := append(os.Environ(), "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_AUTHOR_DATE=1700000000 +0000")
		out, err := (&release{source: dir}).output(env, "git", args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	file := filepath.Join(dir, "app/daemon/build/VERSION")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("1.2.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	return dir, git
}

func TestVersionOfACommit(t *testing.T) {
	dir, git := repository(t)
	t.Setenv("SOURCE_DATE_EPOCH", "")
	r := release{source: dir}
	want := "v1.2.3-dev.20231114221320+" + git("rev-parse", "HEAD")[:12]
	if err := r.commit(); err != nil || r.version != want {
		t.Errorf("version %s, want %s, %v", r.version, want, err)
	}
	git("tag", "v1.2.3-rc.1")
	r = release{source: dir}
	if err := r.commit(); err != nil || r.version != "v1.2.3-rc.1" {
		t.Errorf("version %s, %v", r.version, err)
	}
	git("tag", "v1.3.0")
	r = release{source: dir}
	if err := r.commit(); err == nil || !strings.Contains(err.Error(), "VERSION is of v1.2.3") {
		t.Errorf("a tag of another version is taken: %s, %v", r.version, err)
	}
}
