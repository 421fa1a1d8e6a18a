// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Responses with every way in which HTTP/1.1 marks their end, on connections that stay open and that do not.
func TestRESTReadsEveryKindOfAnswer(t *testing.T) {
	body := make([]byte, 70_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body)
		case "/chunked":
			for i := range 7 {
				w.Write(body[i*10_000:][:10_000])
				w.(http.Flusher).Flush()
			}
		case "/close":
			w.Header().Set("Connection", "close")
			w.Write(body)
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		default:
			http.Error(w, "no", http.StatusNotFound)
		}
	}))
	defer server.Close()
	for path, want := range map[string]float64{"/length": 70_000, "/chunked": 70_000, "/close": 70_000, "/nothing": 0} {
		r, err := REST(
			t.Context(),
			RESTOptions{
				Options: Options{Plan: Plan{Count: 40, InFlight: 1, Connections: 3}, User: "load"},
				URL:     server.URL + path,
			},
		)
		if err != nil || r.Answered != 40 || r.Failed != 0 || path != "/close" && r.REST.BytesEach != want {
			t.Errorf("%s: %v: %+v %+v", path, err, r, r.REST)
		}
	}
	r, err := REST(
		t.Context(),
		RESTOptions{
			Options: Options{Plan: Plan{Count: 10, InFlight: 1, Connections: 1}, User: "load"},
			URL:     server.URL + "/none",
		},
	)
	if err != nil || r.Failed != 10 || r.Failures[statusError(404).Error()] != 10 {
		t.Errorf("404: %v: %+v", err, r)
	}
}

func TestAnswersThatAreNotHTTP(t *testing.T) {
	for _, text := range []string{"", "SSH-2.0\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n"} {
		if h, err := readHead(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q was read as %+v", text, h)
		}
	}
	if _, err := readHead(bufio.NewReader(strings.NewReader("HTTP/2 200\r\n\r\n"))); !errors.Is(err, errHead) {
		t.Error(err)
	}
}
