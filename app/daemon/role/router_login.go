// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"time"

	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/subcluster/login"
)

// daemonLogin is the login of a daemon at members, and with Kerberos that of its clients.
type daemonLogin struct {
	login.Login
	secure *secureDaemon // nil: simple authentication
}

// routerLogin reads the login of a router. With Kerberos its user is the short name of its principal.
func routerLogin(s *settings.Settings) (daemonLogin, error) {
	return loginOf(s, settings.Router, s.String("creel.router.proxy-user"))
}

// proxyLogin reads the login of a proxy. Without Kerberos it calls as the owner of each application.
func proxyLogin(s *settings.Settings) (daemonLogin, error) { return loginOf(s, settings.Proxy, "") }

// agentLogin reads the login of an agent. With Kerberos it logs in as its ResourceManager, whose principal and keytab
// are in the same configuration, and which is an administrator there.
func agentLogin(s *settings.Settings) (daemonLogin, error) {
	return loginOf(s, settings.Agent, s.String("creel.router.proxy-user"))
}

// loginOf reads the login of a daemon. user is its name without Kerberos.
func loginOf(s *settings.Settings, role settings.Role, user string) (l daemonLogin, err error) {
	if l.User = user; !secure(s) {
		return l, nil
	}
	if l.secure, err = secureSettings(s, role); err != nil {
		return l, s.Problem(authentication, err.Error(), "")
	}
	if l.Ticket, err = l.secure.ticket(s); err != nil {
		return l, s.Problem(authentication, err.Error(), "")
	}
	l.User = l.secure.user
	return l, nil
}

// configure makes a router's ports accept what its clients have: with Kerberos tickets and tokens, and no bare names.
// Proxy users act for others.
func (l daemonLogin) configure(c *RouterConfig, s *settings.Settings, known *groups.Groups) (err error) {
	proxies := impersonation.NewCurrent(proxyRules(s), known.Of)
	c.RPC.Impersonate, c.Site.ActFor = proxies.Check, proxies.Check
	c.Refreshes["refreshSuperUserGroupsConfiguration"] = func() error {
		fresh, err := s.Reload()
		if err == nil {
			proxies.Replace(proxyRules(fresh))
		}
		return err
	}
	k := l.secure
	if k == nil && !httpsOnly(s) {
		return nil
	}
	c.WebHost, err = hostOf(s.Address(routerWeb(s)))
	if k == nil {
		return err
	}
	c.RPC.Kerberos, c.RPC.Protections, c.RPC.Names = k.kerberos, k.protections, k.names
	c.TokenNames = k.names.Short
	return err
}

// webTokenTime bounds the lookup of a token in the store while its holder waits.
const webTokenTime = 5 * time.Second

// tokenLogin verifies the delegation tokens of the routers that web clients show.
func tokenLogin(t *tokens.Tokens) func(text string) (httpguard.Login, error) {
	return func(text string) (httpguard.Login, error) {
		ctx, cancel := context.WithTimeout(context.Background(), webTokenTime)
		defer cancel()
		id, err := t.Login(ctx, text)
		return httpguard.Login{User: id.Owner, RealUser: id.RealUser}, err
	}
}
