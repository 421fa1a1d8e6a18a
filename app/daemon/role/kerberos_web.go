// SPDX-License-Identifier: Apache-2.0

package role

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/spnego"
)

// Keys of the login of web clients.
const (
	webAuthentication = "hadoop.http.authentication.type"
	rmWebPrincipal    = "yarn.resourcemanager.webapp.spnego-principal"
	rmWebKeytab       = "yarn.resourcemanager.webapp.spnego-keytab-file"
	webPrincipal      = "hadoop.http.authentication.kerberos.principal"
	webKeytab         = "hadoop.http.authentication.kerberos.keytab"
	webSecretFile     = "hadoop.http.authentication.signature.secret.file"
	webOpen           = "hadoop.http.authentication.kerberos.endpoint.whitelist"
)

// webByTicket reports whether a daemon's web clients log in by Kerberos.
func webByTicket(s *settings.Settings) bool { return s.String(webAuthentication) == "kerberos" }

// warnOfUnusedSecret warns of a secret for cookies without hadoop.http.authentication.type=kerberos.
func warnOfUnusedSecret(s *settings.Settings) {
	if file := s.String(webSecretFile); file != "" {
		slog.Warn("web clients log in without Kerberos, and their cookies are not signed", "setting", webSecretFile,
			"value", file)
	}
}

// webAccount has the settings of the principal of a daemon's web port, as in Hadoop.
func webAccount(s *settings.Settings, role settings.Role) account {
	switch role {
	case settings.RM:
		return account{rmWebPrincipal, rmWebKeytab, "", []string{rmWeb(s), "yarn.resourcemanager.address"}}
	case settings.Router:
		return account{webPrincipal, webKeytab, "", []string{routerWeb(s), "yarn.router.clientrm.address"}}
	}
	return account{webPrincipal, webKeytab, "", nil}
}

// webLogin reads the settings of the login of web clients by Kerberos. It returns an error if anything is missing with
// which no client, or a wrong one, could log in.
func webLogin(s *settings.Settings, role settings.Role) (*spnego.Login, error) {
	conf, err := kerberos.LoadConfig(kerberos.ConfigPath())
	if err != nil {
		return nil, err
	}
	of := webAccount(s, role)
	service, err := hostPrincipal(s, of.principal, conf.DefaultRealm(), "", of.addresses...)
	if err != nil {
		return nil, err
	}
	if len(service.Names) != 2 || service.Names[0] != "HTTP" {
		return nil, fmt.Errorf("%s: web clients ask for a ticket of HTTP/host, not of %s", of.principal, service)
	}
	keys, err := serviceKeys(s.String(of.keytab), service)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.keytab, err)
	}
	secret, err := cookieSecret(s.String(webSecretFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", webSecretFile, err)
	}
	names, err := nameRules(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authToLocal, err)
	}
	return spnego.New(spnego.Config{
		Acceptor: &gssapi.Acceptor{
			Service: service, Keys: keys, Skew: conf.Skew(), Replays: gssapi.NewReplays(0), OneWay: true,
		},
		Short:  names.Short,
		Signer: spnego.NewSigner(secret),
		Valid:  s.Duration("hadoop.http.authentication.token.validity"),
		Domain: s.String("hadoop.http.authentication.cookie.domain"),
		Secure: httpsOnly(s),
		Now:    time.Now, Random: rand.Reader,
	}), nil
}

// cookieSecret reads the secret that signs cookies. Without a file it is random, and cookies end with the process.
func cookieSecret(path string) ([]byte, error) {
	if path == "" {
		secret := make([]byte, 32)
		_, err := rand.Read(secret)
		return secret, err
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist", path)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read", path)
	case len(b) < 16:
		return nil, fmt.Errorf("%s has %d bytes: a secret of fewer than 16 can be guessed", path, len(b))
	}
	return b, nil
}
