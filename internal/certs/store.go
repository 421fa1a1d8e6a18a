// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// maxFile bounds a keystore or a PEM file, in bytes.
const maxFile = 1 << 20

// Store is the place of a certificate and its key. Certificate has precedence over Keystore.
type Store struct {
	Certificate, Key string // PEM files

	Keystore    string // JKS or PKCS12
	Password    string
	KeyPassword string // of the key; "": the same
}

// Files are the paths of the store.
func (s Store) Files() []string {
	if s.Certificate != "" || s.Key != "" {
		return []string{s.Certificate, s.Key}
	}
	return []string{s.Keystore}
}

// Load reads the certificate. It returns an error for one that no client would accept at this time.
func (s Store) Load(now time.Time) (*tls.Certificate, error) {
	var files [][]byte
	for _, path := range s.Files() {
		b, err := readFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, b)
	}
	var c tls.Certificate
	var err error
	if len(files) == 2 {
		c, err = tls.X509KeyPair(files[0], files[1])
	} else {
		c, err = fromKeystore(files[0], s.Password, s.KeyPassword)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.Files()[0], err)
	case !now.Before(c.Leaf.NotAfter):
		return nil, fmt.Errorf("%s: the certificate expired at %s", s.Files()[0],
			c.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.Leaf.NotBefore):
		return nil, fmt.Errorf("%s: the certificate is not valid before %s", s.Files()[0],
			c.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return &c, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read", path)
	case len(b) > maxFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return b, nil
}

// jksMagic begins a keystore of type JKS. Java's tools write PKCS12 whatever the file's name is, so the content
// decides.
var jksMagic = []byte{0xfe, 0xed, 0xfe, 0xed}

// fromKeystore reads the only key of a keystore, with its certificates.
func fromKeystore(b []byte, password, keyPassword string) (tls.Certificate, error) {
	if keyPassword == "" {
		keyPassword = password
	}
	var key, chain []byte
	var err error
	if bytes.HasPrefix(b, jksMagic) {
		key, chain, err = fromJKS(b, password, keyPassword)
	} else {
		key, chain, err = fromPKCS12(b, password)
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

var errPassword = errors.New("the keystore is damaged, or the password is wrong")

func fromJKS(b []byte, password, keyPassword string) (key, chain []byte, err error) {
	store := keystore.New(keystore.WithOrderedAliases())
	if err := store.Load(bytes.NewReader(b), []byte(password)); err != nil {
		return nil, nil, errPassword
	}
	found := false
	for _, alias := range store.Aliases() {
		if !store.IsPrivateKeyEntry(alias) {
			continue
		}
		if found {
			return nil, nil, errors.New("the keystore has several keys: keep one of them")
		}
		found = true
		entry, err := store.GetPrivateKeyEntry(alias, []byte(keyPassword))
		if err != nil {
			return nil, nil, fmt.Errorf("the password of key %q is wrong", alias)
		}
		key = entry.PrivateKey
		for _, c := range entry.CertificateChain {
			chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Content})...)
		}
	}
	if !found {
		return nil, nil, errors.New("the keystore has no key")
	}
	return key, chain, nil
}

func fromPKCS12(b []byte, password string) (key, chain []byte, err error) {
	private, leaf, more, err := pkcs12.DecodeChain(b, password)
	if err != nil {
		if errors.Is(err, pkcs12.ErrIncorrectPassword) {
			err = errPassword
		}
		return nil, nil, err
	}
	for _, c := range append([]*x509.Certificate{leaf}, more...) {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return key, chain, err
}
