// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ConfigPath is the path of the krb5.conf: KRB5_CONFIG, or the machine's own.
func ConfigPath() string { return cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf") }

// LoadConfig reads a krb5.conf with its included files. A missing file means MIT's defaults.
func LoadConfig(path string) (*Config, error) {
	text, err := ConfigText(path)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", path, err)
	}
	return c, nil
}

// ConfigText returns the text of a krb5.conf with its included files, "" if there is no such file.
func ConfigText(path string) (string, error) {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return "", nil
	}
	f := configFiles{seen: map[string]bool{}}
	if err := f.read(path, 0); err != nil {
		return "", err
	}
	return f.text.String(), nil
}

// Bounds of a krb5.conf with the files that it includes.
const (
	maxConfigDepth = 10
	maxConfigBytes = 1 << 20
)

// configFiles joins a krb5.conf with the files that it includes.
type configFiles struct {
	text strings.Builder
	seen map[string]bool
}

// includedName is a name that includedir reads, besides visible names with the suffix .conf.
var includedName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// read appends a file. Like Java, it rejects a file that is included twice, a missing one, and a relative path.
func (k *configFiles) read(path string, depth int) error {
	switch {
	case depth > maxConfigDepth:
		return fmt.Errorf("%s is included through more than %d files", path, maxConfigDepth)
	case k.seen[path]:
		return fmt.Errorf("%s is included twice", path)
	}
	k.seen[path] = true
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
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
		if err == nil && k.text.Len() > maxConfigBytes {
			err = fmt.Errorf("%s with its included files is longer than %d bytes", path, maxConfigBytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *configFiles) include(path string, depth int) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("included path %q is not absolute", path)
	}
	return k.read(filepath.Clean(path), depth+1)
}

func (k *configFiles) includeAll(dir string, depth int) error {
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
