// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
)

// NodeKeys sign the tokens that a member's nodes check. With them a proxy places opportunistic containers, as Hadoop's
// NodeManager does with the keys that its ResourceManager sends it. The zero value is published by a ResourceManager
// without distributed scheduling that had it before.
type NodeKeys struct {
	NM, Container token.Key
	RMIdentifier  int64 // nodes reject containers of an earlier start of the ResourceManager
	Epoch         int64 // of that start
}

func (k NodeKeys) isZero() bool { return k.Container.IsZero() }

func sameNodeKeys(a, b NodeKeys) bool {
	return a.RMIdentifier == b.RMIdentifier && a.Epoch == b.Epoch &&
		sameKey(a.NM, b.NM) && sameKey(a.Container, b.Container)
}

func sameKey(a, b token.Key) bool { return a.ID == b.ID && bytes.Equal(a.Secret, b.Secret) }

// NodeRing returns the name of the ring with a member's NodeKeys.
func NodeRing(member creel.SubclusterID) string { return "nodes-" + string(member) }

// PublishNodeKeys stores a member's NodeKeys, sealed with seal, for the proxies. It writes nothing if they are
// unchanged, or if they are zero and none were published.
func PublishNodeKeys(
	ctx context.Context, store Rings, member creel.SubclusterID, keys NodeKeys, seal []statestore.Key,
) error {
	if keys.isZero() {
		if now, err := store.Keys(ctx, NodeRing(member)); err != nil || len(now) == 0 {
			return err
		}
	}
	return publish(ctx, store, member, NodeRing(member), seal, keys, sameNodeKeys)
}

// Issuer makes the Cache read the members' NodeKeys too, and returns the issuer of tokens signed with them. It is
// called before Run.
func (c *Cache) Issuer() amrmproxy.Issuer {
	c.places = true
	return issuer{c}
}

type issuer struct{ cache *Cache }

func (i issuer) keys(member creel.SubclusterID) (NodeKeys, bool) {
	k := (*i.cache.nodes.Load())[member]
	return k, !k.isZero()
}

// Issues implements amrmproxy.Issuer.
func (i issuer) Issues(member creel.SubclusterID) (amrmproxy.Signing, bool) {
	k, ok := i.keys(member)
	return amrmproxy.Signing{NodeKey: k.NM.ID, Epoch: k.Epoch}, ok
}

// Container implements amrmproxy.Issuer.
func (i issuer) Container(member creel.SubclusterID, c *amrmproxy.PlacedContainer) (*yarnpb.TokenProto, bool) {
	k, ok := i.keys(member)
	if !ok {
		return nil, false
	}
	return token.NewMac(k.Container).Container(token.Container{
		ID: c.ID, Node: c.Node, User: c.User, Resource: c.Resource, Expires: c.Expires, RMIdentifier: k.RMIdentifier,
		Priority: c.Priority, Created: c.Created, Label: c.Label, Execution: creel.Opportunistic,
		AllocationRequestID: c.AllocationRequestID,
	}, c.Node.String()).Proto(), true
}

// Node implements amrmproxy.Issuer.
func (i issuer) Node(member creel.SubclusterID, c *amrmproxy.PlacedContainer) (*yarnpb.TokenProto, bool) {
	k, ok := i.keys(member)
	if !ok {
		return nil, false
	}
	of := token.NM{Attempt: c.ID.Attempt, Node: c.Node, User: c.User}
	return token.NewMac(k.NM).NM(of, c.Node.String()).Proto(), true
}
