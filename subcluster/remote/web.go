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
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/failover"
)

// StatusHeader carries the code of a successful answer (200, 202; 304 where the call allows
// it) in its head.
const StatusHeader = "X-Creel-Status"

// maxBody bounds a member's answer: 100,000 applications of 1 kB fit.
const maxBody = 256 << 20

// StatusError is an answer of a member's REST server that is not a success.
type StatusError struct {
	Member creel.SubclusterID
	Code   int
	Header http.Header
	Body   []byte // as the member wrote it: a RemoteException, mostly
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("subcluster %s answered %d: %s", e.Member, e.Code, e.Words())
}

// Unwrap returns creel.ErrEnded for the status that only an ended application's repeat gets; nil for others.
func (e *StatusError) Unwrap() error {
	if e.Code == http.StatusConflict {
		return creel.ErrEnded
	}
	return nil
}

// Words are the message of a RemoteException, or the beginning of the member's answer otherwise.
func (e *StatusError) Words() string {
	var doc struct {
		Exception struct{ Message string } `json:"RemoteException"`
	}
	if json.Unmarshal(e.Body, &doc) == nil && doc.Exception.Message != "" {
		return Sentence(doc.Exception.Message)
	}
	return string(bytes.TrimSpace(e.Body[:min(len(e.Body), 300)]))
}

// Sentence is the first line of a member's message, without the classes that Java puts before it.
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

// ActiveWeb is the host:port of the member's web pages, of an HA pair the active one's, for redirecting a browser
// there. It costs a call where there are two: a standby answers paths below /proxy by itself, and wrongly.
func (m *Member) ActiveWeb(ctx context.Context) (string, error) {
	if len(m.web.hosts) > 1 {
		_, _, err := m.Web(ctx, Read, http.MethodGet, "/ws/v1/cluster/userinfo", "", nil, nil)
		if errors.Is(err, creel.ErrUnavailable) {
			return "", err
		}
	}
	return m.pair.First(m.web.hosts), nil
}

// Web calls the member's REST server. path starts with a slash and holds the query. The answer is read whole. Codes
// of 300 and above come as *StatusError, but for 304 (Not Modified), which answers an If-None-Match. Calls that the
// member's release lacks are not made: the error is of kind ErrNotInRelease.
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
			code, head, answer, err = callWeb(ctx, m.pool.http, address, method, path, header, body)
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

// noAnswer is a call by HTTP without an answer.
type noAnswer struct {
	error
	sent bool // it may have been served
}

// MayBeServed is called by package failover.
func (n *noAnswer) MayBeServed() bool { return n.sent }

func (n *noAnswer) Unwrap() error { return n.error }

// callWeb calls the REST server of a ResourceManager at one address and reads its answer whole, whatever its code,
// with the code in its head. A standby's comes as an error of kind creel.ErrStandby, silence as *noAnswer.
func callWeb(
	ctx context.Context,
	client *http.Client,
	address, method, path string,
	header http.Header,
	body []byte,
) (code int, head http.Header, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, bytes.NewReader(body))
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
		return 0, nil, nil, &standbyError{address, active}
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

// standby reports whether an answer is that of a ResourceManager that is not active: it sends all calls to the same
// path of the active one, or, where it knows of none, asks to come again.
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

// eachWeb makes a call by HTTP to the active one of a member's hosts. If the record names only standby hosts, the
// active one they point at is called.
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

// firstRead is how much memory an answer's announced length alone gets.
const firstRead = 1 << 20

// readAll reads an answer up to one byte more than maxBody. The buffer has the announced length at once, so that a
// large list is not copied as it grows, but no more than firstRead before bytes have come.
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
