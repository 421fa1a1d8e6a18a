// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/amcookies"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/go-chi/chi/v5"
)

// The web proxy connects browsers to the pages of AMs, which belong to users. An AM receives only the headers that a
// page needs and the cookies that it set itself. It never receives the browser's credentials for this
// ResourceManager.

// passed are the request headers that the proxy forwards to an AM.
var passed = []string{
	"User-Agent",
	"Accept",
	"Accept-Encoding",
	"Accept-Language",
	"Accept-Charset",
	"Content-Type",
	"Origin",
	"Access-Control-Request-Method",
	"Access-Control-Request-Headers",
	// Scripts of a page copy the page's cookie into these.
	"X-Csrf-Token",
	"X-Csrftoken",
	"X-Xsrf-Token",
	"X-Xsrftoken",
	// A page may keep a web socket to its AM.
	"Connection",
	"Upgrade",
	"Sec-Websocket-Key",
	"Sec-Websocket-Version",
	"Sec-Websocket-Protocol",
	"Sec-Websocket-Extensions",
}

// newAMs returns the transport to AMs. A hanging AM must not block a browser for ever. So timeout limits the wait for a
// connection and for the head of a response; 0 is no limit.
func newAMs(timeout time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: timeout, ControlContext: notForbidden}).DialContext,
		ResponseHeaderTimeout: timeout,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   4,
		DisableCompression:    true,
	}
}

func (h proxyAPI) proxy(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPut {
		w.Header().Set("Allow", "GET, HEAD, PUT")
		sentence(w, http.StatusMethodNotAllowed, "The proxy of AMs' pages serves GET, HEAD and PUT.")
		return
	}
	text := param(r, "appid")
	id, err := creel.ParseApplicationID(text)
	if err != nil {
		sentence(w, http.StatusBadRequest, "Error parsing application ID: "+text)
		return
	}
	var a rm.AppView
	var attempt rm.AttemptView
	known, viewable, who := false, false, h.caller(r)
	err = h.read(r.Context(), func(m *rm.Machine, _ time.Time) {
		if a, known = m.App(id); known {
			attempt, _ = m.Attempt(a.Attempt)
			viewable = h.s.MayView(m, who, &a)
		}
	})
	switch {
	case err != nil:
		sentence(w, http.StatusServiceUnavailable, err.Error())
		return
	case !known:
		sentence(w, http.StatusNotFound, "Application "+id.String()+" could not be found in RM or history server")
		return
	case !viewable:
		sentence(w, http.StatusForbidden,
			"User "+who.User+" does not have privilege to see application "+id.String()+", nor its pages.")
		return
	}
	rest := ""
	if tail := chi.URLParam(r, "*"); tail != "" {
		rest = "/" + tail
	}
	target, err := amURL(a.TrackingURL)
	switch {
	case a.TrackingURL == "":
		redirect(w, r, page(r, "/cluster/app/"+id.String()), rest)
	case err != nil:
		sentence(
			w,
			http.StatusBadGateway,
			"The AM of "+id.String()+" names "+strconv.Quote(a.TrackingURL)+" as its page, which is not an address.",
		)
	case a.State.Ended():
		redirect(w, r, target, rest)
	default:
		h.fetch(w, r, &a, amHost(&a, &attempt), target, rest)
	}
}

// page returns the address of a page of this server, as the client named the server.
func page(r *http.Request, path string) *url.URL {
	return &url.URL{Scheme: webdoc.Scheme(r), Host: r.Host, Path: path}
}

// amURL parses the address that an AM reported, with or without a scheme. Without one it is HTTP, whatever this server
// uses: AMs have no certificates.
func amURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err == nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		err = &url.Error{Op: "parse", URL: text, Err: errNoAddress}
	}
	return u, err
}

var errNoAddress = &refusal{message: "not an http address"}

// amHost returns the host to which the proxy may connect for an AM's page, "" if there is none. A managed AM's host is
// its node. An unmanaged AM names its host itself, and could name an address that only the ResourceManager reaches.
// Its host is therefore the address from which it registered. The address is not durable, like the page of a running
// AM: it registers again after a restart of the ResourceManager.
func amHost(a *rm.AppView, t *rm.AttemptView) string {
	if a.Unmanaged {
		return t.Remote
	}
	return t.AMNode.Host
}

// fetch serves a page of a running AM. An AM is its user's program and may name any address as its page. The proxy
// connects to the AM's host (am) and to creel.rm.proxy.hosts, and never to an address with only local meaning. It
// redirects the browser to any other page of an unmanaged AM. The browser then connects by itself, with the network
// access of its user, as for the pages of ended applications.
func (h proxyAPI) fetch(
	w http.ResponseWriter,
	r *http.Request,
	a *rm.AppView,
	am string,
	target *url.URL,
	rest string,
) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	host := target.Hostname()
	at := resolve(ctx, host)
	notFetched := "The AM of " + a.ID.String() + " names " + target.String() + " as its page, which is not fetched: "
	if slices.ContainsFunc(at, forbidden) {
		sentence(w, http.StatusForbidden,
			notFetched+"it is a link-local address, such as a cloud's metadata service.")
		return
	}
	named := func(name string) bool { return name == "*" || strings.EqualFold(name, host) }
	if slices.ContainsFunc(h.conf.ProxyHosts, named) || am != "" && strings.EqualFold(am, host) {
		h.forward(w, r, a, target, rest)
		return
	}
	if am != "" {
		own := resolve(ctx, am)
		at = slices.DeleteFunc(at, func(x netip.Addr) bool { return !slices.Contains(own, x) })
		if len(at) > 0 {
			h.forward(w, r.WithContext(pinned(r.Context(), at)), a, target, rest)
			return
		}
	}
	if a.Unmanaged {
		redirect(w, r, target, rest)
		return
	}
	sentence(w, http.StatusForbidden,
		notFetched+"the AM runs on "+am+"; add other hosts to creel.rm.proxy.hosts.")
}

// resolve returns a host's addresses. An unresolvable host has none, so it cannot be reached.
func resolve(ctx context.Context, host string) []netip.Addr {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found
}

// forbidden reports whether no page is fetched from an address.
func forbidden(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()
}

type pinKey struct{}

// pinned limits the connections of a request to addresses.
func pinned(ctx context.Context, to []netip.Addr) context.Context {
	return context.WithValue(ctx, pinKey{}, to)
}

// notForbidden checks the address again after the dialer resolved the name, because the name may resolve differently
// since fetch ran.
func notForbidden(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if forbidden(at.Addr()) {
		return &refusal{message: "link-local addresses are not fetched"}
	}
	if pin, ok := ctx.Value(pinKey{}).([]netip.Addr); ok && !slices.Contains(pin, at.Addr().Unmap()) {
		return &refusal{message: "the AM does not run at " + at.Addr().String()}
	}
	return nil
}

// pageQuery is the query for a page. The parameters of a login by Kerberos are for this server only.
func pageQuery(r *http.Request) string {
	if httpguard.LoginOf(r.Context()).User == "" {
		return r.URL.RawQuery
	}
	return query.Without(r.URL.RawQuery, "user.name", "doas")
}

// under appends the client's path and query to the target.
func under(target *url.URL, r *http.Request, rest string) *url.URL {
	u := *target
	if rest != "" {
		u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+rest, ""
		if plain, err := url.PathUnescape(u.Path); err == nil && plain != u.Path {
			u.Path, u.RawPath = plain, u.Path
		}
	}
	switch more := pageQuery(r); {
	case u.RawQuery == "":
		u.RawQuery = more
	case more != "":
		u.RawQuery += "&" + more
	}
	return &u
}

func redirect(w http.ResponseWriter, r *http.Request, target *url.URL, rest string) {
	http.Redirect(w, r, under(target, r, rest).String(), http.StatusFound)
}

// forward passes the request to the AM. This proxy's mark in Via detects an AM whose page is this proxy's, which
// would loop for ever.
func (h proxyAPI) forward(w http.ResponseWriter, r *http.Request, a *rm.AppView, target *url.URL, rest string) {
	via := "1.1 creel-" + strconv.FormatInt(h.s.Started().UnixMilli(), 36)
	if strings.Contains(r.Header.Get("Via"), via) {
		sentence(w, http.StatusLoopDetected, "The AM of "+a.ID.String()+" names this proxy as its page.")
		return
	}
	user, _ := h.who(r)
	own := amcookies.Of(a.ID, r.Header)
	p := httputil.ReverseProxy{
		Transport: h.ams,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = under(target, r, rest), target.Host
			in := p.Out.Header
			p.Out.Header = http.Header{}
			for _, name := range passed {
				if v := in.Values(name); len(v) > 0 {
					p.Out.Header[name] = v
				}
			}
			p.Out.Header.Set("Via", via)
			// AMs' filters read the user from it.
			cookies := "proxy-user=" + url.QueryEscape(user)
			if theirs := own.ToAM(); theirs != "" {
				cookies += "; " + theirs
			}
			p.Out.Header.Set("Cookie", cookies)
		},
		ModifyResponse: func(res *http.Response) error {
			own.Answer(res.Header)
			if to := res.Header.Get("Location"); to != "" {
				res.Header.Set("Location", throughProxy(to, target, a.ID))
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if r.Context().Err() == context.Canceled {
				return // the client closed the connection
			}
			sentence(
				w,
				http.StatusBadGateway,
				"The page of "+a.ID.String()+" at "+target.String()+" does not answer: "+err.Error(),
			)
		},
	}
	p.ServeHTTP(w, r)
}

// throughProxy returns the target of a redirect by the AM at target. A page of the AM's own server becomes a path of
// the proxy, because not every browser can reach that server. Any other location is unchanged.
func throughProxy(location string, target *url.URL, id creel.ApplicationID) string {
	to, err := target.Parse(location)
	if err != nil || to.Scheme != target.Scheme || to.Host != target.Host {
		return location
	}
	base := "/proxy/" + id.String()
	path := to.EscapedPath()
	// The proxy adds the path prefix of the AM's page again.
	if below := strings.TrimSuffix(target.EscapedPath(), "/"); below != "" {
		var within bool
		if path, within = strings.CutPrefix(path, below); !within || path != "" && path[0] != '/' {
			return location
		}
	}
	// An AM that supports the proxy uses the browser's paths for its pages.
	if path != base && !strings.HasPrefix(path, base+"/") {
		path = base + "/" + strings.TrimPrefix(path, "/")
	}
	out := url.URL{RawQuery: to.RawQuery, Fragment: to.Fragment}
	return path + out.String()
}

// pageHeaders are on the ResourceManager's own pages, as on the router's. They block foreign scripts in the pages, and
// frames of other sites around them.
func pageHeaders(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'self'")
	header["X-Frame-Options"], header["X-Content-Type-Options"] = sameOrigin, noSniff
}

// sentence writes a page of one line.
func sentence(w http.ResponseWriter, status int, s string) {
	pageHeaders(w)
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(
		w,
		"<html>\n  <h1>\n    "+template.HTMLEscapeString(s)+"\n  </h1>\n</html>\n",
	) // fails only if the client closed the connection
}
