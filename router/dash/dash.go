// SPDX-License-Identifier: Apache-2.0

// Package dash is the router's dashboard: pages that the router renders from the
// documents of its own API, which it asks without a socket in the name of whoever
// looks. So a page shows what /api/v1 answers, no more and nothing else: the rights,
// the sums and the rules are the API's, and what members are asked for is shared by
// all viewers there.
//
// A page is a type with its data and a template. Everything is embedded; nothing is
// loaded from elsewhere, and no script or style stands in a page. One script makes
// pages live: it swaps the parts of a page that the router says have changed (see
// stream.go), and it sends changes to the API as any client does. Without it pages
// can be read and followed, not more.
package dash

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

//go:embed page
var files embed.FS

// Dash serves the dashboard over an API. Run ends its streams.
type Dash struct {
	api    http.Handler
	pages  *chi.Mux
	layout map[string]*template.Template // by page
	static fs.FS
	done   chan struct{}
}

// page is one: its address, what its templates are called, and what is in it.
type page struct {
	path, name, title, section string
	load                       func(c *call) (any, error)
	command                    func(c *call) string // the line of creel that shows the same
}

func pages() []page {
	return []page{
		overviewPage, appsPage, appPage, queuesPage, membersPage, memberPage,
		policiesPage, policyPage, rebalancerPage, operationsPage,
	}
}

// New makes a dashboard over the router's API, which serves /api/v1 and
// /ws/v1/cluster. It panics if a template of its own is wrong.
func New(api http.Handler) *Dash {
	d := &Dash{api: api, pages: chi.NewRouter(), layout: map[string]*template.Template{}, done: make(chan struct{})}
	var err error
	if d.static, err = fs.Sub(files, "page/static"); err != nil {
		panic(err) // the folder is embedded
	}
	shared := template.Must(template.New("").Funcs(functions).ParseFS(files, "page/layout.html", "page/parts.html"))
	for _, p := range pages() {
		t := template.Must(shared.Clone())
		d.layout[p.name] = template.Must(t.ParseFS(files, "page/"+p.name+".html"))
		d.pages.Get(p.path, func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, p) })
	}
	d.pages.NotFound(func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, &problem{Status: http.StatusNotFound, Title: "There is no such page", Detail: r.URL.Path})
	})
	return d
}

// Mount puts the pages on r, their files below /dash, and at /cluster and below it,
// where the links of YARN's tools point, the ways to them.
func (d *Dash) Mount(r chi.Router) {
	packed := r.With(middleware.Compress(5, "text/html", "text/css", "text/javascript"), guard)
	for _, p := range pages() {
		packed.Get(p.path, func(w http.ResponseWriter, r *http.Request) { d.pages.ServeHTTP(w, withoutRoute(r)) })
	}
	packed.Handle("/dash/static/*", http.StripPrefix("/dash/static/", http.FileServerFS(d.static)))
	r.With(guard).Get("/dash/stream", d.stream)
	to := func(path string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, path, http.StatusFound) }
	}
	r.Get("/cluster", to("/"))
	r.Get("/cluster/apps", to("/apps"))
	r.Get("/cluster/apps/{state}", func(w http.ResponseWriter, r *http.Request) {
		to("/apps?state="+url.QueryEscape(chi.URLParam(r, "state")))(w, r)
	})
	r.Get("/cluster/app/{id}", func(w http.ResponseWriter, r *http.Request) {
		to("/apps/"+url.PathEscape(chi.URLParam(r, "id")))(w, r)
	})
	r.Get("/cluster/nodes", to("/members"))
	r.Get("/cluster/scheduler", to("/queues"))
}

// Run ends the streams when ctx ends, so that the web server can stop.
func (d *Dash) Run(ctx context.Context) error {
	<-ctx.Done()
	close(d.done)
	return nil
}

// policy lets a page load what this router serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'self'"

func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// shell is what stands around every page.
type shell struct {
	Title, Section, Name string
	Command              string // of creel, that shows the same
	User                 string
	Search               string
	Here                 string // path and query, for the stream
	Data                 any
}

// serve renders a page whole before anything of it is sent.
func (d *Dash) serve(w http.ResponseWriter, r *http.Request, p page) {
	c := &call{d: d, r: r}
	data, err := p.load(c)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	s := shell{
		Title: p.title, Section: p.section, Name: p.name, Command: p.command(c), User: c.user(), Data: data,
		Here: here(r),
	}
	if p.name == "apps" {
		s.Search = r.URL.Query().Get("q")
	}
	if named, ok := data.(interface{ title() string }); ok {
		s.Title = named.title()
	}
	d.write(w, http.StatusOK, p.name, s)
}

// here is the page's address without who looks, which its cookie says.
func here(r *http.Request) string {
	q := r.URL.Query()
	q.Del("user.name")
	if len(q) == 0 {
		return r.URL.EscapedPath()
	}
	return r.URL.EscapedPath() + "?" + q.Encode()
}

// fail shows an error of the API in the place of the page.
func (d *Dash) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := &problem{Status: http.StatusServiceUnavailable, Title: "This page cannot be shown", Detail: err.Error()}
	errors.As(err, &p)
	d.write(w, p.Status, "overview", shell{
		Title:   p.Title,
		Name:    "problem",
		Command: "creel subcluster list",
		Data:    p,
		Here:    here(r),
		User:    (&call{r: r}).user(),
	})
}

func (d *Dash) write(w http.ResponseWriter, status int, name string, s shell) {
	var body bytes.Buffer
	if err := d.layout[name].ExecuteTemplate(&body, "layout.html", s); err != nil {
		http.Error(w, "the page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "Cookie")
	w.WriteHeader(status)
	w.Write(body.Bytes()) // an error here is the client's going away
}

// withQuery is a path with the parts of a query that are not empty.
func withQuery(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// shellWord quotes a word of a command line where it needs it.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:@,+", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
