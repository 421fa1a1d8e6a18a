// SPDX-License-Identifier: Apache-2.0

package nodelogs_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/nodelogs"
)

// node answers one path.
func node(t *testing.T, path string, serve http.HandlerFunc) (*nodelogs.Reader, nodelogs.At) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		serve(w, r)
	}))
	t.Cleanup(web.Close)
	return nodelogs.New(nil), nodelogs.At{Web: strings.TrimPrefix(web.URL, "http://"), Container: "c1", User: "ann"}
}

// Hadoop's nodes send one element without brackets, numbers as strings, and the files of several places.
func TestFilesInYARNsForms(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   []nodelogs.File
	}{
		{`{"containerLogsInfo":{"containerLogInfo":{"fileName":"stdout","fileSize":"17"}}}`, []nodelogs.File{{"stdout", 17}}},
		{
			`{"containerLogsInfo":[{"containerLogInfo":[{"fileName":"b","fileSize":2},{"fileName":"a"}]},` +
				`{"containerLogInfo":[{"fileName":"a"}]}]}`,
			[]nodelogs.File{{"a", -1}, {"b", 2}},
		},
		{`[{"containerLogInfo":[{"fileName":"x","fileSize":"?"}]}]`, []nodelogs.File{{"x", -1}}},
		{`[]`, nil},
	} {
		r, at := node(t, "/ws/v1/node/containers/c1/logs", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, c.answer)
		})
		got, err := r.Files(t.Context(), at)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", c.answer, got, err)
		}
	}
}

// Each failure is told in words, with what to try.
func TestFailuresOfNodes(t *testing.T) {
	const path = "/ws/v1/node/containers/c1/logs"
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  error
	}{
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, creel.ErrUnavailable},
		"away": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			creel.ErrUnavailable,
		},
		"refused": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			creel.ErrNotPermitted,
		},
		"gone": {http.NotFound, creel.ErrContainerNotFound},
		"to another server": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) },
			creel.ErrContainerNotFound,
		},
	} {
		r, at := node(t, path, c.serve)
		_, err := r.Files(t.Context(), at)
		var full *creel.Error
		if !errors.Is(err, c.want) || !errors.As(err, &full) || full.Try == "" || strings.Contains(err.Error(), "Get \"") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if reached {
		t.Error("a node sent the reader to another server")
	}
	if _, err := nodelogs.New(nil).Files(t.Context(), nodelogs.At{Container: "c1"}); !errors.Is(err, creel.ErrNodeNotFound) {
		t.Errorf("without an address: %v", err)
	}
}

// The user and the wanted part are in the request, and names do not leave their place in its path.
func TestReadAsksForTheLastBytes(t *testing.T) {
	var asked string
	r, at := node(t, "/ws/v1/node/containerlogs/c1/a/../b", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.EscapedPath() + "?" + r.URL.RawQuery
		fmt.Fprint(w, "text")
	})
	text, err := r.Read(t.Context(), at, "a/../b", 100)
	if want := "/ws/v1/node/containerlogs/c1/a%2F..%2Fb?size=-100&user.name=ann"; err != nil || string(text) != "text" ||
		asked != want {
		t.Errorf("%q, %v: asked %s", text, err, asked)
	}
}

// A log that is too long must not end as if it were whole.
func TestLongLogEndsWithNote(t *testing.T) {
	for _, c := range []struct {
		size int
		note string
	}{{nodelogs.MaxRead, ""}, {nodelogs.MaxRead + 1, nodelogs.CutNote}} {
		r, at := node(t, "/ws/v1/node/containerlogs/c1/stdout", func(w http.ResponseWriter, _ *http.Request) {
			for left, block := c.size, make([]byte, 1<<20); left > 0; left -= len(block) {
				block = block[:min(left, len(block))]
				w.Write(block)
			}
		})
		body, err := r.Open(t.Context(), at, "stdout", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		n, err := io.CopyN(io.Discard, body, nodelogs.MaxRead)
		note, rest := io.ReadAll(body)
		if err != nil || rest != nil || string(note) != c.note {
			t.Errorf("%d bytes: %d were read and then %q, %v, %v", c.size, n, note, err, rest)
		}
	}
}
