// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/rand"
	"maps"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/subcluster/login"
	"github.com/creelrm/creel/subcluster/rm/renewal"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// nameNodePrincipal is the principal of HDFS's NameNodes.
const nameNodePrincipal = "dfs.namenode.kerberos.principal"

// renewals returns the servers at which a secure ResourceManager renews applications' tokens of HDFS; none without the
// NameNodes' principal.
func renewals(s *settings.Settings, k *secureDaemon) (map[string]renewal.Server, error) {
	of := nameNodes(s)
	if s.String(nameNodePrincipal) == "" {
		return nil, nil
	}
	service, err := principalOf(s, nameNodePrincipal, k.realm)
	if err != nil {
		return nil, err
	}
	as := login.Login{User: k.user, Ticket: &login.Ticket{Keytab: k.login, Service: service, Protections: k.offers}}
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf, ConnectTime: 10 * time.Second})
	return map[string]renewal.Server{renewal.KindHDFS: &renewal.HDFS{
		Client:    client,
		Login:     func(address string) hrpc.Login { return as.RPC(address, "") },
		NameNodes: func(nameservice string) []string { return of[nameservice] },
	}}, nil
}

// routerTokens renews the delegation tokens of a federation's routers. A member finds them in the store and needs no
// call to a router.
type routerTokens struct{ tokens *tokens.Tokens }

// withRouterTokens returns a member's renewals with those of the routers' tokens.
func withRouterTokens(of map[string]renewal.Server, c server.Config, m *Membership) map[string]renewal.Server {
	all := map[string]renewal.Server{}
	maps.Copy(all, of)
	all[token.KindDelegation] = routerTokens{tokens.New(m.Store, m.Secret, c.Tokens, rand.Reader)}
	return all
}

// Renew is renewal.Server's. As in Hadoop the ResourceManager acts as the renewer that the token names.
func (r routerTokens) Renew(ctx context.Context, t token.Token) (time.Time, error) {
	id, err := token.ParseDelegation(t.Identifier)
	if err != nil {
		return time.Time{}, renewal.Final(err)
	}
	expires, err := r.tokens.Renew(ctx, t, id.Renewer)
	return expires, renewal.Final(err)
}

// Cancel is renewal.Server's.
func (r routerTokens) Cancel(ctx context.Context, t token.Token) error {
	id, err := token.ParseDelegation(t.Identifier)
	if err == nil {
		err = r.tokens.Cancel(ctx, t, id.Renewer)
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
