// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/network"
	"github.com/creelrm/creel/subcluster/failover"
)

// StatusHeader has the code of a successful answer in its head: 200, 202; 304 if the call permits it.
const StatusHeader = "X-Creel-Status"

// maxBody limits a member's answer, in bytes: 100,000 applications of 1 kB fit.
const maxBody = 256 << 20

// StatusError is an unsuccessful answer of a member's REST server.
type StatusError struct {
	Member creel.SubclusterID
	Code   int
	Header http.Header
	Body   []byte // as written by the member: usually a RemoteException
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("subcluster %s answered %d: %s", e.Member, e.Code, e.Words())
}

// Unwrap returns creel.ErrEnded for 409, which of all submissions only an ended application's repeat gets; nil for
// other codes.
func (e *StatusError) Unwrap() error {
	if e.Code == http.StatusConflict {
		return creel.ErrEnded
	}
	return nil
}

// Words returns the message of a RemoteException, else the start of the member's answer.
func (e *StatusError) Words() string {
	var doc struct {
		Exception struct{ Message string } `json:"RemoteException"`
	}
	if json.Unmarshal(e.Body, &doc) == nil && doc.Exception.Message != "" {
		return Sentence(doc.Exception.Message)
	}
	return string(bytes.TrimSpace(e.Body[:min(len(e.Body), 300)]))
}

// Sentence returns the first line of a member's message, without the Java classes before it.
func Sentence(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	for {
		class, rest, ok := strings.Cut(line, ": ")
		if !ok || !strings.HasSuffix(class, "Exception") || strings.Contains(class, " ") {
			return strings.TrimSpace(line)
		}
		line = rest
	}
}

// ActiveWeb has the scheme and host:port of the member's web pages, in an HA pair the active one's; without an address
// it has no host. With two hosts it makes a call, because a standby answers paths below /proxy by itself, and wrongly.
func (m *Member) ActiveWeb(ctx context.Context) (url.URL, error) {
	if len(m.web.hosts) > 1 {
		_, _, err := m.Web(ctx, Read, http.MethodGet, "/ws/v1/cluster/userinfo", "", nil, nil)
		if errors.Is(err, creel.ErrUnavailable) {
			return url.URL{}, err
		}
	}
	return url.URL{Scheme: m.addresses.Scheme(), Host: m.pair.First(m.web.hosts)}, nil
}

// Web calls the member's REST server. path starts with a slash and includes the query. The answer is read whole.
// Codes from 300 on are returned as *StatusError, except 304 (Not Modified), the answer to If-None-Match. Calls that
// the member's release lacks are not sent: the error is of kind ErrNotInRelease.
func (m *Member) Web(
	ctx context.Context,
	kind Kind,
	method, path, user string,
	header http.Header,
	body []byte,
) (answer []byte, head http.Header, err error) {
	if err := m.lackingPath(method, path); err != nil {
		return nil, nil, err
	}
	err = m.guard(ctx, kind, func(ctx context.Context) error {
		if len(m.web.hosts) == 0 {
			return m.without("web")
		}
		return eachWeb(ctx, &m.pair, m.web.hosts, kind != Write, func(address string) error {
			var code int
			at := m.addresses.Scheme() + "://" + address
			code, head, answer, err = callWeb(ctx, m.pool.http, at, method, path, header, body)
			var silence *noAnswer
			switch {
			case errors.As(err, &silence):
				return &Unavailable{Member: m.ID, Sent: silence.sent, Err: silence.error}
			case err != nil:
				return err
			case code >= 300 && code != http.StatusNotModified:
				return &StatusError{Member: m.ID, Code: code, Header: head, Body: answer}
			}
			return nil
		})
	})
	return answer, head, err
}

// noAnswer is the error of an HTTP call without an answer.
type noAnswer struct {
	error
	sent bool // it may have been served
}

// Error is the cause in words, without the address and the query that net/http repeats: agents log it.
func (n *noAnswer) Error() string { return network.InWords(n.error).Error() }

// MayBeServed is called by package failover.
func (n *noAnswer) MayBeServed() bool { return n.sent }

func (n *noAnswer) Unwrap() error { return n.error }

// callWeb calls the REST server of a ResourceManager at a scheme and host:port, and reads the whole answer, whatever
// its code, with the code in its head. A standby's answer is an error of kind creel.ErrStandby, a missing answer is
// *noAnswer.
func callWeb(
	ctx context.Context,
	client *http.Client,
	at, method, path string,
	header http.Header,
	body []byte,
) (code int, head http.Header, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, at+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, &noAnswer{error: err}
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := client.Do(req)
	if err != nil {
		var op *net.OpError
		return 0, nil, nil, &noAnswer{err, !errors.As(err, &op) || op.Op != "dial"}
	}
	defer resp.Body.Close()
	if active, ok := standby(resp); ok {
		return 0, nil, nil, &standbyError{req.URL.Host, active}
	}
	answer, err = readAll(resp)
	if err != nil {
		return 0, nil, nil, &noAnswer{err, true}
	}
	if len(answer) > maxBody {
		return 0, nil, nil, &noAnswer{fmt.Errorf("its answer is longer than %d bytes", maxBody), true}
	}
	resp.Header.Set(StatusHeader, strconv.Itoa(resp.StatusCode))
	return resp.StatusCode, resp.Header, answer, nil
}

// standby reports whether an answer is a standby ResourceManager's. It redirects all calls to the same path of the
// active one, or, if it knows none, requests a retry.
func standby(resp *http.Response) (active string, ok bool) {
	if resp.StatusCode != http.StatusTemporaryRedirect {
		return "", false
	}
	if resp.Header.Get("Location") == "" {
		return "", resp.Header.Get("Refresh") != ""
	}
	asked := resp.Request.URL
	to, err := asked.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host == asked.Host || to.Path != asked.Path {
		return "", false
	}
	return to.Host, true
}

// standbyError is a standby's refusal.
type standbyError struct{ at, active string } // active may be ""

func (s *standbyError) Error() string { return "the ResourceManager at " + s.at + " is standby" }

func (s *standbyError) Unwrap() error { return creel.ErrStandby }

// eachWeb makes a call by HTTP to the active one of a member's hosts. If the record names only standby hosts, it
// calls the active one that they point to.
func eachWeb(
	ctx context.Context,
	pair *failover.Pair,
	hosts []string,
	repeat bool,
	call func(address string) error,
) error {
	err := failover.Each(ctx, pair, hosts, repeat, call)
	var refused *standbyError
	if errors.As(err, &refused) && refused.active != "" && !slices.Contains(hosts, refused.active) {
		return call(refused.active)
	}
	return err
}

// firstRead is the memory allocated for an answer by its announced length alone.
const firstRead = 1 << 20

// readAll reads at most maxBody plus one bytes of an answer. The buffer has the announced length from the start, so
// that a large list is not copied as it grows. Before bytes have arrived, it has at most firstRead.
func readAll(resp *http.Response) ([]byte, error) {
	limited := io.LimitReader(resp.Body, maxBody+1)
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= maxBody {
		b.Grow(int(min(n, firstRead)) + bytes.MinRead)
		if n > firstRead {
			if _, err := io.CopyN(&b, limited, firstRead); err != nil && err != io.EOF {
				return nil, err
			}
			b.Grow(int(n) - b.Len() + bytes.MinRead)
		}
	}
	_, err := b.ReadFrom(limited)
	return b.Bytes(), err
}
