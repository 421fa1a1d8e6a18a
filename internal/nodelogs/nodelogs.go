// SPDX-License-Identifier: Apache-2.0

package nodelogs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/network"
	"github.com/creelrm/creel/internal/webdoc"
)

// MaxRead is the limit of bytes that one read returns. CutNote follows the text of a log that is longer.
const (
	MaxRead = 64 << 20
	CutNote = "\n[The log goes on: one read returns at most 64 MiB of it.]\n"
)

// maxList is the limit of bytes in a node's list of log files.
const maxList = 1 << 20

// At names a container on its node, and the user that reads its logs.
type At struct {
	Web       string // host:port of the node's web server
	HTTPS     bool   // it uses TLS
	Container string
	User      string
}

// File is a log of a container.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // in bytes; -1 if the node does not tell it
}

// Reader reads logs. Any goroutine may use it.
type Reader struct{ client http.Client }

// answerWait bounds the wait for a node's connection, and that for the start of its answer.
const answerWait = 2 * time.Second

// New makes a Reader. It keeps no connection: logs are read rarely, and of many nodes. dialTLS makes connections with
// TLS; nil: they trust the machine's signers.
func New(dialTLS func(ctx context.Context, network, address string) (net.Conn, error)) *Reader {
	return &Reader{http.Client{
		Transport: &http.Transport{
			DialContext:       (&net.Dialer{Timeout: answerWait}).DialContext,
			DialTLSContext:    dialTLS,
			DisableKeepAlives: true, ResponseHeaderTimeout: answerWait, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Files returns the logs of a container, by name.
func (r *Reader) Files(ctx context.Context, at At) ([]File, error) {
	body, err := r.get(ctx, at, "/ws/v1/node/containers/"+url.PathEscape(at.Container)+"/logs", 0)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxList))
	if err != nil {
		return nil, brokenOff(at, err)
	}
	return parse(b)
}

// Open returns the text of a log, at most MaxRead bytes and then CutNote; the caller closes it. Of a log that is
// longer than last bytes it returns the last ones, with last = 0 the whole. Hadoop's nodes put the text between lines
// that name the container and the file.
func (r *Reader) Open(ctx context.Context, at At, file string, last int64) (io.ReadCloser, error) {
	path := "/ws/v1/node/containerlogs/" + url.PathEscape(at.Container) + "/" + url.PathEscape(file)
	body, err := r.get(ctx, at, path, last)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, MaxRead), &afterLimit{body: body}), body}, nil
}

// afterLimit reads as CutNote if the body goes on, else as empty.
type afterLimit struct {
	body io.Reader
	note *strings.Reader
}

func (a *afterLimit) Read(b []byte) (int, error) {
	if a.note == nil {
		if _, err := io.ReadFull(a.body, make([]byte, 1)); err != nil {
			return 0, err
		}
		a.note = strings.NewReader(CutNote)
	}
	return a.note.Read(b)
}

// Read is Open for callers that need the text at once.
func (r *Reader) Read(ctx context.Context, at At, file string, last int64) ([]byte, error) {
	body, err := r.Open(ctx, at, file, last)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, brokenOff(at, err)
	}
	return b, nil
}

func brokenOff(at At, err error) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable, What: "the node at " + at.Web + " broke off its answer",
		Why: network.InWords(err).Error(), Try: "try again",
	}
}

// get returns the body of a node's answer.
func (r *Reader) get(ctx context.Context, at At, path string, last int64) (io.ReadCloser, error) {
	if at.Web == "" {
		return nil, &creel.Error{
			Kind: creel.ErrNodeNotFound, What: "the address of the container's node is unknown",
			Try: "its logs are on the node, and with log aggregation `yarn logs` reads them",
		}
	}
	q := url.Values{"user.name": {at.User}}
	if last > 0 {
		q.Set("size", strconv.FormatInt(-last, 10)) // YARN: a negative size counts from the end
	}
	scheme := "http://"
	if at.HTTPS {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+at.Web+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, &creel.Error{Kind: creel.ErrInvalidRequest, What: "the node's address " + at.Web + " is invalid"}
	}
	req.Header.Set("Accept", "application/json, text/plain")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable, What: "the node at " + at.Web + " does not answer",
			Why: network.InWords(err).Error(), Try: "check that its NodeManager runs and is reachable",
		}
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return nil, &creel.Error{
			Kind: creel.ErrNotPermitted, What: "the node at " + at.Web + " does not show the logs to " + at.User,
			Try: "ask the application's user",
		}
	}
	return nil, &creel.Error{
		Kind: creel.ErrContainerNotFound, What: "the node at " + at.Web + " has no logs of the container",
		Why: fmt.Sprintf("its answer is HTTP %d", resp.StatusCode),
		Try: "logs begin when a container starts, and nodes delete them some time after its end; " +
			"with log aggregation `yarn logs` reads them",
	}
}

// parse returns the files in a node's answer. A list of one element may have no brackets, and numbers may be strings.
func parse(b []byte) ([]File, error) {
	type file struct {
		Name string          `json:"fileName"`
		Size json.RawMessage `json:"fileSize"`
	}
	type info struct {
		Files webdoc.Many[file] `json:"containerLogInfo"`
	}
	var wrapped struct {
		Info webdoc.Many[info] `json:"containerLogsInfo"`
	}
	if json.Unmarshal(b, &wrapped) != nil || len(wrapped.Info) == 0 {
		wrapped.Info = nil
		if err := json.Unmarshal(b, &wrapped.Info); err != nil {
			return nil, &creel.Error{
				Kind: creel.ErrUnavailable, What: "the node's list of logs is unreadable",
				Why: "it is no JSON of YARN's form", Try: "check what runs at its web address",
			}
		}
	}
	var files []File
	for _, i := range wrapped.Info {
		for _, f := range i.Files {
			size, err := strconv.ParseInt(strings.Trim(string(f.Size), `"`), 10, 64)
			if err != nil {
				size = -1
			}
			files = append(files, File{f.Name, size})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(files, func(a, b File) bool { return a.Name == b.Name }), nil
}
