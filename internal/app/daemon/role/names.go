// SPDX-License-Identifier: Apache-2.0

package role

import (
	"io"
	"os"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/username"
)

// authToLocal has the rules by which login names become users.
const authToLocal = "hadoop.security.auth_to_local"

// krb5Conf is where Java reads the default realm.
const krb5Conf = "/etc/krb5.conf"

// nameRules returns the rules from login names to users; nil if they are not configured.
func nameRules(s *settings.Settings) (*username.Rules, error) {
	text, mechanism := s.String(authToLocal), s.String(authToLocal+".mechanism")
	if origin(s, authToLocal) == "default" {
		return nil, nil
	}
	rules, err := username.ParseRules(text, mechanism, "")
	if err != nil || !rules.HasDefault() {
		return rules, err
	}
	realm, err := defaultRealm(krb5Conf)
	if err != nil {
		return nil, err
	}
	return username.ParseRules(text, mechanism, realm)
}

// defaultRealm reads the default realm from a krb5.conf, "" if there is no such file.
func defaultRealm(path string) (string, error) {
	f, err := os.Open(path)
	switch {
	case os.IsNotExist(err):
		return "", nil
	case err != nil:
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return username.DefaultRealm(string(text)), err
}
