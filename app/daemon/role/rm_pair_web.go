// SPDX-License-Identifier: Apache-2.0

package role

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster/rm/rest"
)

// site serves the web port of one of a pair: the pages of the active ResourceManager, or the standby's.
func (p *RMPair) site(pages servlets.Config) http.Handler {
	standby := p.standbySite(pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := p.active.Load(); a != nil && p.Driver.Leads() {
			a.parts.mux.ServeHTTP(w, r)
			return
		}
		standby.ServeHTTP(w, r)
	})
}

// standbySite serves a standby's own documents, and redirects other requests to the active ResourceManager.
func (p *RMPair) standbySite(pages servlets.Config) http.Handler {
	mux := chi.NewRouter()
	mux.Use(p.Health.Requests, httpguard.KnownHosts(p.conf.AllowedHosts))
	p.Health.Mount(mux)
	mux.Get("/isActive", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "ResourceManager "+p.conf.Pair.ID+" is not Active!", http.StatusMethodNotAllowed)
	})
	own := chi.NewRouter()
	pages.Service, pages.Started = "ResourceManager", p.started
	servlets.Mount(own, pages)
	for _, path := range []string{"/conf", "/jmx", "/stacks", "/logLevel", "/logs", "/logs/*"} {
		mux.Handle(path, own)
	}
	mux.Get("/ws/v1/cluster/info", rest.StandbyInfo(p.started, p.conf.REST))
	mux.NotFound(p.redirect)
	mux.MethodNotAllowed(p.redirect)
	return mux
}

// redirect sends a client to the active ResourceManager. While none is known, it makes browsers repeat the request, as
// Hadoop's standby does, after a time that doubles.
func (p *RMPair) redirect(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain;charset=utf-8")
	if web := p.conf.Pair.Webs[p.Driver.Status().Leader]; web != "" {
		to := webdoc.Scheme(r) + "://" + web + r.URL.RequestURI()
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
		fmt.Fprintf(w, "This is standby RM. The redirect url is: %s\n", to)
		return
	}
	const parameter = "next-refresh-interval"
	query := r.URL.Query()
	n, err := strconv.Atoi(query.Get(parameter))
	if err != nil || n < 0 {
		n = 0
	}
	wait := int(5 * math.Pow(2, float64(n)) * (0.5 + rand.Float64()))
	if n > 16 || wait > 300 {
		fmt.Fprintln(w, "There is no active RM right now.")
		return
	}
	query.Set(parameter, strconv.Itoa(n+1))
	again := *r.URL
	again.RawQuery = query.Encode()
	w.Header().Set("Refresh", fmt.Sprintf("%d;url=%s%s", wait, webdoc.Origin(r), again.RequestURI()))
	w.WriteHeader(http.StatusTemporaryRedirect)
	fmt.Fprintf(w, "Can not find any active RM. Will retry in next %d seconds.\n", wait)
}
