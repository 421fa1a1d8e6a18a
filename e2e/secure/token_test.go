// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
)

// Hadoop's client logs in by a delegation token, which needs no Kerberos, at each protection. It does not use a weaker
// one than its own setting.
func TestHadoopsClientUsesTokenAtEachProtection(t *testing.T) {
	const known = "\x0a\x05alice" // the owner
	password := []byte("twenty bytes of hmac")
	names := map[hrpc.Protection]string{
		hrpc.Authentication: "authentication", hrpc.Integrity: "integrity", hrpc.Privacy: "privacy",
	}
	for offered, name := range names {
		address := serve(t, &KDC{Realm: "CREEL.TEST"}, hrpc.Config{
			Protections: []hrpc.Protection{offered},
			Tokens: func(identifier []byte) ([]byte, hrpc.Identity, error) {
				if string(identifier) != known {
					return nil, hrpc.Identity{}, errors.New("no such token")
				}
				return password, hrpc.Identity{User: "alice", Principal: "token"}, nil
			},
		})
		file := filepath.Join(t.TempDir(), "tokens")
		held := token.Credentials{}.With("rm", token.Token{
			Identifier: []byte(known), Password: password, Kind: token.KindDelegation, Service: address,
		})
		if err := os.WriteFile(file, held.Append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
		run := func(protection string) hadoop.Result {
			return hadoop.Client{
				Conf: hadoop.Addresses{Client: address}.Conf().With(hadoop.Conf{"hadoop.rpc.protection": protection}),
				Env:  []string{"HADOOP_TOKEN_FILE_LOCATION=" + file},
			}.Run(t, hadoop.ApplicationCLI, "application", "-list")
		}
		if n := strings.Count(run(name).OK(t).Stdout, "token as alice by TOKEN"); n != applications {
			t.Errorf("%s: %d applications", name, n)
		}
		if offered == hrpc.Integrity {
			if r := run("privacy"); r.Code == 0 || !strings.Contains(r.All, "No common protection layer") {
				t.Errorf("a stricter client: code %d\n%.3000s", r.Code, r.All)
			}
		}
	}
}
