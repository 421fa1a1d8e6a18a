// SPDX-License-Identifier: Apache-2.0

package login

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/kerberos/webauth"
	"github.com/creelrm/creel/internal/query"
)

// Login is a daemon's login at members.
type Login struct {
	// User is the daemon's own name at members. "" makes each call the user's own, without a proxy user.
	User   string
	Ticket *Ticket // nil: simple authentication
}

// Ticket is a login by Kerberos. It is safe for concurrent use.
type Ticket struct {
	Keytab *kerberos.Login
	// Service is the principal of the members' ResourceManagers; _HOST stands for the host of an address.
	Service     gssapi.Principal
	Protections []gssapi.Protection // the preferred one first
}

// RPC returns the login for calls to a port at host:port on behalf of a user; "" for the daemon's own calls.
func (l *Login) RPC(address, user string) hrpc.Login {
	own := user == "" || user == l.User
	switch t := l.Ticket; {
	case t != nil && own:
		return hrpc.Login{Kerberos: t.at(address)}
	case t != nil:
		return hrpc.Login{User: user, Kerberos: t.at(address)}
	case own:
		return hrpc.Login{User: l.User}
	}
	return hrpc.Login{User: user, RealUser: l.User}
}

// Accepts are the protections of connections that log in by a token.
func (l *Login) Accepts() []hrpc.Protection {
	if l.Ticket == nil {
		return nil
	}
	return rpcauth.Digest(l.Ticket.Protections)
}

// at returns the login at the ResourceManager of an address.
func (t *Ticket) at(address string) *hrpc.KerberosLogin {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return rpcauth.ClientOf(t.Keytab, fmt.Sprint(t.Service, " at ", host), t.Protections,
		func(protocol, serverID string) (gssapi.Principal, error) { return t.service(host, protocol, serverID) })
}

// service returns the principal of the server at a host that names itself. At an address without a name it accepts a
// name that resolves to the address, as Hadoop's clients do.
func (t *Ticket) service(host, protocol, serverID string) (gssapi.Principal, error) {
	expected, err := t.Service.WithHost(host)
	if ip, e := netip.ParseAddr(host); e == nil && !expected.Equal(t.Service) {
		expected, err = t.Service.WithHost(serverID)
		if err == nil && !(httpguard.Machines{serverID}).Includes(ip.Unmap()) {
			return expected, fmt.Errorf("the server at %s names itself %.80q, which is not the name of this address",
				host, serverID)
		}
	}
	if err != nil {
		return expected, err
	}
	if !slices.Equal(expected.Names, []string{protocol, serverID}) {
		return expected, fmt.Errorf("the server is %.80q/%.80q, expected is %s", protocol, serverID, expected)
	}
	return expected, nil
}

// Web returns the client's transport and jar for calls to web ports, over a transport. The jar is nil with simple
// authentication.
func (l *Login) Web(base http.RoundTripper) (http.RoundTripper, http.CookieJar) {
	if l.Ticket == nil {
		return base, nil
	}
	jar, err := cookiejar.New(nil)
	if err != nil { // only a list of public suffixes can fail
		panic(err)
	}
	keytab := func() (*kerberos.Login, error) { return l.Ticket.Keytab, nil }
	return &actingFor{webauth.New(base, keytab), l.User}, jar
}

// actingFor sends the user of a call as doAs: user.name would be no more than a claim.
type actingFor struct {
	base http.RoundTripper
	self string
}

// RoundTrip is http.RoundTripper's. It writes the query again from the pairs that Go reads: Java's servers might read a
// user in others.
func (a *actingFor) RoundTrip(r *http.Request) (*http.Response, error) {
	if !query.Readable(r.URL.RawQuery) {
		// Without its user the call would be this daemon's own.
		return nil, errors.New("the query has too many parameters")
	}
	user, named := "", false
	var raw strings.Builder
	add := func(name, value string) {
		if raw.Len() > 0 {
			raw.WriteByte('&')
		}
		raw.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(value))
	}
	for name, value := range query.Pairs(r.URL.RawQuery) {
		switch {
		case name == "user.name" && !named:
			user, named = value, true
		case name != "user.name" && !strings.EqualFold(name, "doAs"):
			add(name, value)
		}
	}
	if user != "" && user != a.self {
		add("doAs", user)
	}
	out := r.Clone(r.Context())
	out.URL.RawQuery = raw.String()
	return a.base.RoundTrip(out)
}
