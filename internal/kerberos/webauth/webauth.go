// SPDX-License-Identifier: Apache-2.0

package webauth

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/spnego"
)

// Transport is a transport that logs in where a server asks for it.
type Transport struct {
	base  http.RoundTripper
	login func() (*kerberos.Login, error)
}

// New makes a transport over another one. login is called once, when a server first asks for a ticket.
func New(base http.RoundTripper, login func() (*kerberos.Login, error)) *Transport {
	return &Transport{base, sync.OnceValues(login)}
}

// LoginError is a login that failed. The request was not served.
type LoginError struct {
	Host string
	Err  error
}

func (e *LoginError) Error() string { return e.Host + " asks for a Kerberos ticket: " + e.Err.Error() }
func (e *LoginError) Unwrap() error { return e.Err }

// RoundTrip is http.RoundTripper's.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	first, err := t.base.RoundTrip(r)
	if err != nil || !spnego.Asks(first.StatusCode, first.Header) || r.Header.Get("Authorization") != "" {
		return first, err
	}
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return first, nil // it cannot be sent again
	}
	// A body that was read to its end frees the connection for the next request; an error costs a new connection.
	io.Copy(io.Discard, io.LimitReader(first.Body, 64<<10))
	first.Body.Close()
	answer, err := t.again(r)
	if err != nil {
		return nil, &LoginError{r.URL.Host, err}
	}
	return answer, nil
}

// again sends a request with a ticket.
func (t *Transport) again(r *http.Request) (*http.Response, error) {
	login, err := t.login()
	if err != nil {
		return nil, err
	}
	host := strings.ToLower(strings.TrimSuffix(r.URL.Hostname(), "."))
	ticket, err := login.Ticket(r.Context(), gssapi.Principal{Names: []string{"HTTP", host}})
	if err != nil {
		return nil, err
	}
	client, header, err := spnego.Begin(ticket, time.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	if r.GetBody != nil {
		if out.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	out.Header.Set("Authorization", header)
	answer, err := t.base.RoundTrip(out)
	if err != nil {
		return nil, fmt.Errorf("after the login: %w", err)
	}
	if err := client.Finish(answer.StatusCode, answer.Header); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}
