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
	"github.com/creelrm/creel/subcluster/failover"
	"github.com/creelrm/creel/subcluster/remote"
)

// KindHDFS is the kind of HDFS's delegation tokens.
const KindHDFS = "HDFS_DELEGATION_TOKEN"

// clientProtocol is the protocol of NameNodes. Its messages about tokens have the numbers and types of YARN's
// (ClientNamenodeProtocol.proto, Security.proto).
const clientProtocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"

// HDFS renews tokens at NameNodes. It is safe for concurrent use.
type HDFS struct {
	Client *hrpc.Client
	// Login returns the login at a NameNode's host:port.
	Login func(address string) hrpc.Login
	// NameNodes returns the addresses of a nameservice, which tokens name as ha-hdfs:NAME.
	NameNodes func(nameservice string) []string

	mu    sync.Mutex
	pairs map[string]*failover.Pair // by service
}

// Renew is Server's.
func (h *HDFS) Renew(ctx context.Context, t token.Token) (time.Time, error) {
	var answer yarnpb.RenewDelegationTokenResponseProto
	err := h.call(ctx, t, func(p *hrpc.Peer) error {
		return p.Call(ctx, "renewDelegationToken", &yarnpb.RenewDelegationTokenRequestProto{Token: t.Proto()}, &answer)
	})
	return time.UnixMilli(int64(answer.GetNewExpiryTime())), err
}

// Cancel is Server's.
func (h *HDFS) Cancel(ctx context.Context, t token.Token) error {
	return h.call(ctx, t, func(p *hrpc.Peer) error {
		return p.Call(ctx, "cancelDelegationToken", &yarnpb.CancelDelegationTokenRequestProto{Token: t.Proto()},
			new(yarnpb.CancelDelegationTokenResponseProto))
	})
}

// call makes a call at the active NameNode of a token's service.
func (h *HDFS) call(ctx context.Context, t token.Token, call func(*hrpc.Peer) error) error {
	hosts := []string{t.Service}
	if name, ok := strings.CutPrefix(t.Service, "ha-hdfs:"); ok {
		if hosts = h.NameNodes(name); len(hosts) == 0 {
			return fmt.Errorf("%w: no NameNode of %s is known: set dfs.ha.namenodes.%s and dfs.namenode.rpc-address.%s.*",
				ErrRejected, name, name, name)
		}
	}
	err := failover.Each(ctx, h.pair(t.Service), hosts, true, func(address string) error {
		return call(h.Client.Peer(hrpc.Target{Address: address, Protocol: clientProtocol, Login: h.Login(address)}))
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

func (h *HDFS) pair(service string) *failover.Pair {
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

// final reports whether a NameNode repeats an answer: the token is unknown there, or names another renewer.
func final(e *hrpc.RemoteError) bool {
	class := e.Class[strings.LastIndex(e.Class, ".")+1:]
	return class == "SecretManager$InvalidToken" || class == "AccessControlException" ||
		errors.Is(e.Kind, creel.ErrInvalidToken)
}
