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
	"github.com/creelrm/creel/subcluster/login"
)

// Keys of daemons with Kerberos.
const (
	authentication  = "hadoop.security.authentication"
	rpcProtection   = "hadoop.rpc.protection"
	rmPrincipal     = "yarn.resourcemanager.principal"
	rmKeytab        = "yarn.resourcemanager.keytab"
	nmPrincipal     = "yarn.nodemanager.principal"
	nmKeytab        = "yarn.nodemanager.keytab"
	routerPrincipal = "yarn.router.kerberos.principal"
	routerKeytab    = "yarn.router.keytab.file"
	routerHost      = "yarn.router.kerberos.principal.hostname"
)

// account has the settings of the principal as which a daemon logs in.
type account struct {
	principal, keytab string
	host              string   // the setting with the name of the host, "" for none
	addresses         []string // settings whose first host name is the host's otherwise
}

// accounts are the accounts of the daemons with Kerberos. A proxy is a part of its node, as in Hadoop. An agent speaks
// for the ResourceManager beside it.
var accounts = map[settings.Role]account{
	settings.RM:     {rmPrincipal, rmKeytab, "", []string{"yarn.resourcemanager.address"}},
	settings.Router: {routerPrincipal, routerKeytab, routerHost, []string{"yarn.router.clientrm.address"}},
	settings.Proxy:  {nmPrincipal, nmKeytab, "", nil},
	settings.Agent:  {rmPrincipal, rmKeytab, "", []string{"yarn.resourcemanager.address"}},
}

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

// secureDaemon is the Kerberos login of a daemon.
type secureDaemon struct {
	self        gssapi.Principal
	user        string // the short name of its principal
	login       *kerberos.Login
	kerberos    *hrpc.KerberosServer // of its RPC ports; nil for a daemon that has none for tickets
	offers      []gssapi.Protection  // the preferred one first
	protections []hrpc.Protection    // the same, for tokens
	realm       string               // of principals without one
	names       *username.Rules
}

// secureSettings reads the settings of Kerberos. It returns an error if anything is missing with which a daemon would
// accept a client that it must reject, or could accept none.
func secureSettings(s *settings.Settings, role settings.Role) (*secureDaemon, error) {
	conf, err := kerberos.LoadConfig(kerberos.ConfigPath())
	if err != nil {
		return nil, err
	}
	of, c := accounts[role], &secureDaemon{realm: conf.DefaultRealm()}
	host := ""
	if of.host != "" {
		host = s.String(of.host)
	}
	self, err := hostPrincipal(s, of.principal, c.realm, host, of.addresses...)
	if err != nil {
		return nil, err
	}
	c.self = self
	keys, err := serviceKeys(s.String(of.keytab), self)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.keytab, err)
	}
	if c.offers, err = gssapi.ParseProtections(strings.Join(s.List(rpcProtection), ",")); err != nil {
		return nil, fmt.Errorf("%s: %w", rpcProtection, err)
	}
	c.protections = rpcauth.Digest(c.offers)
	c.login = conf.LoginKeys(self, keys)
	if role == settings.RM || role == settings.Router { // servers of tickets
		acceptor := &gssapi.Acceptor{Service: self, Keys: keys, Skew: conf.Skew(), Replays: gssapi.NewReplays(0)}
		if c.kerberos, err = rpcauth.Server(acceptor, c.offers, time.Now); err != nil {
			return nil, err
		}
	}
	if c.names, err = nameRules(s); err != nil {
		return nil, fmt.Errorf("%s: %w", authToLocal, err)
	}
	if c.names.HasDefault() && c.realm == "" {
		return nil, fmt.Errorf("%s: the rule DEFAULT needs default_realm in %s", authToLocal, kerberos.ConfigPath())
	}
	if c.user, err = c.names.Short(self.String()); err != nil && role != settings.RM {
		return nil, fmt.Errorf("%s: %w", authToLocal, err)
	}
	return c, nil
}

// nodes returns the principal of the NodeManagers of a secure ResourceManager.
func (c *secureDaemon) nodes(s *settings.Settings) (n nodePrincipal, err error) {
	n.pattern, err = principalOf(s, nmPrincipal, c.realm)
	n.lives = func(host string, at netip.Addr) bool { return httpguard.Machines{host}.Includes(at) }
	return n, err
}

// ticket returns the login at the federation's members.
func (c *secureDaemon) ticket(s *settings.Settings) (*login.Ticket, error) {
	service, err := principalOf(s, rmPrincipal, c.realm)
	return &login.Ticket{Keytab: c.login, Service: service, Protections: c.offers}, err
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

// hostPrincipal reads a setting with a principal of this host. _HOST in it stands for host. If that is empty, it stands
// for the host name in the first address that has one, else for the name of this machine.
func hostPrincipal(
	s *settings.Settings, key, realm, host string, addresses ...string,
) (gssapi.Principal, error) {
	pattern, err := principalOf(s, key, realm)
	if err != nil {
		return pattern, err
	}
	from := key
	for _, address := range addresses {
		if host != "" {
			break
		}
		at, _, _ := net.SplitHostPort(s.Address(address))
		if ip := net.ParseIP(at); at != "" && (ip == nil || !ip.IsUnspecified()) {
			host, from = at, address
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
		return p, fmt.Errorf("%s: _HOST needs a host name in %s, not %s", key, from, host)
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
