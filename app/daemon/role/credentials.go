// SPDX-License-Identifier: Apache-2.0

package role

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/creelrm/creel/internal/jceks"
	"github.com/creelrm/creel/internal/settings"
)

const (
	credentialProviders = "hadoop.security.credential.provider.path"
	keystorePassword    = "hadoop.security.credstore.java-keystore-provider.password-file"
	// keystoreVariable is the environment variable with the keystores' password, as in Hadoop.
	keystoreVariable = "HADOOP_CREDSTORE_PASSWORD"
)

// keystoreOf returns the file of a credential provider, jceks://file/PATH or localjceks://file/PATH. ok is false for
// other providers.
func keystoreOf(provider string) (file string, ok bool) {
	u, err := url.Parse(provider)
	if err != nil || u.Scheme != "jceks" && u.Scheme != "localjceks" || u.Host != "file" || u.User != nil ||
		len(u.Path) < 2 || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	return u.Path, true
}

// credential returns the secret of an alias in the first credential provider that has it.
func credential(s *settings.Settings, alias string) (secret string, found bool, err error) {
	providers := s.List(credentialProviders)
	if len(providers) == 0 {
		return "", false, nil
	}
	password, err := passwordOfKeystores(s)
	if err != nil {
		return "", false, err
	}
	for _, provider := range providers {
		path, ok := keystoreOf(provider)
		if !ok {
			continue // the start is refused
		}
		file, err := readUpTo(path, jceks.MaxSize)
		if err != nil {
			return "", false, s.Problem(credentialProviders, path+" cannot be read: "+fileReason(err), "")
		}
		store, err := jceks.Open(file, password)
		if err != nil {
			return "", false, s.Problem(credentialProviders, path+": "+err.Error(),
				"check "+keystoreVariable+" and "+keystorePassword)
		}
		b, found, err := store.Secret(alias)
		switch {
		case err != nil:
			return "", false, s.Problem(credentialProviders, path+", "+alias+": "+err.Error(), "make it again")
		case found:
			return string(b), true, nil
		}
	}
	return "", false, nil
}

// keystorePasswordFile returns the path of the file with the keystores' password, "" if there is none. Hadoop looks for
// the name in its configuration directory.
func keystorePasswordFile(s *settings.Settings) string {
	file := s.String(keystorePassword)
	if v, ok := s.Lookup(keystorePassword); file != "" && ok && v.Origin.Source == "file" && !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(v.Origin.File), file)
	}
	return file
}

// passwordOfKeystores returns the password of the keystores: from the environment, else from its file, else Hadoop's.
func passwordOfKeystores(s *settings.Settings) (string, error) {
	if password, set := os.LookupEnv(keystoreVariable); set {
		return password, nil
	}
	path := keystorePasswordFile(s)
	if path == "" {
		return "none", nil
	}
	b, err := readUpTo(path, maxPassword)
	if err != nil {
		return "", s.Problem(keystorePassword, "it cannot be read: "+fileReason(err), "")
	}
	if len(b) > maxPassword {
		return "", s.Problem(keystorePassword, "it is too long for a password",
			"write the password into it, and nothing else")
	}
	return strings.TrimSpace(string(b)), nil
}

// readUpTo reads a file. Of a longer file it returns one byte more than most.
func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
