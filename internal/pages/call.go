// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/creelrm/creel/internal/webdoc"
	"github.com/go-chi/chi/v5"
)

// Call is one request for a page: its viewer, and its requests to the API.
type Call struct {
	d *Site
	r *http.Request
}

// Param is a part of the page's path, decoded.
func (c *Call) Param(name string) string {
	text := chi.URLParam(c.r, name)
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

func (c *Call) Query(name string) string { return c.r.URL.Query().Get(name) }

// Bad is an error for a request that cannot be understood.
func Bad(title, detail string) error { return &Problem{http.StatusBadRequest, title, detail} }

// Missing is an error for an object that does not exist.
func Missing(title, detail string) error { return &Problem{http.StatusNotFound, title, detail} }

// Origin is the scheme, host and port that the request for the page named.
func (c *Call) Origin() string { return webdoc.Origin(c.r) }

// user returns the viewer's name, "" without one.
func (c *Call) user() string { return c.Query("user.name") }

// identity returns the part of a query that identifies the viewer.
func identity(q url.Values) url.Values {
	who := url.Values{}
	for name, values := range q {
		if name == "user.name" || strings.EqualFold(name, "doAs") {
			who[name] = values
		}
	}
	return who
}

// Problem is an error in the API's form.
type Problem struct {
	Status int    `json:"-"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// Get sends a GET request to the API in the viewer's name, and decodes its answer.
func (c *Call) Get(path string, into any) error { return c.ask(http.MethodGet, path, nil, into) }

// Post sends a request with a body that changes nothing.
func (c *Call) Post(path string, order, into any) error {
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	return c.ask(http.MethodPost, path, body, into)
}

// Text is Get for a text of at most the size that the request asks for.
func (c *Call) Text(path string) ([]byte, error) { return c.answer(http.MethodGet, path, nil) }

func (c *Call) ask(method, path string, body []byte, into any) error {
	b, err := c.answer(method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c *Call) answer(method, path string, body []byte) ([]byte, error) {
	at, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	q := at.Query()
	for name, values := range identity(c.r.URL.Query()) {
		q[name] = values
	}
	at.RawQuery = q.Encode()
	r, err := http.NewRequestWithContext(c.r.Context(), method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r = withoutRoute(r)
	r.RemoteAddr, r.Host, r.RequestURI = c.r.RemoteAddr, c.r.Host, at.RequestURI()
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	a := &answer{head: http.Header{}, status: http.StatusOK}
	c.d.conf.API.ServeHTTP(a, r)
	if a.status != http.StatusOK {
		return nil, a.problem()
	}
	return a.body.Bytes(), nil
}

// withoutRoute copies a request for chi, which routes it by its path. With the original's route, chi would treat that
// path as a part of the route.
func withoutRoute(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, nil))
}

// answer records the API's response.
type answer struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.head }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// problem reads an error of the native API or of YARN's API.
func (a *answer) problem() error {
	var both struct {
		Problem
		Remote struct {
			Message string `json:"message"`
		} `json:"RemoteException"`
	}
	if err := json.Unmarshal(a.body.Bytes(), &both); err != nil {
		both.Detail = strings.TrimSpace(a.body.String())
	}
	p := &Problem{Status: a.status, Title: both.Title, Detail: both.Detail}
	if p.Detail == "" {
		p.Detail = both.Remote.Message
	}
	if p.Title == "" {
		p.Title = http.StatusText(a.status)
	}
	return p
}

// IsStatus reports whether an error is an answer with that status.
func IsStatus(err error, status int) bool {
	p, ok := err.(*Problem)
	return ok && p.Status == status
}
