// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// hadoopState returns a state file as Hadoop's ResourceManager writes it: the current key, and the next if there is
// one.
func hadoopState(keys ...token.Key) (b []byte) {
	for i, k := range keys {
		message := protowire.AppendTag(nil, 1, protowire.VarintType)
		message = protowire.AppendVarint(message, uint64(int64(k.ID)))
		message = protowire.AppendBytes(protowire.AppendTag(message, 2, protowire.BytesType), k.Secret)
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType)
		b = protowire.AppendBytes(b, message)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	// As Hadoop does: under another name first.
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func TestTheKeyFilesOfHadoopAreFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "AMRMTokenSecretManagerNode")
	first, second := token.Key{ID: -7, Secret: []byte("12345678")}, token.Key{ID: -6, Secret: []byte("abcdefgh")}
	write(t, path, hadoopState(first))
	synctest.Test(t, func(t *testing.T) {
		files, err := keys.OpenHadoopFiles([]keys.HadoopFile{{Member: "sc-h", Path: path}})
		if err != nil {
			t.Fatal(err)
		}
		store := &illStore{Store: memory.New(memory.NewState("test", nil), time.Now)}
		view := &subcluster.View{}
		cache := keys.NewCache(store, secrets, func() *subcluster.View { return view }, files)
		known := func(what string, key token.Key, want bool) {
			t.Helper()
			time.Sleep(3 * time.Second)
			if foreign := cache.Foreign(key.ID, "sc-h"); foreign == want {
				t.Fatalf("%s: key %d is foreign: %v", what, key.ID, foreign)
			}
			if !want {
				return
			}
			identifier := token.AMRM{KeyID: key.ID}.Append(nil)
			_, member, password, err := cache.Verify(t.Context(), identifier)
			if err != nil || member != "sc-h" || !key.Verify(identifier, password) {
				t.Errorf("%s: a token of key %d is of %q, %v", what, key.ID, member, err)
			}
		}
		known("at the start", first, true)
		known("at the start", second, false)
		write(t, path, hadoopState(first, second))
		known("while keys roll", second, true)
		known("while keys roll", first, true)

		// So far files were only checked for an unknown key.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- files.Run(ctx, time.Second) }()
		write(t, path, hadoopState(second))
		known("after that", first, false)
		known("after that", second, true)

		// Between its two steps Hadoop's update leaves the name without a file.
		write(t, path+".new", hadoopState(second, first))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		known("in the middle of a change", first, true)
		if err := os.Remove(path + ".new"); err != nil {
			t.Fatal(err)
		}
		known("without a file", token.Key{ID: 5}, false)
		known("without a file what was read holds", first, true)
		if err := files.Err(); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("without a file: %v", err)
		}
		write(t, path, []byte("no such thing"))
		known("with another file", token.Key{ID: 5}, false)
		known("with another file what was read holds", first, true)
		write(t, path, hadoopState(first))
		known("whole again", second, false)
		if err := files.Err(); err != nil {
			t.Errorf("whole again: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAKeyFileThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"empty":      {},
		"text":       []byte("<configuration/>"),
		"no secret":  hadoopState(token.Key{ID: 1}),
		"next alone": hadoopState(token.Key{ID: 1, Secret: []byte("12345678")}, token.Key{ID: 2}),
		"cut":        hadoopState(token.Key{ID: 1, Secret: []byte("12345678")})[:9],
		"long":       append(hadoopState(token.Key{ID: 1, Secret: []byte("12345678")}), make([]byte, 70_000)...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := keys.OpenHadoopFiles(nil); files != nil || err != nil {
		t.Errorf("of no files: %v, %v", files, err)
	}
	for name, why := range map[string]string{
		"empty":      "no current master key",
		"text":       "it has no AMRM keys",
		"no secret":  "no master key",
		"next alone": "no master key",
		"cut":        "it has no AMRM keys",
		"long":       "longer than 65536 bytes",
		"none":       "no such file or directory",
		".":          "not a regular file",
	} {
		_, err := keys.OpenHadoopFiles([]keys.HadoopFile{{Member: "sc-h", Path: filepath.Join(dir, name)}})
		if !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(err.Error(), why) ||
			!strings.Contains(err.Error(), "sc-h") || !strings.Contains(err.Error(), keys.HadoopNode) {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
	}
}

func TestWorldReadableKeyFileIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node")
	write(t, path, hadoopState(token.Key{ID: 1, Secret: []byte("12345678")}))
	files, err := keys.OpenHadoopFiles([]keys.HadoopFile{{Member: "sc-h", Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	if open := files.OpenToAll(); len(open) != 0 {
		t.Errorf("of mode 0600: %v", open)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if open := files.OpenToAll(); len(open) != 1 || open[0] != path {
		t.Errorf("of mode 0644: %v", open)
	}
}
