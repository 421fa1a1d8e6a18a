// SPDX-License-Identifier: Apache-2.0

// Package username maps the login names of clients to users, for Hadoop RPC and for REST.
package username

import (
	"fmt"
	"strings"
)

// Short returns the user of a login name, like Hadoop with simple authentication and without auth_to_local rules: alice
// for alice, alice@REALM and alice/host@REALM.
func Short(name string) (string, error) {
	if !strings.ContainsAny(name, "@/") {
		return name, nil
	}
	principal, realm, hasRealm := strings.Cut(name, "@")
	user, host, hasHost := strings.Cut(principal, "/")
	switch {
	case user != "" && (host != "") == hasHost && !strings.Contains(host, "/") &&
		(realm != "") == hasRealm && !strings.ContainsAny(realm, "@/"):
		return user, nil
	case hasRealm:
		return "", fmt.Errorf("malformed user name %.80q: a @ is followed by a realm, as in user/host@REALM", name)
	}
	return name, nil // a/b/c
}
