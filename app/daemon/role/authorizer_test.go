// SPDX-License-Identifier: Apache-2.0

package role

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnusableOutsideAuthoriserStopsTheStart(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const acls, away, here = "yarn.acl.enable=true", "creel.authorizer.url=http://opa.example.org/v1/data/yarn/allow",
		"creel.authorizer.url=http://localhost:8181/v1/data/yarn/allow"
	for want, given := range map[string][]string{
		"":                            {acls, here, "creel.authorizer.token-file=" + token},
		"yarn.acl.enable is false":    {here},
		"no address of http or https": {acls, "creel.authorizer.url=opa:8181"},
		"has a password":              {acls, "creel.authorizer.url=http://a:b@localhost:8181/v1/data/x"},
		"sent unencrypted":            {acls, away, "creel.authorizer.token-file=" + token},
		"creel.authorizer.token-file": {acls, here, "creel.authorizer.token-file=/nowhere/token"},
		"creel.authorizer.ca-file":    {acls, here, "creel.authorizer.ca-file=" + token},
	} {
		o, err := outsideAuthorizer(minimal(t, given...), nil)
		if want == "" && (err != nil || o == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v", given, o, err)
		}
	}
	if o, err := outsideAuthorizer(minimal(t), nil); o != nil || err != nil {
		t.Errorf("without an address: %v, %v", o, err)
	}
	if word, err := bearerToken(token); word != "word" || err != nil {
		t.Errorf("%q, %v", word, err)
	}
}
