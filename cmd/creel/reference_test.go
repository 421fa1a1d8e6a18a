// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestCLIReferenceIsUpToDate(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	pages, err := referencePages()
	if err != nil {
		t.Fatal(err)
	}
	const dir = "../../docs/reference/cli"
	for name, want := range pages {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the commands say, %v: go run ./cmd/creel reference docs/reference/cli", name, err)
		}
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) != len(pages) {
		t.Errorf("%d files, %d pages, %v: remove those of commands that are gone", len(files), len(pages), err)
	}
	man := t.TempDir()
	root := rootCommand()
	root.SetArgs([]string{"reference", "--format", "man", man})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(man, "creel-app-why.1"))
	if err != nil || !bytes.Contains(b, []byte("explain where an application runs")) {
		t.Errorf("the man page of app why: %v", err)
	}
}
