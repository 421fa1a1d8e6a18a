// SPDX-License-Identifier: Apache-2.0

package role

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/authorizer"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// authorizerURL is the setting that names an outside authoriser.
const authorizerURL = "creel.authorizer.url"

// outsideAuthorizer reads the settings of the outside authoriser: nil without one. It calls no server.
func outsideAuthorizer(s *settings.Settings, g *groups.Groups) (*server.Outside, error) {
	text := s.String(authorizerURL)
	if text == "" {
		return nil, nil
	}
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
		return nil, errors.New(authorizerURL + " is no address of http or https")
	case at.User != nil:
		return nil, errors.New(authorizerURL + " has a password: write a token into creel.authorizer.token-file")
	case !s.Bool("yarn.acl.enable"):
		return nil, errors.New("yarn.acl.enable is false, with which no right is checked")
	}
	var roots *x509.CertPool
	if path := s.String("creel.authorizer.ca-file"); path != "" {
		if roots, err = certs.Roots(path, ""); err != nil {
			return nil, fmt.Errorf("creel.authorizer.ca-file: %w", err)
		}
	}
	c := authorizer.Config{
		URL:     text,
		Cluster: s.String("yarn.resourcemanager.cluster-id"),
		Client:  authorizer.NewClient(roots),
		Timeout: s.Duration("creel.authorizer.timeout"),
		Keep:    s.Duration("creel.authorizer.cache-time"),
		Most:    s.Int("creel.authorizer.cache-size"),
		Logger:  slog.Default(),
	}
	if g != nil {
		c.Groups = g.Of
	}
	if path := s.String("creel.authorizer.token-file"); path != "" {
		if at.Scheme == "http" && !onThisMachine(at.Hostname()) {
			return nil, errors.New("creel.authorizer.token-file would be sent unencrypted: use https")
		}
		c.Token = func() (string, error) { return bearerToken(path) }
		if _, err := c.Token(); err != nil {
			return nil, err
		}
	}
	return &server.Outside{
		Authorizer: authorizer.Open(c), Lists: server.Lists(s.String("creel.authorizer.access-lists")),
	}, nil
}

// onThisMachine reports whether a host of a URL is the loopback interface.
func onThisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// bearerToken reads the token of a call: the first line of a file.
func bearerToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", errors.New("creel.authorizer.token-file: " + fileReason(err))
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", errors.New("creel.authorizer.token-file: " + path + " has no token")
	}
	return line, nil
}

// outsideFigures exports calls to the outside authoriser.
type outsideFigures struct{ of *server.Outside }

var (
	outsideCalls = figure("authorizer_calls_total", "Calls to the outside authoriser by result: allowed, denied, failed.",
		"result")
	outsideFailing = figure("authorizer_failing", "1 if the last call to the outside authoriser failed.")
)

// exportOutside adds the metrics of an outside authoriser. Without one they are 0.
func exportOutside(h *health.Health, o *server.Outside) { h.Register(outsideFigures{o}) }

// Describe implements prometheus.Collector.
func (outsideFigures) Describe(out chan<- *prometheus.Desc) {
	out <- outsideCalls
	out <- outsideFailing
}

// Collect implements prometheus.Collector.
func (f outsideFigures) Collect(out chan<- prometheus.Metric) {
	var calls [3]int64
	failing := 0.0
	if f.of != nil {
		for r := range calls {
			calls[r] = f.of.Calls(authorizer.Result(r))
		}
		if f.of.Failing() {
			failing = 1
		}
	}
	for r, n := range calls {
		result := authorizer.Result(r).String()
		out <- prometheus.MustNewConstMetric(outsideCalls, prometheus.CounterValue, float64(n), result)
	}
	out <- prometheus.MustNewConstMetric(outsideFailing, prometheus.GaugeValue, failing)
}
