// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// Roots reads the certificates by which a client verifies servers: from a truststore, JKS or PKCS12, or from a PEM
// file.
func Roots(path, password string) (*x509.CertPool, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if pool.AppendCertsFromPEM(b) {
		return pool, nil
	}
	var found []*x509.Certificate
	if bytes.HasPrefix(b, jksMagic) {
		found, err = trustedOfJKS(b, password)
	} else if found, err = pkcs12.DecodeTrustStore(b, password); errors.Is(err, pkcs12.ErrIncorrectPassword) {
		err = errPassword
	}
	switch {
	case err != nil && !errors.Is(err, errPassword):
		return nil, fmt.Errorf("%s is no truststore of trusted certificates (JKS, PKCS12 or PEM)", path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(found) == 0:
		return nil, fmt.Errorf("%s has no trusted certificate", path)
	}
	for _, c := range found {
		pool.AddCert(c)
	}
	return pool, nil
}

func trustedOfJKS(b []byte, password string) (found []*x509.Certificate, err error) {
	store := keystore.New(keystore.WithOrderedAliases())
	if err := store.Load(bytes.NewReader(b), []byte(password)); err != nil {
		return nil, errPassword
	}
	for _, alias := range store.Aliases() {
		if !store.IsTrustedCertificateEntry(alias) {
			continue
		}
		entry, err := store.GetTrustedCertificateEntry(alias)
		if err != nil {
			return nil, err
		}
		c, err := x509.ParseCertificate(entry.Certificate.Content)
		if err != nil {
			return nil, fmt.Errorf("the certificate %q is damaged", alias)
		}
		found = append(found, c)
	}
	return found, nil
}
