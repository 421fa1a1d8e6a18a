// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/subcluster/login"
	"github.com/creelrm/creel/subcluster/rm/renewal"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// nameNodePrincipal is the principal of HDFS's NameNodes, historyPrincipal that of MapReduce's history server.
const (
	nameNodePrincipal = "dfs.namenode.kerberos.principal"
	historyPrincipal  = "mapreduce.jobhistory.principal"
)

// proxyPrivileges makes the ResourceManager obtain tokens for users.
const proxyPrivileges = "yarn.resourcemanager.proxy-user-privileges.enabled"

// renewals sets the servers at which a secure ResourceManager renews applications' tokens: of HDFS, of the history
// server, and of other YARN clusters; none without their principals.
func renewals(s *settings.Settings, k *secureDaemon, c *server.Config) error {
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf, ConnectTime: 10 * time.Second})
	servers := map[string]renewal.Server{}
	of := nameNodes(s)
	for principal, add := range map[string]func(login func(address, user string) hrpc.Login){
		nameNodePrincipal: func(login func(address, user string) hrpc.Login) {
			servers[renewal.KindHDFS] = renewal.NewHDFS(client, login,
				func(nameservice string) []string { return of[nameservice] }, k.self.String())
		},
		historyPrincipal: func(login func(address, user string) hrpc.Login) {
			servers[renewal.KindHistory] = renewal.History(client, login)
		},
		// As in Hadoop, the principals of other clusters have the form of this one's.
		rmPrincipal: func(login func(address, user string) hrpc.Login) {
			servers[token.KindDelegation] = renewal.Clusters(client, login)
		},
	} {
		if s.String(principal) == "" {
			continue
		}
		service, err := principalOf(s, principal, k.realm)
		if err != nil {
			return err
		}
		as := login.Login{User: k.user, Ticket: &login.Ticket{Keytab: k.login, Service: service, Protections: k.offers}}
		add(as.RPC)
	}
	r := &c.Renewals
	r.Servers, r.Default = servers, defaultToken(s.String("fs.defaultFS"), of)
	if r.Obtains = s.Bool(proxyPrivileges); r.Obtains && servers[renewal.KindHDFS] == nil {
		return fmt.Errorf("%s obtains tokens of HDFS: set %s", proxyPrivileges, nameNodePrincipal)
	}
	r.Keep = s.Duration("yarn.resourcemanager.delayed.delegation-token.removal-interval-ms")
	if !s.Bool("yarn.log-aggregation-enable") { // no node uploads
		r.Keep = 0
	}
	return nil
}

// defaultToken returns the kind and the service of the tokens of the default file system; zero if it is not HDFS.
func defaultToken(fileSystem string, nameServices map[string][]string) token.Token {
	at, err := url.Parse(fileSystem)
	if err != nil || at.Scheme != "hdfs" || at.Host == "" {
		return token.Token{}
	}
	t := token.Token{Kind: renewal.KindHDFS, Service: at.Host}
	switch _, logical := nameServices[at.Host]; {
	case logical:
		t.Service = "ha-hdfs:" + at.Host
	case at.Port() == "":
		t.Service = net.JoinHostPort(at.Hostname(), "8020")
	}
	return t
}

// routerTokens renews the delegation tokens of a federation's routers. A member finds them in the store and needs no
// call to a router.
type routerTokens struct {
	tokens *tokens.Tokens
	others renewal.Server // for tokens of other clusters; nil: there is none
}

// withRouterTokens returns a member's renewals with those of the routers' tokens.
func withRouterTokens(of map[string]renewal.Server, c server.Config, m *Membership) map[string]renewal.Server {
	all := map[string]renewal.Server{}
	maps.Copy(all, of)
	all[token.KindDelegation] = routerTokens{
		tokens: tokens.New(m.Store, m.Secret, c.Tokens, rand.Reader), others: of[token.KindDelegation],
	}
	return all
}

// Renew is renewal.Server's. As in Hadoop the ResourceManager acts as the renewer that the token names.
func (r routerTokens) Renew(ctx context.Context, t token.Token) (expires time.Time, err error) {
	id, err := token.ParseDelegation(t.Identifier)
	if err == nil {
		expires, err = r.tokens.Renew(ctx, t, id.Renewer)
	}
	if errors.Is(err, creel.ErrInvalidToken) && r.others != nil {
		return r.others.Renew(ctx, t)
	}
	return expires, renewal.Final(err)
}

// Cancel is renewal.Server's.
func (r routerTokens) Cancel(ctx context.Context, t token.Token) error {
	id, err := token.ParseDelegation(t.Identifier)
	if err == nil {
		err = r.tokens.Cancel(ctx, t, id.Renewer)
	}
	if errors.Is(err, creel.ErrInvalidToken) && r.others != nil {
		return r.others.Cancel(ctx, t)
	}
	return renewal.Final(err)
}

// nameNodes returns the addresses of the NameNodes of each nameservice.
func nameNodes(s *settings.Settings) map[string][]string {
	address := map[string]string{}
	for _, v := range s.Matching("dfs.namenode.rpc-address.*.*") {
		address[strings.TrimPrefix(v.Key, "dfs.namenode.rpc-address.")] = v.Text
	}
	of := map[string][]string{}
	for _, v := range s.Matching("dfs.ha.namenodes.*") {
		name := strings.TrimPrefix(v.Key, "dfs.ha.namenodes.")
		for _, id := range settings.SplitList(v.Text) {
			if at := address[name+"."+id]; at != "" {
				of[name] = append(of[name], at)
			}
		}
	}
	return of
}
