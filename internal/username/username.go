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
	parts, err := components(name)
	switch {
	case err != nil:
		return "", err
	case parts == nil:
		return name, nil
	}
	return parts[1], nil
}

// components returns the realm, the user and, if there is one, the host of a login name; nil for a name that is none of
// these, or only a user.
func components(name string) ([]string, error) {
	if !strings.ContainsAny(name, "@/") {
		return nil, nil
	}
	principal, realm, hasRealm := strings.Cut(name, "@")
	user, host, hasHost := strings.Cut(principal, "/")
	switch {
	case user != "" && (host != "") == hasHost && !strings.Contains(host, "/") &&
		(realm != "") == hasRealm && !strings.ContainsAny(realm, "@/"):
		if hasHost {
			return []string{realm, user, host}, nil
		}
		return []string{realm, user}, nil
	case hasRealm:
		return nil, fmt.Errorf("malformed user name %.80q: a @ is followed by a realm, as in user/host@REALM", name)
	}
	return nil, nil // a/b/c
}
