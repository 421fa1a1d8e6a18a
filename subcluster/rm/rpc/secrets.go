// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// keySet is what minting and checking need of the master keys at a moment. It
// is replaced, never changed, so any goroutine may use the one it loaded.
type keySet struct {
	amrmNewest token.Key
	amrm       token.Ring // accepted
	nm         token.Key  // signs
	container  token.Key  // signs
	nmTell     token.Key  // what nodes must know: the pending key, or the one in use
	contTell   token.Key
}

// appSecrets is what the minting of an application's tokens needs to know.
type appSecrets struct {
	user string
	logs *pb.LogAggregationContextProto
}

// secrets mints and checks tokens. The rolling keys belong to the owner, who
// publishes a keySet; responders and connections mint and check beside it.
type secrets struct {
	amrm, nm, container *token.Keys
	rnd                 *rand.Rand
	keys                atomic.Pointer[keySet]
	minters             sync.Pool

	mu       sync.RWMutex
	apps     map[creel.ApplicationID]*appSecrets
	attempts map[creel.AttemptID]bool // whose AMRM tokens are good
	services map[creel.NodeID]string  // ip:port of nodes, for the service of tokens
	noApp    appSecrets

	expiry time.Duration // of container tokens
	rm     int64         // our start time, ms
}

// secretsValue is what of the keys the journal keeps.
type secretsValue struct{ AMRM, NM, Container token.KeyState }

// chance is a source nobody can predict, for master keys.
func chance() *rand.Rand {
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		panic(err) // the systems we run on always have random bytes
	}
	return rand.New(rand.NewChaCha8(seed))
}

func newSecrets(now time.Time, cfg Config) *secrets {
	rnd := chance()
	masters, nodes := rollings(cfg)
	s := &secrets{
		amrm: token.NewKeys(
			masters,
			now,
			rnd,
		),
		nm:        token.NewKeys(nodes, now, rnd),
		container: token.NewKeys(nodes, now, rnd),
		rnd:       rnd,
		apps:      map[creel.ApplicationID]*appSecrets{},
		attempts:  map[creel.AttemptID]bool{},
		services:  map[creel.NodeID]string{},
		expiry:    cfg.Machine.ContainerExpiry,
		rm:        now.UnixMilli(),
	}
	s.minters.New = func() any { return new(minter) }
	s.publish()
	return s
}

// rollings are how keys roll: a new key signs only after everybody who checks
// it has had one and a half liveness times to learn it.
func rollings(cfg Config) (masters, nodes token.Rolling) {
	masters = token.Rolling{Every: cfg.KeyRoll, Delay: min(cfg.Machine.MasterExpiry*3/2, cfg.KeyRoll/2)}
	nodes = token.Rolling{Every: cfg.KeyRoll, Delay: min(cfg.Machine.NodeExpiry*3/2, cfg.KeyRoll/2)}
	return masters, nodes
}

func (s *secrets) publish() {
	s.keys.Store(&keySet{
		amrmNewest: s.amrm.Newest().Key(), amrm: s.amrm.Accepted(),
		nm: s.nm.Current().Key(), container: s.container.Current().Key(),
		nmTell: s.nm.Newest().Key(), contTell: s.container.Newest().Key(),
	})
}

// step rolls keys whose time has come. nmActive tells that NM tokens are signed
// with another key from now on.
func (s *secrets) step(now time.Time) (changed, nmActive bool) {
	before := s.nm.Current().Key().ID
	a, b, c := s.amrm.Step(now, s.rnd), s.nm.Step(now, s.rnd), s.container.Step(now, s.rnd)
	if !a && !b && !c {
		return false, false
	}
	s.publish()
	return true, s.nm.Current().Key().ID != before
}

func (s *secrets) restore(cfg Config, b []byte) error {
	var v secretsValue
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("resource manager: the journal's master keys: %w", err)
	}
	masters, nodes := rollings(cfg)
	s.amrm, s.nm, s.container = token.RestoreKeys(
		masters,
		v.AMRM,
	), token.RestoreKeys(
		nodes,
		v.NM,
	), token.RestoreKeys(
		nodes,
		v.Container,
	)
	s.publish()
	return nil
}

func (s *secrets) value() ([]byte, error) {
	return json.Marshal(secretsValue{AMRM: s.amrm.State(), NM: s.nm.State(), Container: s.container.State()})
}

func (s *secrets) addApp(id creel.ApplicationID, user string, c *pb.ApplicationSubmissionContextProto) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps[id] = &appSecrets{user: user, logs: c.GetLogAggregationContext()}
}

func (s *secrets) forgetApp(id creel.ApplicationID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.apps, id)
}

func (s *secrets) addAttempt(id creel.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[id] = true
}

func (s *secrets) forgetAttempt(id creel.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.attempts, id)
}

func (s *secrets) setService(id creel.NodeID, service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[id] = service
}

// minter holds expanded keys; each belongs to one goroutine at a time.
type minter struct{ nm, container *token.Mac }

func (m *minter) use(k *keySet) {
	if m.nm == nil || m.nm.Key().ID != k.nm.ID {
		m.nm = token.NewMac(k.nm)
	}
	if m.container == nil || m.container.Key().ID != k.container.ID {
		m.container = token.NewMac(k.container)
	}
}

// minting begins to mint for one application; done gives the tools back.
func (s *secrets) minting(app creel.ApplicationID) (t *mint, done func()) {
	m := s.minters.Get().(*minter)
	m.use(s.keys.Load())
	s.mu.RLock()
	about := s.apps[app]
	if about == nil {
		about = &s.noApp
	}
	s.mu.RUnlock()
	return &mint{s: s, m: m, about: about}, func() { s.minters.Put(m) }
}

// mint mints tokens of one application's containers and nodes.
type mint struct {
	s     *secrets
	m     *minter
	about *appSecrets

	// Of the last container: those of a wave are alike, and an answer in which
	// they share these takes a third less memory.
	resource      creel.Resource
	resourceProto *pb.ResourceProto
	priority      *pb.PriorityProto
}

func (t *mint) resourceOf(r creel.Resource) *pb.ResourceProto {
	if t.resourceProto == nil || !r.Equal(t.resource) {
		t.resource, t.resourceProto = r, pb.FromResource(r)
	}
	return t.resourceProto
}

func (t *mint) priorityOf(n int32) *pb.PriorityProto {
	if t.priority == nil || t.priority.GetPriority() != n {
		t.priority = pb.FromPriority(n)
	}
	return t.priority
}

func (t *mint) service(node creel.NodeID) string {
	t.s.mu.RLock()
	service := t.s.services[node]
	t.s.mu.RUnlock()
	if service == "" {
		return node.String()
	}
	return service
}

// nm is what a master shows to a node.
func (t *mint) nm(a creel.AttemptID, node creel.NodeID) token.Token {
	return t.m.nm.NM(token.NM{Attempt: a, Node: node, User: t.about.user}, t.service(node))
}

func (t *mint) nmProto(a creel.AttemptID, node creel.NodeID) *pb.NMTokenProto {
	return &pb.NMTokenProto{NodeId: pb.FromNodeID(node), Token: t.nm(a, node).Proto()}
}

// container is what a master shows to a node to start one container.
func (t *mint) container(g *rm.Grant) token.Token {
	created := time.UnixMilli(g.Created)
	return t.m.container.Container(token.Container{
		ID:                  g.ID,
		Node:                g.Node,
		User:                t.about.user,
		Resource:            g.Resource,
		Expires:             created.Add(t.s.expiry),
		RMIdentifier:        t.s.rm,
		Priority:            g.Priority,
		Created:             created,
		Logs:                t.about.logs,
		Master:              g.Master,
		Execution:           g.ExecutionType,
		Version:             g.Version,
		AllocationRequestID: g.AllocationRequestID,
		Tags:                g.Tags,
	}, t.service(g.Node))
}

// containerProto is a grant as its master gets it. The grant must live as long
// as the message.
func (t *mint) containerProto(g *rm.Grant) *pb.ContainerProto {
	return t.fill(new(pb.ContainerProto), g)
}

// fill is containerProto in given memory.
func (t *mint) fill(c *pb.ContainerProto, g *rm.Grant) *pb.ContainerProto {
	c.Id, c.NodeId, c.NodeHttpAddress = pb.FromContainerID(g.ID), pb.FromNodeID(g.Node), &g.HTTPAddress
	c.Resource, c.Priority = t.resourceOf(g.Resource), t.priorityOf(g.Priority)
	c.ContainerToken = t.container(g).Proto()
	c.ExecutionType = new(pb.ExecutionTypeProto(g.ExecutionType))
	c.AllocationRequestId, c.Version, c.AllocationTags = &g.AllocationRequestID, &g.Version, g.Tags
	return c
}

// amrmToken is what a master shows us. Its service is empty: the master fills
// in the address it dials.
func (s *secrets) amrmToken(a creel.AttemptID) token.Token {
	return token.NewMac(s.keys.Load().amrmNewest).AMRM(a)
}

// newerAMRM is the token that replaces one signed with an older key, or nil.
func (s *secrets) newerAMRM(held token.AMRM) *pb.TokenProto {
	if s.keys.Load().amrmNewest.ID == held.KeyID {
		return nil
	}
	return s.amrmToken(held.Attempt).Proto()
}

// checkAMRM finds the password of an AMRM token: its key must be the current or
// the next one, and its attempt alive.
func (s *secrets) checkAMRM(identifier []byte) ([]byte, hrpc.Identity, error) {
	id, err := token.ParseAMRM(identifier)
	if err != nil {
		return nil, hrpc.Identity{}, err
	}
	s.mu.RLock()
	known := s.attempts[id.Attempt]
	s.mu.RUnlock()
	if !known {
		return nil, hrpc.Identity{}, &creel.Error{
			Kind: creel.ErrInvalidToken,
			What: id.Attempt.String() + " not found in AMRMTokenSecretManager.",
		}
	}
	password, err := s.keys.Load().amrm.Password(id.KeyID, identifier)
	return password, hrpc.Identity{User: id.Attempt.String(), TokenKind: token.KindAMRM, Value: id}, err
}

// keysFor are the master keys a node must learn, nil for those it has.
func (s *secrets) keysFor(container, nm *pb.MasterKeyProto) (newContainer, newNM *pb.MasterKeyProto) {
	k := s.keys.Load()
	if container == nil || container.GetKeyId() != k.contTell.ID {
		newContainer = k.contTell.Proto()
	}
	if nm == nil || nm.GetKeyId() != k.nmTell.ID {
		newNM = k.nmTell.Proto()
	}
	return newContainer, newNM
}
