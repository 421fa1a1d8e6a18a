// SPDX-License-Identifier: Apache-2.0

package role

import (
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/username"
)

// authToLocal has the rules by which login names become users.
const authToLocal = "hadoop.security.auth_to_local"

// nameRules returns the rules from login names to users; nil if they are not configured. With Kerberos the rule is then
// DEFAULT, as in Hadoop: users of other realms are no users of the same name.
func nameRules(s *settings.Settings) (*username.Rules, error) {
	text, mechanism := s.String(authToLocal), s.String(authToLocal+".mechanism")
	if origin(s, authToLocal) == "default" {
		if !secure(s) {
			return nil, nil
		}
		text = "DEFAULT"
	}
	rules, err := username.ParseRules(text, mechanism, "")
	if err != nil || !rules.HasDefault() {
		return rules, err
	}
	realm, err := defaultRealm(kerberos.ConfigPath())
	if err != nil {
		return nil, err
	}
	return username.ParseRules(text, mechanism, realm)
}

// defaultRealm reads the default realm from a krb5.conf, "" if there is no such file.
func defaultRealm(path string) (string, error) {
	text, err := kerberos.ConfigText(path)
	return username.DefaultRealm(text), err
}
