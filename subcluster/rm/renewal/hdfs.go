// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
)

// KindHDFS is the kind of HDFS's delegation tokens.
const KindHDFS = "HDFS_DELEGATION_TOKEN"

// clientProtocol is the protocol of NameNodes (ClientNamenodeProtocol.proto).
const clientProtocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"

// logicalService begins the service of a nameservice's tokens.
const logicalService = "ha-hdfs:"

// HDFS renews and obtains tokens at NameNodes. It is safe for concurrent use.
type HDFS struct {
	*RPC
	// Renewer is the principal that the tokens obtained here name as their renewer.
	Renewer string
}

// NewHDFS makes an HDFS. nameNodes returns the addresses of a nameservice, which tokens name as ha-hdfs:NAME.
func NewHDFS(
	client *hrpc.Client, login func(address, user string) hrpc.Login, nameNodes func(nameservice string) []string,
	renewer string,
) *HDFS {
	return &HDFS{Renewer: renewer, RPC: &RPC{
		Client: client, Protocol: clientProtocol, Login: login, Hosts: func(service string) ([]string, error) {
			name, logical := strings.CutPrefix(service, logicalService)
			if !logical {
				return []string{service}, nil
			}
			if hosts := nameNodes(name); len(hosts) > 0 {
				return hosts, nil
			}
			return nil, fmt.Errorf(
				"%w: no NameNode of %s is known: set dfs.ha.namenodes.%s and dfs.namenode.rpc-address.%s.*",
				ErrRejected, name, name, name)
		},
	}}
}

// Obtain is Obtainer's. The NameNode must permit this ResourceManager to act for the user: hadoop.proxyuser.* there.
func (h *HDFS) Obtain(ctx context.Context, like token.Token, user string) (token.Token, error) {
	service := like.Service
	if len(like.Identifier) == 0 { // of the settings, not of a client
		var err error
		if service, err = serviceOf(ctx, service); err != nil {
			return token.Token{}, err
		}
	}
	var answer yarnpb.GetDelegationTokenResponseProto
	err := h.call(ctx, like.Service, user, func(p *hrpc.Peer) error {
		return p.Call(ctx, "getDelegationToken", &yarnpb.GetDelegationTokenRequestProto{Renewer: &h.Renewer}, &answer)
	})
	fresh := token.FromProto(answer.GetToken())
	if err == nil && len(fresh.Identifier) == 0 {
		err = errors.New("the NameNode issues no tokens: it has no Kerberos")
	}
	fresh.Kind, fresh.Service = like.Kind, service
	return fresh, err
}

// serviceOf returns the service by which clients find a token: the address in place of a host's name, as they have by
// default.
func serviceOf(ctx context.Context, service string) (string, error) {
	host, port, err := net.SplitHostPort(service)
	if err != nil || strings.HasPrefix(service, logicalService) || net.ParseIP(host) != nil {
		return service, nil
	}
	found, err := net.DefaultResolver.LookupIP(ctx, "ip4", host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(found[0].String(), port), nil
}
