// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/internal/settings"
)

// secretFiles lists the files with secrets that a daemon reads: the cluster's secret, passwords and keys of the store,
// keystores and their password, keytabs, the secret of cookies, and configuration files with a password of the store.
func secretFiles(s *settings.Settings) (paths []string) {
	if file := s.String("creel.cluster.secret-file"); file != "" {
		paths = append(paths, file)
	}
	for _, key := range []string{
		"creel.store.password-file", "creel.store.sentinel-password-file", "creel.rm.state.password-file",
	} {
		if file := s.String(key); file != "" {
			paths = append(paths, file)
		}
	}
	for _, provider := range s.List(credentialProviders) {
		if file, ok := keystoreOf(provider); ok {
			paths = append(paths, file)
		}
	}
	if file := keystorePasswordFile(s); file != "" {
		paths = append(paths, file)
	}
	if file := s.String(rmKeytab); secure(s) && file != "" {
		paths = append(paths, file)
	}
	for _, key := range []string{routerKeytab, nmKeytab} {
		if file := s.String(key); secure(s) && origin(s, key) != "default" && !slices.Contains(paths, file) {
			paths = append(paths, file)
		}
	}
	for _, key := range []string{pemKey, webKeystore} {
		if file := s.String(key); httpsOnly(s) && file != "" {
			paths = append(paths, file)
		}
	}
	for _, key := range []string{zkKeytab, zkKeystore, redisKey, redisKeystore} {
		if file := s.String(key); file != "" && !slices.Contains(paths, file) {
			paths = append(paths, file)
		}
	}
	for _, key := range []string{rmWebKeytab, webKeytab, webSecretFile} {
		if file := s.String(key); webByTicket(s) && file != "" && !slices.Contains(paths, file) {
			paths = append(paths, file)
		}
	}
	for _, key := range []string{"creel.store.url", stateURL} {
		v, ok := s.Lookup(key)
		if ok && v.Origin.Source == "file" && hasPassword(v.Text) && !slices.Contains(paths, v.Origin.File) {
			paths = append(paths, v.Origin.File)
		}
	}
	return paths
}

// hasPassword reports whether a store's URL has a password of the server or of its Sentinels.
func hasPassword(store string) bool {
	_, rest, _ := strings.Cut(store, "://")
	login, _, found := strings.Cut(rest, "@")
	_, password, _ := strings.Cut(login, ":")
	_, query, _ := strings.Cut(rest, "?")
	parameters, err := url.ParseQuery(query)
	return found && password != "" || err == nil && parameters.Has("sentinel_password")
}

// openToAll lists the files that every user of this machine may read. A file that does not exist is not open.
func openToAll(files []string) (open []string) {
	for _, path := range files {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
			open = append(open, path)
		}
	}
	return open
}

// watchSecrets logs a warning for each file with a secret that every user of this machine may read, and adds the
// metric of such files. more may be nil.
func watchSecrets(d *daemon.Service, files []string, more func() []string, log *slog.Logger) {
	for _, path := range openToAll(files) {
		log.Warn("every user of this machine can read a file with a secret",
			"file", path, "try", "chmod o-rwx "+path)
	}
	if d.Health == nil {
		return
	}
	d.Health.Gauge("creel_secret_files_open", "Files with secrets that every user of this machine may read.",
		func() float64 {
			n := len(openToAll(files))
			if more != nil {
				n += len(more())
			}
			return float64(n)
		})
}
