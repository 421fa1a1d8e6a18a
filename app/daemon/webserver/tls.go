// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"bytes"
	"crypto/tls"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/creelrm/creel/internal/ratelog"
)

// plain returns the connection below TLS.
func plain(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// strictTransport demands of browsers that they use TLS for this host.
func strictTransport(next http.Handler, age time.Duration) http.Handler {
	if age <= 0 {
		return next
	}
	value := []string{"max-age=" + strconv.FormatInt(int64(age/time.Second), 10)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Strict-Transport-Security"] = value
		next.ServeHTTP(w, r)
	})
}

// withCertificate rejects clients that showed no certificate of a trusted signer, at all paths but those for health.
func withCertificate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		health := r.URL.Path == "/livez" || r.URL.Path == "/readyz"
		if !health && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			http.Error(w, "This web port needs a certificate of the client, by a signer in its ssl.server.truststore.location.",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// errorLog returns the log of an http.Server. Every stranger can cause failed handshakes, so their lines are limited.
func (f *Figures) errorLog(at net.Addr) *log.Logger {
	return log.New(&errorLines{at: at.String()}, "", 0)
}

// errorLines writes the lines of an http.Server's log.
type errorLines struct {
	at         string
	handshakes ratelog.Line
}

func (e *errorLines) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if !bytes.Contains(line, []byte("TLS handshake error")) {
		slog.Warn("web port: "+text, "address", e.at)
		return len(line), nil
	}
	if count, write := e.handshakes.Happened(time.Now()); write {
		slog.Warn("web port: TLS handshakes failed", "address", e.at, "count", count, "last", text,
			"try", "find the client; it may not trust the certificate, show one by another signer, or lack TLS 1.2")
	}
	return len(line), nil
}
