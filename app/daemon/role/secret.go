// SPDX-License-Identifier: Apache-2.0

package role

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/signed"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
)

// minSecret is the minimum length of a secret in bytes: 128 bits.
const minSecret = 16

// secretFrom reads creel.cluster.secret-file, and creates it if it is missing: 256 random bits, as text that can be
// copied, readable only by its owner (0600). The secret is never stored in the store.
func secretFrom(file string) ([]byte, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := makeSecret(file); err != nil {
			return nil, &settings.Problem{Key: "creel.cluster.secret-file", Origin: file, Why: fileReason(err)}
		}
	}
	return readSecret(file)
}

// signerOf returns a signer and verifier of members with the secret of a file; nil if there is no file.
func signerOf(file string) (*subcluster.Signer, error) {
	if file == "" {
		return nil, nil
	}
	secret, err := secretFrom(file)
	if err != nil {
		return nil, err
	}
	return subcluster.NewSigner(secret)
}

// members returns the source of a daemon's members: the store, or its signed members only.
func members(s *daemon.Service, store statestore.Store, signer *subcluster.Signer, log *slog.Logger) watch.Source {
	refused := func() int64 { return 0 }
	var source watch.Source = store
	if signer != nil {
		reader := signed.New(store, signer, log)
		source, refused = reader, reader.Refused
	}
	s.Health.Gauge("creel_members_refused",
		"Members in the state store that are not signed under the cluster's secret, or have a record of an earlier epoch.",
		func() float64 { return float64(refused()) })
	return source
}

// checkSecret returns the error that secretFrom would return, as far as possible without creating the file. A
// configuration may be checked by a user other than the daemon's.
func checkSecret(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		_, err := readSecret(file)
		return err
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return &settings.Problem{Key: "creel.cluster.secret-file", Origin: file, Why: fileReason(err)}
	}
	return nil
}

func readSecret(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	switch {
	case err != nil:
		err = &settings.Problem{Key: "creel.cluster.secret-file", Origin: file, Why: fileReason(err)}
	case len(b) < minSecret:
		err = &settings.Problem{
			Key:    "creel.cluster.secret-file",
			Origin: file,
			Why:    fmt.Sprintf("it holds %d bytes", len(b)),
			Try:    "write at least 16 random bytes, or remove it: then one is created",
		}
	}
	return b, err
}

// makeSecret creates the complete file or none. If several daemons start at the same time, the first one's secret
// stays.
func makeSecret(file string) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".secret-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		temporary.Close()
		return err
	}
	_, err = temporary.WriteString(hex.EncodeToString(random))
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
