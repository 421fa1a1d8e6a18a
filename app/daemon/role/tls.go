// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/settings"
)

// Keys of TLS at web ports.
const (
	httpPolicy       = "yarn.http.policy"
	pemCertificate   = "creel.http.tls.certificate"
	pemKey           = "creel.http.tls.key"
	webKeystore      = "ssl.server.keystore.location"
	webKeystoreType  = "ssl.server.keystore.type"
	webKeystoreWord  = "ssl.server.keystore.password"
	webKeyWord       = "ssl.server.keystore.keypassword"
	webWeakCiphers   = "ssl.server.exclude.cipher.list"
	rmWebAddress     = "yarn.resourcemanager.webapp.address"
	rmWebTLSAddress  = "yarn.resourcemanager.webapp.https.address"
	certificateCheck = 10 * time.Second // Hadoop's ssl.server.stores.reload.interval
)

// httpsOnly reports whether a ResourceManager's web port uses TLS.
func httpsOnly(s *settings.Settings) bool { return s.String(httpPolicy) == "HTTPS_ONLY" }

// rmWeb returns the setting with the address of a ResourceManager's web port.
func rmWeb(s *settings.Settings) (key string) {
	if httpsOnly(s) {
		return rmWebTLSAddress
	}
	return rmWebAddress
}

// webTLS is the TLS of a web port.
type webTLS struct {
	certificate *certs.Server
	config      *tls.Config
}

// readTLS reads the settings of TLS, and the certificate.
func readTLS(s *settings.Settings) (*webTLS, error) {
	store, err := certificateStore(s)
	if err != nil {
		return nil, err
	}
	certificate, err := certs.Open(store, time.Now())
	if err != nil {
		return nil, err
	}
	config, err := certificate.Config(s.List(webWeakCiphers))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", webWeakCiphers, err)
	}
	return &webTLS{certificate, config}, nil
}

// certificateStore returns the place of the certificate: PEM files of creel's settings, else a keystore of Hadoop's.
func certificateStore(s *settings.Settings) (store certs.Store, err error) {
	store = certs.Store{Certificate: s.String(pemCertificate), Key: s.String(pemKey), Keystore: s.String(webKeystore)}
	switch kind := strings.ToLower(s.String(webKeystoreType)); {
	case store.Certificate != "" && store.Key != "":
		return store, nil
	case store.Certificate != "":
		return store, errors.New(pemKey + " is not set")
	case store.Key != "":
		return store, errors.New(pemCertificate + " is not set")
	case store.Keystore == "":
		return store, fmt.Errorf("neither %s in ssl-server.xml nor %s is set", webKeystore, pemCertificate)
	case kind != "jks" && kind != "pkcs12":
		return store, fmt.Errorf("%s: keystores of type %s are not supported, jks and pkcs12 are", webKeystoreType, kind)
	}
	if store.Password, err = passwordOf(s, webKeystoreWord); err == nil {
		store.KeyPassword, err = passwordOf(s, webKeyWord)
	}
	return store, err
}

// passwordOf returns a password: of the credential providers, else of the settings.
func passwordOf(s *settings.Settings, key string) (string, error) {
	if secret, found, err := credential(s, key); found || err != nil {
		return secret, err
	}
	return s.String(key), nil
}

// incompleteTLS reports what a web port with TLS lacks.
func incompleteTLS(s *settings.Settings) (bool, string) {
	if !httpsOnly(s) {
		return false, ""
	}
	if _, err := readTLS(s); err != nil {
		return true, err.Error()
	}
	return false, ""
}

// withoutTLS reports whether a setting of TLS is set at a web port without TLS.
func withoutTLS(key string) func(*settings.Settings) (bool, string) {
	return func(s *settings.Settings) (bool, string) { return !httpsOnly(s) && s.String(key) != "", "" }
}

// serve configures a web port with TLS.
func (t *webTLS) serve(s *settings.Settings, c *webserver.Config) {
	c.TLS, c.StrictTransport = t.config, s.Duration("creel.http.tls.hsts-max-age")
}

// watch adds the task that reads a changed certificate.
func (t *webTLS) watch(d *daemon.Service, log *slog.Logger) {
	if t != nil {
		d.Add("certificate", func(ctx context.Context) error { return t.certificate.Run(ctx, certificateCheck, log) })
	}
}
