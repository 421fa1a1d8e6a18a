// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/logs"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/internal/settings"
	"github.com/go-chi/chi/v5"
)

// csrfBrowsers has regular expressions of browsers.
const csrfBrowsers = "yarn.resourcemanager.webapp.rest-csrf.browser-useragents-regex"

// webSettings reads the settings of a daemon's web port. crossOrigin are its own settings that permit access by pages
// of other origins.
func webSettings(
	s *settings.Settings, role settings.Role, crossOrigin ...string,
) (c webserver.Config, err error) {
	names, _ := nameRules(s) // an error prevents the start
	c = webserver.Config{
		Names:             names,
		ReadHeaderTimeout: s.Duration("creel.http.read-header-timeout"),
		IdleTimeout:       s.Duration("hadoop.http.idle_timeout.ms"),
		MaxConnections:    s.Int("creel.http.max-connections"),
		MaxPerAddress:     s.Int("creel.http.max-connections-per-address"),
		Wrap:              wrapped(s, crossOrigin),
		ReadOnly:          secure(s) && !webByTicket(s),
		RefuseAnonymous:   !s.Bool("hadoop.http.authentication.simple.anonymous.allowed"),
	}
	switch {
	case !webByTicket(s):
		warnOfUnusedSecret(s)
	case secure(s):
		c.Tickets, _ = webLogin(s, role) // an error prevents the start
		c.Open = s.List(webOpen)
	}
	if httpsOnly(s) && slices.Contains(onWeb, role) {
		if c.Certificate, c.TLS, err = readTLS(s); err != nil {
			return c, s.Problem(httpPolicy, err.Error(), "")
		}
		c.NeedCertificate = s.Bool(needCertificate)
		c.StrictTransport = s.Duration("creel.http.tls.hsts-max-age")
	}
	return c, nil
}

// wrapped returns the middleware of all web ports.
func wrapped(s *settings.Settings, crossOrigin []string) func(http.Handler) http.Handler {
	traced := tracing.Handler(s)
	on := s.Bool("hadoop.http.cross-origin.enabled")
	for _, key := range crossOrigin {
		on = s.Bool(key) || on
	}
	origins, err := originsOf(s)
	if err != nil { // it prevents the start
		on = false
	}
	return func(h http.Handler) http.Handler {
		if traced != nil {
			h = traced(h)
		}
		if !on {
			return httpguard.SameSite(nil, h)
		}
		return origins.Wrap(httpguard.SameSite(origins, h))
	}
}

// requiredHeader returns the header that browsers must send with changes of the ResourceManager; nil for none.
func requiredHeader(s *settings.Settings) (*httpguard.RequiredHeader, error) {
	const key = "yarn.resourcemanager.webapp.rest-csrf."
	h, err := httpguard.NewRequiredHeader(s.String(key+"custom-header"), s.List(key+"methods-to-ignore"),
		s.List(csrfBrowsers))
	if !s.Bool(key + "enabled") {
		return nil, nil
	}
	return h, err
}

// demandHeader is the web port of a ResourceManager whose browsers must send a header.
func demandHeader(s *settings.Settings, c webserver.Config) webserver.Config {
	header, err := requiredHeader(s)
	if header == nil || err != nil { // an error prevents the start
		return c
	}
	wrap := c.Wrap
	c.Wrap = func(h http.Handler) http.Handler { return wrap(header.Wrap(h)) }
	return c
}

// originsOf returns the allowed CORS origins.
func originsOf(s *settings.Settings) (*httpguard.Origins, error) {
	const key = "hadoop.http.cross-origin."
	return httpguard.NewOrigins(s.List(key+"allowed-origins"), s.List(key+"allowed-methods"),
		s.List(key+"allowed-headers"), s.Duration(key+"max-age"))
}

// addWeb binds a web port and adds the task that serves it. name is the setting or flag that chose the address. It
// returns the bound address.
func addWeb(d *daemon.Service, name, address string, h http.Handler, c webserver.Config) (bound string, err error) {
	l, err := d.Listen(name, address)
	if err != nil {
		return "", err
	}
	if c.Figures == nil {
		c.Figures = webserver.NewFigures()
		d.Health.Register(c.Figures)
	}
	if c.Wrap != nil {
		h = c.Wrap(h)
		if c.Login.Handler != nil {
			c.Login.Handler = c.Wrap(c.Login.Handler)
		}
	}
	d.Add("web server", webserver.Task(l, h, c))
	if c.Certificate != nil {
		d.Add("certificate", func(ctx context.Context) error {
			return c.Certificate.Run(ctx, certificateCheck, slog.Default())
		})
	}
	return l.Addr().String(), nil
}

// addSite is addWeb with pages; nil for no pages.
func addSite(
	d *daemon.Service, name, address string, mux *chi.Mux, site *pages.Site, c webserver.Config,
) (bound string, err error) {
	if site != nil {
		site.Mount(mux)
	}
	bound, err = addWeb(d, name, address, mux, c)
	if site != nil { // after the web server, so that its streams end before the server waits for them
		d.Add("pages", site.Run)
	}
	return bound, err
}

// addHealthWeb is addWeb for a daemon that only serves its health.
func addHealthWeb(d *daemon.Service, name, address string, c webserver.Config) (bound string, err error) {
	mux := chi.NewRouter()
	d.Health.Mount(mux)
	return addWeb(d, name, address, mux, c)
}

// AddProfiles adds /debug/pprof on a separate port if creel.debug.address is set. The port must be on loopback.
func AddProfiles(d *daemon.Service, s *settings.Settings) error {
	address := s.Address("creel.debug.address")
	if address == "" {
		return nil
	}
	if !webserver.Loopback(address) { // mayStart has reported the reason; `creel up` does not call it
		return s.Problem("creel.debug.address", "it is not on loopback", "give 127.0.0.1:6060")
	}
	bound, err := addWeb(d, "creel.debug.address", address, webserver.Profiles(),
		webserver.Config{Figures: webserver.NewFigures()}) // metrics separate from those of the public port
	if err == nil && len(d.Entries) > 0 {
		d.Entries[0].Addresses["debug"] = bound
	}
	return err
}

// daemonPages returns the standard pages of Hadoop's daemons, as the settings configure them.
func daemonPages(s *settings.Settings, g *groups.Groups) servlets.Config {
	return servlets.Config{
		Properties:  func() []servlets.Property { return properties(s) },
		Administers: administrators(s, g),
		AdminsOnly:  s.Bool("hadoop.security.instrumentation.requires.admin"),
		Level:       logs.Level,
		SetLevel:    logs.SetLevel,
		Log:         logs.Where,
	}
}

// properties returns the settings in force in the form of /conf. Clients ask it for keys that they need themselves,
// such as those of HDFS, so it has Hadoop's defaults of the others.
func properties(s *settings.Settings) []servlets.Property {
	var out []servlets.Property
	for _, e := range s.Effective(true) {
		source := e.Origin
		if e.Status == settings.NotYet.String() && e.Origin != "default" {
			source += "; not in force yet: " + e.Note
		}
		if e.Unused() {
			source += "; creel does not use it"
		}
		out = append(out, servlets.Property{Name: e.Key, Value: e.Value, Source: source})
	}
	for _, p := range s.HadoopsDefaults() {
		out = append(out, servlets.Property{Name: p.Name, Value: p.Value, Source: "Hadoop's default"})
	}
	slices.SortFunc(out, func(a, b servlets.Property) int { return strings.Compare(a.Name, b.Name) })
	return out
}
