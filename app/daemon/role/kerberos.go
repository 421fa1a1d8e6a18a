// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/username"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Keys of a ResourceManager with Kerberos.
const (
	authentication = "hadoop.security.authentication"
	rpcProtection  = "hadoop.rpc.protection"
	rmPrincipal    = "yarn.resourcemanager.principal"
	rmKeytab       = "yarn.resourcemanager.keytab"
	nmPrincipal    = "yarn.nodemanager.principal"
)

// secure reports whether a daemon authenticates its clients by Kerberos.
func secure(s *settings.Settings) bool { return s.String(authentication) == "kerberos" }

// warnOfUnusedPrincipals warns of principals without hadoop.security.authentication=kerberos.
func warnOfUnusedPrincipals(s *settings.Settings) {
	for _, key := range []string{rmPrincipal, nmPrincipal} {
		if name := s.String(key); name != "" {
			slog.Warn("Kerberos is off, and clients name their user without proof: set "+authentication+" to kerberos",
				"setting", key, "value", name)
		}
	}
}

// secureRM is the authentication of a ResourceManager with Kerberos.
type secureRM struct {
	kerberos    *hrpc.KerberosServer
	protections []hrpc.Protection // the preferred one first
	nodes       nodePrincipal
	names       *username.Rules
}

// secureSettings reads the settings of Kerberos. It returns an error if anything is missing with which a
// ResourceManager would accept a client that it must reject, or could accept none.
func secureSettings(s *settings.Settings) (*secureRM, error) {
	conf, err := kerberos.LoadConfig(kerberos.ConfigPath())
	if err != nil {
		return nil, err
	}
	service, err := servicePrincipal(s, conf.DefaultRealm())
	if err != nil {
		return nil, err
	}
	keys, err := serviceKeys(s.String(rmKeytab), service)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rmKeytab, err)
	}
	offers, err := gssapi.ParseProtections(strings.Join(s.List(rpcProtection), ","))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rpcProtection, err)
	}
	c := &secureRM{protections: digestProtections(offers)}
	acceptor := &gssapi.Acceptor{Service: service, Keys: keys, Skew: conf.Skew(), Replays: gssapi.NewReplays(0)}
	if c.kerberos, err = rpcauth.Server(acceptor, offers, time.Now); err != nil {
		return nil, err
	}
	if c.nodes.pattern, err = principalOf(s, nmPrincipal, conf.DefaultRealm()); err != nil {
		return nil, err
	}
	c.nodes.lives = func(host string, at netip.Addr) bool { return httpguard.Machines{host}.Includes(at) }
	if c.names, err = nameRules(s); err != nil {
		return nil, fmt.Errorf("%s: %w", authToLocal, err)
	}
	if c.names.HasDefault() && conf.DefaultRealm() == "" {
		return nil, fmt.Errorf("%s: the rule DEFAULT needs default_realm in %s", authToLocal, kerberos.ConfigPath())
	}
	return c, nil
}

// principalOf reads a setting with a principal. realm is the realm of one without.
func principalOf(s *settings.Settings, key, realm string) (gssapi.Principal, error) {
	text := s.String(key)
	if text == "" {
		return gssapi.Principal{}, fmt.Errorf("%s is not set", key)
	}
	p, err := gssapi.ParsePrincipal(text)
	if err != nil {
		return p, fmt.Errorf("%s: %w", key, err)
	}
	if p.Realm == "" {
		p.Realm = realm
	}
	if p.Realm == "" {
		return p, fmt.Errorf("%s: %s has no realm, and %s has no default_realm", key, text, kerberos.ConfigPath())
	}
	return p, nil
}

// servicePrincipal returns the ResourceManager's own principal.
func servicePrincipal(s *settings.Settings, realm string) (gssapi.Principal, error) {
	return hostPrincipal(s, rmPrincipal, realm, "yarn.resourcemanager.address")
}

// hostPrincipal reads a setting with a principal of this host. _HOST in it stands for the host name in the first
// address that has one, else for the name of this machine.
func hostPrincipal(s *settings.Settings, key, realm string, addresses ...string) (gssapi.Principal, error) {
	pattern, err := principalOf(s, key, realm)
	if err != nil {
		return pattern, err
	}
	host := ""
	for _, address := range addresses {
		at, _, _ := net.SplitHostPort(s.Address(address))
		if ip := net.ParseIP(at); at != "" && (ip == nil || !ip.IsUnspecified()) {
			host = at
			break
		}
	}
	if host == "" {
		if host, err = os.Hostname(); err != nil {
			return pattern, fmt.Errorf("%s: this machine has no name: %w", key, err)
		}
	}
	p, err := pattern.WithHost(host)
	switch {
	case err != nil:
		return p, fmt.Errorf("%s: %w", key, err)
	case net.ParseIP(host) != nil && !p.Equal(pattern):
		return p, fmt.Errorf("%s: _HOST needs a host name in %s, not %s", key, addresses[0], host)
	}
	return p, nil
}

// serviceKeys returns the AES keys of a service from its keytab.
func serviceKeys(path string, service gssapi.Principal) ([]gssapi.ServiceKey, error) {
	if path == "" {
		return nil, errors.New("it is not set")
	}
	keytab, err := kerberos.LoadKeytab(path)
	if err != nil {
		return nil, err
	}
	return keytab.Strong(service)
}

// digestProtections returns the protections by the names of DIGEST-MD5.
func digestProtections(list []gssapi.Protection) []hrpc.Protection {
	names := map[gssapi.Protection]hrpc.Protection{
		gssapi.Authentication: hrpc.Authentication, gssapi.Integrity: hrpc.Integrity, gssapi.Privacy: hrpc.Privacy,
	}
	out := make([]hrpc.Protection, len(list))
	for i, p := range list {
		out[i] = names[p]
	}
	return out
}

// nodePrincipal is the principal of NodeManagers, with which alone a client may use the resource tracker.
type nodePrincipal struct {
	pattern gssapi.Principal // its host may be _HOST
	// lives reports whether a host name belongs to an address.
	lives func(host string, at netip.Addr) bool
}

// authorize rejects a client that is not a NodeManager, with Hadoop's message.
func (n *nodePrincipal) authorize(who *hrpc.Identity, at netip.Addr) error {
	if who.Method == hrpc.Kerberos && who.RealUser == "" {
		if p, err := gssapi.ParsePrincipal(who.Principal); err == nil && n.fits(p, at) {
			return nil
		}
	}
	return notAuthorized(fmt.Sprintf("User %s is not authorized for protocol interface %s: this service is only "+
		"accessible by %s", described(who), yarnrpc.ResourceTrackerName, n.pattern))
}

func (n *nodePrincipal) fits(p gssapi.Principal, at netip.Addr) bool {
	if len(p.Names) != 2 || strings.ContainsAny(p.Names[1], "*/") {
		return p.Equal(n.pattern)
	}
	expected, err := n.pattern.WithHost(p.Names[1])
	return err == nil && p.Equal(expected) && (expected.Equal(n.pattern) || n.lives(p.Names[1], at))
}
