// SPDX-License-Identifier: Apache-2.0

// Package pages contains the common parts of the web pages of a router and of a ResourceManager: layout, live updates,
// and requests for data. A site renders its pages from the documents of its own API. It calls the API without a socket
// in the viewer's name. So a page shows exactly the API's answers, and the API enforces access rights, sums and rules.
//
// A page is a type with its data and a template. Everything is embedded: a page loads nothing from other servers, and
// contains no inline scripts or styles. One script makes pages live: it replaces the changed parts of a page (see
// stream.go). It also sends changes to the API like any client. Without the script pages can only be read and
// navigated.
package pages

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
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

//go:embed page
var files embed.FS

// Config describes a site: its pages and their frame.
type Config struct {
	API   http.Handler // of the same port
	Pages []Page       // the first page also shows errors of pages
	// Templates contains page/NAME.html for each page, which defines "page". It may contain page/parts.html with shared
	// parts.
	Templates fs.FS
	Functions template.FuncMap // of the templates, in addition to those of all sites
	Nav       []Link
	Home      string // target of the link on the software's name
	Search    string // path of the list that ?q= searches
	// Begin returns the context with which a page is loaded; nil: the request's.
	Begin func(ctx context.Context) context.Context
	// Problem is the suggested command if a page cannot be shown.
	Problem string
	// Other maps further paths, linked by YARN's tools, to pages.
	Other map[string]func(c *Call) string
}

// Link is a page in the navigation.
type Link struct{ Path, Title, Section string }

// Page describes one page: its address, its template's name, and its content.
type Page struct {
	Path, Name, Title, Section string
	Load                       func(c *Call) (any, error)
	Command                    func(c *Call) string // the creel command line that shows the same data
}

// Site serves pages. Run ends its streams.
type Site struct {
	conf   Config
	pages  *chi.Mux
	layout map[string]*template.Template // by page
	static fs.FS
	done   chan struct{}
}

// New makes a site. It panics if a template is wrong.
func New(c Config) *Site {
	d := &Site{conf: c, pages: chi.NewRouter(), layout: map[string]*template.Template{}, done: make(chan struct{})}
	var err error
	if d.static, err = fs.Sub(files, "page/static"); err != nil {
		panic(err) // the folder is embedded
	}
	shared := template.New("").Funcs(functions).Funcs(c.Functions)
	shared = template.Must(shared.ParseFS(files, "page/layout.html", "page/parts.html"))
	if parts, err := fs.Glob(c.Templates, "page/parts.html"); err == nil && len(parts) > 0 {
		shared = template.Must(shared.ParseFS(c.Templates, parts...))
	}
	for _, p := range c.Pages {
		if d.layout[p.Name] == nil {
			t := template.Must(shared.Clone())
			d.layout[p.Name] = template.Must(t.ParseFS(c.Templates, "page/"+p.Name+".html"))
		}
		d.pages.Get(p.Path, func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, p) })
	}
	d.pages.NotFound(func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, &Problem{Status: http.StatusNotFound, Title: "There is no such page", Detail: r.URL.Path})
	})
	return d
}

// Mount adds the pages to r, their files below /dash, and the redirects from the other paths.
func (d *Site) Mount(r chi.Router) {
	packed := r.With(middleware.Compress(5, "text/html", "text/css", "text/javascript"), guard)
	for _, p := range d.conf.Pages {
		packed.Get(p.Path, func(w http.ResponseWriter, r *http.Request) { d.pages.ServeHTTP(w, withoutRoute(r)) })
	}
	packed.Handle("/dash/static/*", http.StripPrefix("/dash/static/", http.FileServerFS(d.static)))
	r.With(guard).Get("/dash/stream", d.stream)
	for path, to := range d.conf.Other {
		r.Get(path, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to(&Call{d: d, r: r}), http.StatusFound)
		})
	}
}

// Run ends the streams when ctx ends, so that the web server can stop.
func (d *Site) Run(ctx context.Context) error {
	<-ctx.Done()
	close(d.done)
	return nil
}

// policy restricts a page to content from this router.
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

// shell is the frame of every page.
type shell struct {
	Title, Section, Name string
	Command              string // creel command line that shows the same data
	User                 string
	Search               string
	Here                 string // path and query, for the stream
	Now                  string // the time when the page was rendered, to which its script relates times
	Site                 *Config
	Data                 any
}

// serve renders a page completely before it sends any byte.
func (d *Site) serve(w http.ResponseWriter, r *http.Request, p Page) {
	if d.conf.Begin != nil {
		r = r.WithContext(d.conf.Begin(r.Context()))
	}
	c := &Call{d: d, r: r}
	data, err := p.Load(c)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	s := shell{
		Title: p.Title, Section: p.Section, Name: p.Name, Command: p.Command(c), User: c.user(), Data: data,
		Here: here(r),
	}
	if p.Section == "apps" {
		s.Search = c.Query("q")
	}
	if named, ok := data.(interface{ PageTitle() string }); ok {
		s.Title = named.PageTitle()
	}
	d.write(w, http.StatusOK, p.Name, s)
}

// here returns the page's address without the viewer's identity, which is in its cookie.
func here(r *http.Request) string {
	q := r.URL.Query()
	q.Del("user.name")
	if len(q) == 0 {
		return r.URL.EscapedPath()
	}
	return r.URL.EscapedPath() + "?" + q.Encode()
}

// fail shows an error of the API instead of the page.
func (d *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := &Problem{Status: http.StatusServiceUnavailable, Title: "This page cannot be shown", Detail: err.Error()}
	errors.As(err, &p)
	d.write(w, p.Status, d.conf.Pages[0].Name, shell{
		Title:   p.Title,
		Name:    "problem",
		Command: d.conf.Problem,
		Data:    p,
		Here:    here(r),
		User:    (&Call{r: r}).user(),
	})
}

// noDigest is in the layout, where write puts the digest of a page's live parts.
const noDigest = `data-parts=""`

func (d *Site) write(w http.ResponseWriter, status int, name string, s shell) {
	var body bytes.Buffer
	s.Site, s.Now = &d.conf, time.Now().UTC().Format(instantLayout)
	if err := d.layout[name].ExecuteTemplate(&body, "layout.html", s); err != nil {
		http.Error(w, "the page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "Cookie")
	w.WriteHeader(status)
	html := bytes.Replace(body.Bytes(), []byte(noDigest), []byte(`data-parts="`+digest(cut(body.Bytes()))+`"`), 1)
	w.Write(html) // an error here means that the client disconnected
}

// WithQuery returns a path with the non-empty parts of a query.
func WithQuery(path string, pairs ...string) string {
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

// ShellWord quotes a word of a command line if necessary.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:@,+", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
