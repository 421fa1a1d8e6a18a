// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
)

// StatusHeader carries the code of a successful answer (200, 202) in its head.
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
	body := e.Body
	if len(body) > 300 {
		body = body[:300]
	}
	return fmt.Sprintf("subcluster %s answered %d: %s", e.Member, e.Code, bytes.TrimSpace(body))
}

// WebAddress is the host:port of the member's web pages, of an HA pair the first one's;
// "" if it has none.
func (m *Member) WebAddress() string {
	first, _, _ := strings.Cut(m.addresses.Web, ",")
	return first
}

// Web calls the member's REST server. path starts with a slash and holds the
// query. The answer is read whole. Codes of 300 and above come as *StatusError.
func (m *Member) Web(
	ctx context.Context,
	kind Kind,
	method, path, user string,
	header http.Header,
	body []byte,
) (answer []byte, head http.Header, err error) {
	err = m.guard(ctx, kind, func(ctx context.Context) error {
		host := m.WebAddress()
		if host == "" {
			return &Unavailable{Member: m.ID, Err: errors.New("it has no web address")}
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://"+host+path, bytes.NewReader(body))
		if err != nil {
			return &Unavailable{Member: m.ID, Err: err}
		}
		for name, values := range header {
			req.Header[name] = values
		}
		resp, err := m.pool.http.Do(req)
		if err != nil {
			var op *net.OpError
			return &Unavailable{Member: m.ID, Sent: !errors.As(err, &op) || op.Op != "dial", Err: err}
		}
		defer resp.Body.Close()
		answer, err = readAll(resp)
		if err != nil {
			return &Unavailable{Member: m.ID, Sent: true, Err: err}
		}
		if len(answer) > maxBody {
			return &Unavailable{
				Member: m.ID,
				Sent:   true,
				Err:    fmt.Errorf("its answer is longer than %d bytes", maxBody),
			}
		}
		head = resp.Header
		head.Set(StatusHeader, strconv.Itoa(resp.StatusCode))
		if resp.StatusCode >= 300 {
			return &StatusError{Member: m.ID, Code: resp.StatusCode, Header: resp.Header, Body: answer}
		}
		return nil
	})
	return answer, head, err
}

// firstRead is how much memory an answer's announced length alone gets.
const firstRead = 1 << 20

// readAll reads an answer up to one byte more than maxBody. What its length
// announces is made room for at once, so that a large list is not copied as it
// grows, but no more than firstRead before bytes have come.
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
