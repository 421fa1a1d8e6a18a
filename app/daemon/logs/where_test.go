// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlaceOfTheLogIsNamed(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "rm.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer pipe.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	info, err := pipe.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f      *os.File
		stream string
		want   string
	}{
		{file, "", "the file " + file.Name() + " on"},
		{file, "1:2", "the file " + file.Name() + " on"}, // the journal of a parent that redirected this process
		{pipe, "", "a pipe to the program that started it"},
		{pipe, identity(info), "the systemd journal: journalctl _PID="},
		{null, "", "discarded"},
		{closed, "", "closed"},
	} {
		if got := where(c.f, c.stream); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.want, got)
		}
	}
}
