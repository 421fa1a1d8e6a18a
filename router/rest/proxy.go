// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/amcookies"
	"github.com/creelrm/creel/internal/kerberos/webauth"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
)

// Users reach the pages of AMs through the router. It forwards requests below /proxy/ID to the web proxy of the
// application's home, which has the AM's address and viewers. So users need network access only to routers. With
// Kerberos the router logs in there and acts for its caller, whose own login ends at the router.

// newToHomes makes the transport of calls to the web proxies of members, which wait a minute for an AM.
func newToHomes(dialTLS remote.DialTLS) *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DialTLSContext:        dialTLS,
		ResponseHeaderTimeout: 75 * time.Second,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   16,
		DisableCompression:    true,
	}
}

// proxy serves an AM's page.
func (h *Handler) proxy(w http.ResponseWriter, r *http.Request) {
	text := chi.URLParam(r, "appid")
	app, err := creel.ParseApplicationID(text)
	if err != nil {
		sentence(w, http.StatusBadRequest, "Error parsing application ID: "+text)
		return
	}
	home, err := h.server.Home(r.Context(), app)
	switch {
	case errors.Is(err, creel.ErrApplicationNotFound):
		sentence(w, http.StatusNotFound, "Application "+app.String()+" could not be found in any subcluster")
		return
	case err != nil:
		away(w, "The home of "+app.String()+" is unknown now: "+err.Error())
		return
	}
	at, err := home.ActiveWeb(r.Context())
	if err != nil {
		away(w, "The home of "+app.String()+" does not answer: "+err.Error())
		return
	}
	if at.Host == "" {
		sentence(w, http.StatusBadGateway,
			"Subcluster "+string(home.ID)+", the home of "+app.String()+", has published no web address.")
		return
	}
	own := amcookies.Of(app, r.Header)
	p := httputil.ReverseProxy{
		Transport: home.Pages(h.toHomes),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = at.Scheme, at.Host, at.Host
			// Home and AM must not get the browser's cookies for the router.
			p.Out.Header.Del("Cookie")
			if theirs := own.ToHome(); theirs != "" {
				p.Out.Header.Set("Cookie", theirs)
			}
			p.Out.Header.Del("Authorization")
			p.Out.Header.Set("X-Forwarded-For", clientAddress(r))
		},
		ModifyResponse: func(answer *http.Response) error {
			own.Answer(answer.Header)
			// It is about this router's login at the member. Logins at AMs cannot pass: no header of theirs does.
			answer.Header.Del("Www-Authenticate")
			if to := answer.Header.Get("Location"); to != "" {
				answer.Header.Set("Location", fromHome(to, at.Host))
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if r.Context().Err() == context.Canceled {
				return // the client has gone
			}
			h.conf.Log.Debug("web proxy", "application", app.String(), "subcluster", home.ID, "error", err)
			var refused *webauth.LoginError
			switch {
			case errors.Is(err, remote.ErrNoUser):
				sentence(w, http.StatusForbidden, "The page of "+app.String()+" needs a login.")
				return
			case errors.As(err, &refused):
				away(w, "This router cannot log in at subcluster "+string(home.ID)+", the home of "+app.String()+": "+
					refused.Err.Error()+".")
				return
			}
			away(w, "Subcluster "+string(home.ID)+", the home of "+app.String()+
				", does not answer. Try again; `creel subcluster list` shows its state.")
		},
	}
	p.ServeHTTP(w, r)
}

// fromHome converts the location of a redirect. A location at the member's address becomes the same path of this
// router. Other locations stay unchanged.
func fromHome(location, at string) string {
	to, err := url.Parse(location)
	if err != nil || to.Host != at {
		return location
	}
	here := url.URL{Path: to.Path, RawPath: to.RawPath, RawQuery: to.RawQuery, Fragment: to.Fragment}
	if here.Path == "" {
		here.Path = "/"
	}
	return here.String()
}

// away writes a page that names the service that does not answer, with Retry-After.
func away(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	sentence(w, http.StatusServiceUnavailable, why)
}

// sentence writes a page with one line.
func sentence(w http.ResponseWriter, status int, s string) {
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'self'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// An error means that the client has gone.
	io.WriteString(w, `<!doctype html><html lang="en"><title>creel router</title><h1>`+template.HTMLEscapeString(s)+"</h1>\n")
}
