// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/username"
)

// authToLocal has the rules by which login names become users.
const authToLocal = "hadoop.security.auth_to_local"

// krb5Path is the file with the default realm: KRB5_CONFIG, or the machine's own.
func krb5Path() string { return cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf") }

// krb5Config reads the krb5.conf with its included files; a missing file is empty.
func krb5Config() (*kerberos.Config, error) {
	text, err := krb5Text(krb5Path())
	if err != nil {
		return nil, err
	}
	c, err := kerberos.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", krb5Path(), err)
	}
	return c, nil
}

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
	realm, err := defaultRealm(krb5Path())
	if err != nil {
		return nil, err
	}
	return username.ParseRules(text, mechanism, realm)
}

// defaultRealm reads the default realm from a krb5.conf, "" if there is no such file.
func defaultRealm(path string) (string, error) {
	text, err := krb5Text(path)
	return username.DefaultRealm(text), err
}

// krb5Text returns the text of a krb5.conf with its included files, "" if there is no such file.
func krb5Text(path string) (string, error) {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return "", nil
	}
	f := krb5Files{seen: map[string]bool{}}
	if err := f.read(path, 0); err != nil {
		return "", err
	}
	return f.text.String(), nil
}

// Bounds of a krb5.conf with the files that it includes.
const (
	maxKrb5Depth = 10
	maxKrb5Bytes = 1 << 20
)

// krb5Files joins a krb5.conf with the files that it includes.
type krb5Files struct {
	text strings.Builder
	seen map[string]bool
}

// includedName is a name that includedir reads, besides visible names with the suffix .conf.
var includedName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// read appends a file. Like Java, it rejects a file that is included twice, a missing one, and a relative path.
func (k *krb5Files) read(path string, depth int) error {
	switch {
	case depth > maxKrb5Depth:
		return fmt.Errorf("%s is included through more than %d files", path, maxKrb5Depth)
	case k.seen[path]:
		return fmt.Errorf("%s is included twice", path)
	}
	k.seen[path] = true
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKrb5Bytes+1))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		file, one := strings.CutPrefix(line, "include ")
		dir, all := strings.CutPrefix(line, "includedir ")
		switch {
		case one:
			err = k.include(strings.TrimSpace(file), depth)
		case all:
			err = k.includeAll(strings.TrimSpace(dir), depth)
		default:
			k.text.WriteString(line + "\n")
		}
		if err == nil && k.text.Len() > maxKrb5Bytes {
			err = fmt.Errorf("%s with its included files is longer than %d bytes", path, maxKrb5Bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *krb5Files) include(path string, depth int) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("included path %q is not absolute", path)
	}
	return k.read(filepath.Clean(path), depth+1)
}

func (k *krb5Files) includeAll(dir string, depth int) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("included path %q is not absolute", dir)
	}
	list, err := os.ReadDir(dir) // by name
	if err != nil {
		return err
	}
	for _, entry := range list {
		name := entry.Name()
		if !includedName.MatchString(name) && (name[0] == '.' || !strings.HasSuffix(name, ".conf")) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		if err := k.read(path, depth+1); err != nil {
			return err
		}
	}
	return nil
}
