// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/hmac"
	"encoding/binary"
	"math/rand/v2"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// keys are the master keys of a ResourceManager. Its journal has them, so that later epochs use the same ones. They
// never change here.
type keys struct {
	amrm, nm, container *token.Mac
}

func newKeys(seed uint64, index int) keys {
	rnd := rand.New(rand.NewPCG(seed, 0x5ec3e7+uint64(index)))
	mac := func(id int32) *token.Mac {
		secret := make([]byte, 0, 32)
		for range 4 {
			secret = binary.BigEndian.AppendUint64(secret, rnd.Uint64())
		}
		return token.NewMac(token.Key{ID: id, Secret: secret})
	}
	return keys{amrm: mac(1), nm: mac(2), container: mac(3)}
}

// mint returns a Mint for an application's tokens; call done afterwards.
func (c *cluster) mint(app creel.ApplicationID) (t *codec.Mint, done func()) {
	return &codec.Mint{
		NMKey:        c.keys.nm,
		ContainerKey: c.keys.container,
		User:         c.users[app],
		Expiry:       c.conf.ContainerExpiry,
		RM:           c.start.UnixMilli(),
		Service:      c.serviceOf,
	}, func() {}
}

// nodeKeys returns the keys that a node must receive.
func (c *cluster) nodeKeys(container, nm *pb.MasterKeyProto) codec.NodeKeys {
	return codec.KeysFor(c.keys.container.Key(), c.keys.nm.Key(), container, nm)
}

// caller returns the attempt of an AMRM token. holds decides whether that attempt may still call.
func (c *cluster) caller(t *pb.TokenProto) (creel.AttemptID, error) {
	id, err := token.ParseAMRM(t.GetIdentifier())
	if err != nil {
		return creel.AttemptID{}, err
	}
	if !hmac.Equal(c.keys.amrm.Key().Password(t.GetIdentifier()), t.GetPassword()) {
		return creel.AttemptID{}, &creel.Error{
			Kind: creel.ErrInvalidToken,
			What: "AMRM token of " + id.Attempt.String(),
		}
	}
	return id.Attempt, nil
}

// serviceOf returns a node's address for tokens.
func (c *cluster) serviceOf(id creel.NodeID) string {
	if n := c.w.nodes[id]; n != nil {
		return n.address
	}
	return id.String()
}
