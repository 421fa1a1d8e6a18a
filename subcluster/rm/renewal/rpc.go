// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/network"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/failover"
	"github.com/creelrm/creel/subcluster/remote"
)

// KindHistory is the kind of delegation tokens of MapReduce's history server.
const KindHistory = "MR_DELEGATION_TOKEN"

// historyProtocol is the protocol of MapReduce's history server.
const historyProtocol = "org.apache.hadoop.mapreduce.v2.api.HSClientProtocolPB"

// RPC renews tokens at their service by a protocol of Hadoop's. Its calls and messages about tokens have the names,
// numbers and types of YARN's, as in all of them (Security.proto). It is safe for concurrent use.
type RPC struct {
	Client   *hrpc.Client
	Protocol string
	// Login returns the login at a host:port for a user, "" for the ResourceManager itself.
	Login func(address, user string) hrpc.Login
	// Hosts returns the addresses of a token's service; nil: the service is one.
	Hosts func(service string) ([]string, error)

	mu    sync.Mutex
	pairs map[string]*failover.Pair // by service
}

// History renews tokens at MapReduce's history server.
func History(client *hrpc.Client, login func(address, user string) hrpc.Login) *RPC {
	return &RPC{Client: client, Protocol: historyProtocol, Login: login}
}

// Clusters renews delegation tokens of other YARN clusters at their ResourceManagers or routers. The service of a
// pair's token has the addresses of both.
func Clusters(client *hrpc.Client, login func(address, user string) hrpc.Login) *RPC {
	return &RPC{
		Client: client, Protocol: yarnrpc.ApplicationClientProtocolName, Login: login,
		Hosts: func(service string) ([]string, error) { return strings.Split(service, ","), nil },
	}
}

// Renew is Server's.
func (h *RPC) Renew(ctx context.Context, t token.Token) (time.Time, error) {
	var answer yarnpb.RenewDelegationTokenResponseProto
	err := h.call(ctx, t.Service, "", func(p *hrpc.Peer) error {
		return p.Call(ctx, "renewDelegationToken", &yarnpb.RenewDelegationTokenRequestProto{Token: t.Proto()}, &answer)
	})
	return time.UnixMilli(int64(answer.GetNewExpiryTime())), err
}

// Cancel is Server's.
func (h *RPC) Cancel(ctx context.Context, t token.Token) error {
	return h.call(ctx, t.Service, "", func(p *hrpc.Peer) error {
		return p.Call(ctx, "cancelDelegationToken", &yarnpb.CancelDelegationTokenRequestProto{Token: t.Proto()},
			new(yarnpb.CancelDelegationTokenResponseProto))
	})
}

// call makes a call at the active server of a token's service.
func (h *RPC) call(ctx context.Context, service, user string, call func(*hrpc.Peer) error) error {
	hosts := []string{service}
	if h.Hosts != nil {
		var err error
		if hosts, err = h.Hosts(service); err != nil {
			return err
		}
	}
	err := failover.Each(ctx, h.pair(service), hosts, true, func(address string) error {
		return call(h.Client.Peer(hrpc.Target{Address: address, Protocol: h.Protocol, Login: h.Login(address, user)}))
	})
	var refused *hrpc.RemoteError
	switch {
	case !errors.As(err, &refused):
		return network.InWords(err)
	case final(refused):
		return fmt.Errorf("%w: %s", ErrRejected, remote.Sentence(refused.Message))
	}
	return errors.New(remote.Sentence(refused.Message))
}

func (h *RPC) pair(service string) *failover.Pair {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pairs == nil {
		h.pairs = map[string]*failover.Pair{}
	}
	if h.pairs[service] == nil {
		h.pairs[service] = &failover.Pair{}
	}
	return h.pairs[service]
}

// final reports whether a server repeats an answer: the token is unknown there, or names another renewer.
func final(e *hrpc.RemoteError) bool {
	class := e.Class[strings.LastIndex(e.Class, ".")+1:]
	return class == "SecretManager$InvalidToken" || class == "AccessControlException" ||
		errors.Is(e.Kind, creel.ErrInvalidToken)
}
