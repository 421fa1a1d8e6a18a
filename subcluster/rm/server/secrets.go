// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
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
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// keySet has the master keys that minting and checking need at a moment. It is immutable, so any goroutine may use
// the one that it loaded.
type keySet struct {
	amrmNewest token.Key
	amrm       token.Ring // accepted
	nm         token.Key  // signs
	container  token.Key  // signs
	containers token.Ring // accepted: nodes sign with the key that they received last
	nmTell     token.Key  // key to send to nodes: the pending one, or the one in use
	contTell   token.Key
}

// appSecrets holds the data for minting an application's tokens.
type appSecrets struct {
	user string
	logs *pb.LogAggregationContextProto
}

// secrets has the master keys and checks tokens. The owner rolls the keys and publishes a keySet; responders and
// connections mint and check concurrently.
type secrets struct {
	amrm, nm, container *token.Keys
	clients             []byte            // the keys of clients' tokens for AMs derive from it
	amClients           map[string][]byte // the keys for AMs that another implementation started
	rnd                 *rand.Rand
	keys                atomic.Pointer[keySet]
	minters             sync.Pool

	mu       sync.RWMutex
	apps     map[creel.ApplicationID]*appSecrets
	live     turn.Live               // attempts with valid AMRM tokens
	finished finishedAttempts        // and attempts that ended recently
	services map[creel.NodeID]string // ip:port of nodes, for tokens
	noApp    appSecrets

	serviceOf func(creel.NodeID) string // the method service, bound once, not for each answer

	expiry time.Duration // of container tokens
	rm     int64         // ms of Server.Started, once known
	epoch  int64         // of that start
}

// secretsValue is the part of the keys stored in the journal.
type secretsValue struct {
	AMRM, NM, Container token.KeyState
	Clients             []byte // absent in journals of earlier versions
	// AMClients are the keys of attempts that another implementation started.
	AMClients map[string][]byte `json:",omitempty"`
}

// randomSource returns an unpredictable random source for master keys.
func randomSource() *rand.Rand {
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		panic(err) // supported systems always have random bytes
	}
	return rand.New(rand.NewChaCha8(seed))
}

func newSecrets(now time.Time, cfg Config) *secrets {
	rnd := randomSource()
	ams, nodes := rollings(cfg)
	s := &secrets{
		amrm: token.NewKeys(
			ams,
			now,
			rnd,
		),
		nm:        token.NewKeys(nodes, now, rnd),
		container: token.NewKeys(nodes, now, rnd),
		clients:   make([]byte, 32),
		rnd:       rnd,
		apps:      map[creel.ApplicationID]*appSecrets{},
		services:  map[creel.NodeID]string{},
		finished:  finishedAttempts{grace: cfg.Machine.AMExpiry},
		expiry:    cfg.Machine.ContainerExpiry,
	}
	if _, err := crand.Read(s.clients); err != nil {
		panic(err) // supported systems always have random bytes
	}
	s.serviceOf = s.service
	s.minters.New = func() any { return new(minter) }
	s.publish()
	return s
}

// rollings returns the schedule of keys: a new key signs only after every checker has had one and a half liveness
// times to receive it.
func rollings(cfg Config) (ams, nodes token.Rolling) {
	ams = token.Rolling{Every: cfg.KeyRoll, Delay: min(cfg.Machine.AMExpiry*3/2, cfg.KeyRoll/2)}
	nodes = token.Rolling{Every: cfg.KeyRoll, Delay: min(cfg.Machine.NodeExpiry*3/2, cfg.KeyRoll/2)}
	return ams, nodes
}

func (s *secrets) publish() {
	s.keys.Store(&keySet{
		amrmNewest: s.amrm.Newest().Key(), amrm: s.amrm.Accepted(),
		nm: s.nm.Current().Key(), container: s.container.Current().Key(),
		containers: s.container.Accepted(),
		nmTell:     s.nm.Newest().Key(), contTell: s.container.Newest().Key(),
	})
}

// step rolls due keys. nmActive reports whether NM tokens are signed with another key from now on.
func (s *secrets) step(now time.Time) (changed, nmActive bool) {
	before := s.nm.Current().Key().ID
	a, b, c := s.amrm.Step(now, s.rnd), s.nm.Step(now, s.rnd), s.container.Step(now, s.rnd)
	if !a && !b && !c {
		return false, false
	}
	s.publish()
	return true, s.nm.Current().Key().ID != before
}

// restore continues with the stored keys. An imported state has no keys of nodes, and no time for the change of AMs'
// keys.
func (s *secrets) restore(cfg Config, now time.Time, b []byte) error {
	var v secretsValue
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("resource manager: the journal's master keys: %w", err)
	}
	ams, nodes := rollings(cfg)
	for _, k := range []struct {
		keys    **token.Keys
		rolling token.Rolling
		stored  token.KeyState
	}{{&s.amrm, ams, v.AMRM}, {&s.nm, nodes, v.NM}, {&s.container, nodes, v.Container}} {
		if !k.stored.Current.IsZero() {
			*k.keys = token.RestoreKeys(k.rolling, k.stored.Begun(k.rolling, now))
		}
	}
	s.amClients = v.AMClients
	if v.Clients != nil {
		s.clients = v.Clients
	}
	s.publish()
	return nil
}

func (s *secrets) value() ([]byte, error) {
	return json.Marshal(secretsValue{
		AMRM: s.amrm.State(), NM: s.nm.State(), Container: s.container.State(),
		Clients: s.clients, AMClients: s.amClients,
	})
}

// clientKey is the key of clients' tokens for an attempt's AM. It is the same after a restart.
func (s *secrets) clientKey(id creel.AttemptID) token.Key {
	if key := s.amClients[id.String()]; key != nil {
		return token.Key{Secret: key}
	}
	of := hmac.New(sha256.New, s.clients)
	of.Write([]byte(id.String())) // never fails
	return token.Key{Secret: of.Sum(nil)}
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

// perform applies an action of the machine that makes an attempt's token valid or invalid.
func (s *secrets) perform(a rm.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live.Perform(a)
	if e, ok := a.(rm.AttemptEnded); ok && e.Finished {
		s.finished.add(e.Attempt, time.Now())
	}
}

// recovered makes the tokens of a recovered application valid again.
func (s *secrets) recovered(a *rm.AppRecord) {
	s.addApp(a.Submission.ID, a.Submission.User, codec.ContextOf(a.Submission.Context))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live.Recovered(a)
	for i := range a.Attempts {
		if t := &a.Attempts[i]; t.State == creel.AttemptFinished {
			s.finished.add(t.ID, t.Finished)
		}
	}
}

// alive reports whether an attempt's tokens are valid.
func (s *secrets) alive(id creel.AttemptID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live.Has(id)
}

func (s *secrets) setService(id creel.NodeID, service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[id] = service
}

// amrmToken returns an AM's token for this ResourceManager. Its service is empty: the AM sets the address that it
// dials.
func (s *secrets) amrmToken(a creel.AttemptID) token.Token {
	return token.NewMac(s.keys.Load().amrmNewest).AMRM(a)
}

// newerAMRM returns the token that replaces one signed with an older key, or nil.
func (s *secrets) newerAMRM(held token.AMRM) *pb.TokenProto {
	if s.keys.Load().amrmNewest.ID == held.KeyID {
		return nil
	}
	return s.amrmToken(held.Attempt).Proto()
}

// mayCall reports whether an attempt's AM may log in: it is alive, or finished recently and may not have the
// confirmation.
func (s *secrets) mayCall(id creel.AttemptID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live.Has(id) || s.finished.has(id, time.Now())
}

// checkAMRM finds the password of an AMRM token: its key must be the current or the next one, and its attempt alive
// or just finished.
func (s *secrets) checkAMRM(identifier []byte) ([]byte, hrpc.Identity, error) {
	id, err := token.ParseAMRM(identifier)
	if err != nil {
		return nil, hrpc.Identity{}, err
	}
	if !s.mayCall(id.Attempt) {
		return nil, hrpc.Identity{}, &creel.Error{
			Kind: creel.ErrInvalidToken,
			What: id.Attempt.String() + " not found in AMRMTokenSecretManager.",
		}
	}
	password, err := s.keys.Load().amrm.Password(id.KeyID, identifier)
	return password, hrpc.Identity{User: id.Attempt.String(), TokenKind: token.KindAMRM, Value: id}, err
}

// AMRMKeys returns the keys whose AMRM tokens are accepted now, the current one and the next one; a federation's
// proxies check tokens with them.
func (s *Server) AMRMKeys() token.Ring { return s.secrets.keys.Load().amrm }

// AMRMToken returns the token with which an attempt's AM calls this server.
func (s *Server) AMRMToken(a creel.AttemptID) token.Token { return s.secrets.amrmToken(a) }

// NewerAMRMToken returns the token that replaces one signed with an older key, or
// nil.
func (s *Server) NewerAMRMToken(held token.AMRM) *pb.TokenProto { return s.secrets.newerAMRM(held) }

// CheckAMRM finds the password of an AMRM token for a handshake.
func (s *Server) CheckAMRM(identifier []byte) ([]byte, hrpc.Identity, error) {
	return s.secrets.checkAMRM(identifier)
}

// Clients has the keys and tokens of AMs' clients.
type Clients struct{ *Server }

// Key returns the key with which an AM checks its clients' tokens, nil if clients need none.
func (c Clients) Key(id creel.AttemptID) []byte {
	if c.cfg.Secure == nil {
		return nil
	}
	return c.secrets.clientKey(id).Secret
}

// Token returns a user's token for a running AM, nil if clients need none.
func (c Clients) Token(id creel.AttemptID, user string) *pb.TokenProto {
	if c.cfg.Secure == nil {
		return nil
	}
	mac := token.NewMac(c.secrets.clientKey(id))
	return mac.ClientToAM(token.ClientToAM{Attempt: id, Client: user}).Proto()
}

// CheckDelegation finds the password of a delegation token for a handshake.
func (s *Server) CheckDelegation(identifier []byte) ([]byte, hrpc.Identity, error) {
	return s.tokens.check(identifier)
}

// NodeKeys returns the master keys that a node must receive, given the keys it has.
func (s *Server) NodeKeys(container, nm *pb.MasterKeyProto) codec.NodeKeys {
	k := s.secrets.keys.Load()
	return codec.KeysFor(k.contTell, k.nmTell, container, nm)
}
