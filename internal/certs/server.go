// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// soon is the time before its end from which a certificate is reported.
const soon = 30 * 24 * time.Hour

// Server has the certificate of new connections, of a server or of a client that shows one. One goroutine may call
// Check; connections read meanwhile.
type Server struct {
	store   Store
	current atomic.Pointer[tls.Certificate]

	// Of Check.
	files  watched
	warned time.Time // end of the certificate whose end was reported
}

// Open reads the certificate of a store.
func Open(store Store, now time.Time) (*Server, error) {
	s := &Server{store: store, files: watched{files: store.Files(), seen: state(store.Files())}}
	c, err := store.Load(now)
	if err != nil {
		return nil, err
	}
	s.current.Store(c)
	return s, nil
}

// End is the time at which the certificate in force expires.
func (s *Server) End() time.Time { return s.current.Load().Leaf.NotAfter }

// ExpiresSoon reports whether the certificate in force should be replaced now.
func (s *Server) ExpiresSoon(now time.Time) bool { return now.Add(soon).After(s.End()) }

// Check reads changed files again. If they cannot be used, the previous certificate stays in force; the next call tries
// again, and a reason is logged once.
func (s *Server) Check(now time.Time, log *slog.Logger) {
	file := s.store.Files()[0]
	replaced, err := s.files.check(func() error {
		c, err := s.store.Load(now)
		if err == nil {
			s.current.Store(c)
		}
		return err
	})
	switch {
	case replaced:
		log.Info("TLS certificate replaced", "file", file, "expires", s.End())
	case err != nil:
		log.Error("failed to replace the TLS certificate; using the previous one", "error", err, "expires", s.End(),
			"try", "write a certificate with its key; it is read again by itself")
	}
	if end := s.End(); s.ExpiresSoon(now) && !end.Equal(s.warned) {
		s.warned = end
		log.Warn("the TLS certificate expires soon", "file", file, "expires", end, "try", "replace the file")
	}
}

// Run checks the files until the context ends.
func (s *Server) Run(ctx context.Context, every time.Duration, log *slog.Logger) error {
	s.Check(time.Now(), log)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			s.Check(now, log)
		}
	}
}

// suites are the ciphers of TLS 1.2: with forward secrecy and authenticated encryption. Those of TLS 1.3 all are.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// Config is the configuration of the server's TLS. excluded are names of ciphers that it must not use. A name that it
// would not use anyway is no error.
func (s *Server) Config(excluded []string) (*tls.Config, error) {
	allowed := slices.DeleteFunc(slices.Clone(suites), func(id uint16) bool {
		return slices.Contains(excluded, tls.CipherSuiteName(id))
	})
	if len(allowed) == 0 {
		return nil, fmt.Errorf("all ciphers of TLS 1.2 are excluded")
	}
	for _, name := range excluded {
		if strings.HasPrefix(name, "TLS_AES_") || name == "TLS_CHACHA20_POLY1305_SHA256" {
			return nil, fmt.Errorf("%s is a cipher of TLS 1.3, which creel cannot exclude", name)
		}
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		CipherSuites: allowed,
		NextProtos:   []string{HTTP11},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.current.Load(), nil
		},
	}, nil
}
