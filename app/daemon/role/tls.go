// SPDX-License-Identifier: Apache-2.0

package role

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/remote"
)

// Keys of TLS at web ports, and of calls to them.
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
	routerTLSAddress = "yarn.router.webapp.https.address"
	truststore       = "ssl.client.truststore.location"
	truststoreWord   = "ssl.client.truststore.password"
	needCertificate  = "hadoop.ssl.require.client.cert"
	clientSigners    = "ssl.server.truststore.location"
	clientSignerWord = "ssl.server.truststore.password"
	ownKeystore      = "ssl.client.keystore.location"
	ownKeystoreWord  = "ssl.client.keystore.password"
	ownKeyWord       = "ssl.client.keystore.keypassword"
	certificateCheck = 10 * time.Second // Hadoop's ssl.server.stores.reload.interval
)

// httpsOnly reports whether web ports use TLS.
func httpsOnly(s *settings.Settings) bool { return s.String(httpPolicy) == "HTTPS_ONLY" }

// rmWeb returns the setting with the address of a ResourceManager's web port.
func rmWeb(s *settings.Settings) (key string) {
	if httpsOnly(s) {
		return rmWebTLSAddress
	}
	return rmWebAddress
}

// routerWeb returns the setting with the address of a router's web port.
func routerWeb(s *settings.Settings) (key string) {
	if httpsOnly(s) {
		return routerTLSAddress
	}
	return routerPlainAddress
}

// routerPlainAddress is the setting of the routers' web port without TLS.
const routerPlainAddress = "yarn.router.webapp.address"

// readTLS reads the settings of TLS, and the certificate.
func readTLS(s *settings.Settings) (*certs.Server, *tls.Config, error) {
	store, err := certificateStore(s)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := certs.Open(store, time.Now())
	if err != nil {
		return nil, nil, err
	}
	config, err := certificate.Config(s.List(webWeakCiphers))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", webWeakCiphers, err)
	}
	if !s.Bool(needCertificate) {
		return certificate, config, nil
	}
	signers, err := signersOfClients(s)
	if err != nil {
		return nil, nil, err
	}
	signers.VerifyClients(config)
	return certificate, config, nil
}

// signersOfClients reads the signers of the clients that a web port serves.
func signersOfClients(s *settings.Settings) (*certs.Trust, error) {
	if s.String(clientSigners) == "" { // not the machine's: everyone has a certificate of theirs
		return nil, fmt.Errorf("%s is true, and %s in ssl-server.xml is not set", needCertificate, clientSigners)
	}
	return trustIn(s, clientSigners, clientSignerWord, slog.Default())
}

// trusted reads the signers that calls to web ports trust: those of Hadoop's truststore, else the machine's.
func trusted(s *settings.Settings, log *slog.Logger) (*certs.Trust, error) {
	return trustIn(s, truststore, truststoreWord, log)
}

// trustIn reads the truststore that a setting names. word is the setting of its password.
func trustIn(s *settings.Settings, store, word string, log *slog.Logger) (*certs.Trust, error) {
	password, err := passwordOf(s, word)
	if err != nil {
		return nil, err
	}
	return certs.OpenTrust(s.String(store), password, log)
}

// present makes calls to web ports show the certificate of Hadoop's keystore of clients, if the cluster's ports need
// one.
func present(s *settings.Settings, trust *certs.Trust) (err error) {
	if !httpsOnly(s) || !s.Bool(needCertificate) {
		return nil
	}
	own := certs.Store{Keystore: s.String(ownKeystore)}
	if own.Keystore == "" {
		return fmt.Errorf("%s is true, and it is not set in ssl-client.xml", needCertificate)
	}
	if own.Password, err = passwordOf(s, ownKeystoreWord); err != nil {
		return err
	}
	if own.KeyPassword, err = passwordOf(s, ownKeyWord); err != nil {
		return err
	}
	return trust.Present(own, time.Now())
}

// dialTLS makes the connections of calls to web ports with TLS.
func dialTLS(s *settings.Settings) (remote.DialTLS, error) {
	trust, err := trusted(s, slog.Default())
	if err != nil {
		return nil, s.Problem(truststore, err.Error(), "")
	}
	if err := present(s, trust); err != nil {
		return nil, s.Problem(ownKeystore, err.Error(), "")
	}
	return trust.DialTLS((&net.Dialer{Timeout: webConnectTime}).DialContext, certs.HTTP11), nil
}

// webConnectTime bounds the connection to a web port.
const webConnectTime = 5 * time.Second

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
	if _, _, err := readTLS(s); err != nil {
		return true, err.Error()
	}
	return false, ""
}

// withoutTLS reports whether a setting of TLS is set at a web port without TLS.
func withoutTLS(key string) func(*settings.Settings) (bool, string) {
	return func(s *settings.Settings) (bool, string) { return !httpsOnly(s) && s.String(key) != "", "" }
}

// unreadableTrust reports a truststore that cannot be used.
func unreadableTrust(s *settings.Settings) (bool, string) {
	if _, err := trusted(s, slog.Default()); err != nil {
		return true, err.Error()
	}
	return false, ""
}

// nothingToShow reports a certificate that calls to web ports need and cannot show.
func nothingToShow(s *settings.Settings) (bool, string) {
	if err := present(s, &certs.Trust{}); err != nil {
		return true, err.Error()
	}
	return false, ""
}
