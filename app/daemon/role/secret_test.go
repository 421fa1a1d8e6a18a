// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/creelrm/creel/internal/settings"
)

func TestConcurrentStartsCreateOneSecretFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	var wg sync.WaitGroup
	secrets := make([][]byte, 8)
	for i := range secrets {
		wg.Go(func() {
			b, err := secretFrom(file)
			if err != nil {
				t.Error(err)
			}
			secrets[i] = b
		})
	}
	wg.Wait()
	for _, b := range secrets {
		if len(b) != 64 || !bytes.Equal(b, secrets[0]) {
			t.Fatalf("secrets %q", secrets)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Fatalf("files left: %v, %v", left, err)
	}
}

func TestInvalidSecretFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{
		short:                              "it holds 3 bytes",
		filepath.Join(dir, "none", "none"): "no such file or directory",
	} {
		if _, err := secretFrom(file); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", file, err, says)
		}
		if err := checkSecret(file); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s checked: %v, want %q", file, err, says)
		}
	}
}

// Checking a configuration, perhaps as another user, creates no secret file that the daemon could not read.
func TestCheckingAConfigurationMakesNoSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := checkSecret(file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file was made: %v", err)
	}
}

// An unusable key file of a Hadoop ResourceManager prevents the start, with an error that states its format.
func TestInvalidHadoopKeyFileStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	for path, text := range map[string]string{good: "\x0a\x0c\x08\x07\x12\x08abcdefgh", bad: "hello"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for value, says := range map[string]string{
		"sc-h=" + good:                       "",
		"sc-h=" + good + ", sc-i=" + good:    "",
		"sc-h=" + bad:                        "it has no AMRM keys",
		"sc-h=" + filepath.Join(dir, "none"): "no such file or directory",
		"sc-h=" + dir:                        "not a regular file",
		good:                                 "is not SUBCLUSTER=FILE",
		"sc-h=" + good + ",sc-h=" + good:     "sc-h is there twice",
	} {
		s, err := settings.Load(settings.Sources{Defines: []string{"creel.proxy.hadoop-key-files=" + value}})
		if err != nil {
			t.Fatal(err)
		}
		err = Check(s, settings.Proxy)
		if says == "" && err == nil {
			continue
		}
		if says == "" || err == nil || !settings.IsProblem(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", value, err, says)
		}
	}
}
