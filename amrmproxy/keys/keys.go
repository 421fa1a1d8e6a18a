// SPDX-License-Identifier: Apache-2.0

// Package keys lets the AM-RM proxies verify AMs. An AM authenticates with the AMRM token from its ResourceManager.
// Each ResourceManager publishes the keys that it accepts in the state store, sealed with the cluster's secret
// (Publish). The proxies read them (Cache). The key that signed a token identifies the attempt's home, so neither a
// NodeManager nor a second token is needed. A Hadoop ResourceManager publishes no keys. Its AMs log in there through
// the proxy (Foreign, and Relay of amrmproxy/rpc), unless the proxy can read the file with its keys (HadoopFiles).
package keys

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Rings is the part of the store for publishing and reading keys.
type Rings interface {
	Keys(ctx context.Context, ring string) ([]statestore.Key, error)
	KeysOf(ctx context.Context, rings []string) ([][]statestore.Key, error)
	RotateKey(ctx context.Context, ring string, expect int32, secret []byte, keep time.Duration) (statestore.Key, error)
}

// KeyRing returns the name of the ring with a member's AMRM keys.
func KeyRing(member creel.SubclusterID) string { return "amrm-" + string(member) }

// Publish stores the AMRM keys that a ResourceManager accepts, sealed with seal, for the proxies. It is called at the
// start and whenever the keys roll. It writes nothing if the keys are unchanged.
func Publish(
	ctx context.Context,
	store Rings,
	member creel.SubclusterID,
	accepted token.Ring,
	seal []statestore.Key,
) error {
	return publish(ctx, store, member, KeyRing(member), seal, accepted, sameRing)
}

// publish stores a value of a member in a ring, unless the ring has the same value.
func publish[T any](
	ctx context.Context,
	store Rings,
	member creel.SubclusterID,
	ring string,
	seal []statestore.Key,
	value T,
	same func(a, b T) bool,
) error {
	if len(seal) == 0 {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "keys not published",
			Why:  "the cluster has no secret",
			Try:  "set one",
		}
	}
	for range 3 {
		now, err := store.Keys(ctx, ring)
		if err != nil {
			return err
		}
		expect := int32(0)
		if len(now) > 0 {
			expect = now[0].ID
			if have, err := open[T](seal, ring, now[0]); err == nil && same(have, value) {
				return nil
			}
		}
		plain, err := json.Marshal(value)
		if err != nil {
			return err
		}
		sealed, err := statestore.Seal(rand.Reader, seal[0], []byte(ring), plain)
		if err != nil {
			return err
		}
		if _, err = store.RotateKey(ctx, ring, expect, sealed, time.Minute); !errors.Is(err, creel.ErrConflict) {
			return err
		}
	}
	return &creel.Error{
		Kind: creel.ErrConflict,
		What: fmt.Sprintf("keys of %s not published", member),
		Why:  "another ResourceManager of that name publishes too",
		Try:  "check whether two have the same id",
	}
}

// open reads the value of a ring.
func open[T any](seal []statestore.Key, ring string, k statestore.Key) (value T, err error) {
	plain, err := statestore.Open(seal, []byte(ring), k.Secret)
	if err != nil {
		return value, err
	}
	return value, json.Unmarshal(plain, &value)
}

func sameRing(a, b token.Ring) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || string(a[i].Secret) != string(b[i].Secret) {
			return false
		}
	}
	return true
}

// Cache has the AMRM keys of all members.
type Cache struct {
	store   Rings
	secrets func(context.Context) ([]statestore.Key, error)
	view    func() *subcluster.View
	files   *HadoopFiles // nil: none
	rings   atomic.Pointer[map[creel.SubclusterID]token.Ring]
	places  bool // the proxy places containers, with the keys in nodes
	nodes   atomic.Pointer[map[creel.SubclusterID]NodeKeys]

	turn chan struct{} // owned by the goroutine that reads the store
	last atomic.Pointer[reading]
}

// reading is the result of one reading of the store, and its view.
type reading struct {
	began time.Time
	err   error
	view  *subcluster.View
}

// unheard is the time after which keys are read again even without an announced change: older creel releases do not
// announce changes of keys.
const unheard = 30 * time.Second

// current reports whether the keys are up to date for a view, as far as is known.
func (r *reading) current(now *subcluster.View) bool {
	member := func(a, b subcluster.Status) bool { return a.ID == b.ID }
	return r.err == nil && r.view != nil && now != nil && time.Since(r.began) < unheard &&
		r.view.KeyChanges == now.KeyChanges && r.view.Store == now.Store &&
		slices.EqualFunc(r.view.Members, now.Members, member)
}

// NewCache makes a Cache that reads the keys of the view's members from the store. Until Refresh it has only the keys
// of files. files may be nil; the caller must run it.
func NewCache(
	store Rings,
	secrets func(context.Context) ([]statestore.Key, error),
	view func() *subcluster.View,
	files *HadoopFiles,
) *Cache {
	c := &Cache{store: store, secrets: secrets, view: view, files: files, turn: make(chan struct{}, 1)}
	c.last.Store(&reading{})
	c.rings.Store(&map[creel.SubclusterID]token.Ring{})
	c.nodes.Store(&map[creel.SubclusterID]NodeKeys{})
	return c
}

// Run checks every period until ctx ends whether the view announces changed keys, and refreshes if so. An unknown key
// triggers a refresh at once.
func (c *Cache) Run(ctx context.Context, every time.Duration) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if !c.last.Load().current(c.view()) {
			_ = c.Refresh(ctx) // retried later; a caller that needs a missing key gets an error
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// Refresh reads all rings. If a member's ring cannot be read, its previous keys stay. One goroutine reads at a time.
// A waiting caller uses another goroutine's reading if it started after the call.
func (c *Cache) Refresh(ctx context.Context) error {
	asked := time.Now()
	select {
	case c.turn <- struct{}{}:
	default: // another goroutine reads
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-c.turn }()
	if last := c.last.Load(); last.began.After(asked) {
		return last.err
	}
	now := &reading{began: time.Now(), view: c.view()}
	now.err = c.read(ctx, now.view)
	if ctx.Err() == nil { // a cancelled reading is no evidence of the store's state
		c.last.Store(now)
	}
	return now.err
}

// Last returns the start and the error of the last reading of the store; the zero time before the first.
func (c *Cache) Last() (began time.Time, err error) {
	last := c.last.Load()
	return last.began, last.err
}

// read makes one reading. The caller must own the turn.
func (c *Cache) read(ctx context.Context, view *subcluster.View) error {
	if view == nil {
		return nil
	}
	seal, err := c.secrets(ctx)
	if err != nil {
		return err
	}
	var errs []error
	next, err := read(ctx, c, seal, view, KeyRing, *c.rings.Load(), &errs)
	if err != nil {
		return err
	}
	c.rings.Store(&next)
	if c.places {
		next, err := read(ctx, c, seal, view, NodeRing, *c.nodes.Load(), &errs)
		if err != nil {
			return err
		}
		c.nodes.Store(&next)
	}
	return errors.Join(errs...)
}

// read returns the values of the members' rings, named by name. For a ring that cannot be read it adds the error to
// errs, and returns the value in old.
func read[T any](
	ctx context.Context,
	c *Cache,
	seal []statestore.Key,
	view *subcluster.View,
	name func(creel.SubclusterID) string,
	old map[creel.SubclusterID]T,
	errs *[]error,
) (map[creel.SubclusterID]T, error) {
	next := make(map[creel.SubclusterID]T, len(view.Members))
	names := make([]string, len(view.Members))
	for i := range view.Members {
		names[i] = name(view.Members[i].ID)
	}
	all, err := c.store.KeysOf(ctx, names)
	one := errors.Is(err, creel.ErrInvalidRequest) // a ring cannot be read: read the others one at a time
	if err != nil && !one {
		return nil, err
	}
	for i := range view.Members {
		id := view.Members[i].ID
		var keys []statestore.Key
		var err error
		if one {
			keys, err = c.store.Keys(ctx, names[i])
		} else {
			keys = all[i]
		}
		if err == nil && len(keys) == 0 {
			continue // Hadoop's ResourceManagers publish none
		}
		var value T
		if err == nil {
			value, err = open[T](seal, names[i], keys[0])
		}
		if err != nil {
			*errs = append(*errs, fmt.Errorf("keys of %s: %w", id, err))
			value = old[id]
		}
		next[id] = value
	}
	return next, nil
}

// refreshPause is the least time between a reading of the store and the next one for an unknown key.
const refreshPause = 250 * time.Millisecond

// keyPatience is the time that a token waits for its key. A ResourceManager that just started may have issued tokens
// before its keys arrived here, and an AM that receives "invalid token" gives up for good.
const keyPatience = 3 * time.Second

// Verify returns the issuer of an AMRM token, and its password. The error is of kind creel.ErrInvalidToken, or
// creel.ErrUnavailable while the store cannot be read.
func (c *Cache) Verify(ctx context.Context, identifier []byte) (token.AMRM, creel.SubclusterID, []byte, error) {
	id, err := token.ParseAMRM(identifier)
	if err != nil {
		return id, "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, keyPatience)
	defer cancel()
	for {
		if member, key, ok := c.find(id.KeyID); ok {
			return id, member, key.Password(identifier), nil
		}
		pause := c.readAgain()
		select {
		case <-time.After(pause):
			if ctx.Err() == nil { // a reading cancelled by the caller's timeout is no evidence of the store's state
				err = c.Refresh(ctx)
			}
		case <-ctx.Done():
			refused := &creel.Error{Kind: creel.ErrInvalidToken, What: "token of " + id.Attempt.String() + " refused",
				Why: fmt.Sprintf("no ResourceManager of the federation has shared a master key %d", id.KeyID),
				Try: "check that the ResourceManager is a member and has the cluster's secret"}
			if errors.Is(err, creel.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
				refused.Kind = creel.ErrUnavailable
				refused.Try = "try again in a moment: the state store cannot be read"
				refused.Why += ": " + err.Error()
			}
			return id, "", nil, refused
		}
	}
}

// Foreign reports whether only home can check tokens of this key, since its ResourceManager publishes no keys, as
// Hadoop's. The same applies to a key that is not in its file yet.
func (c *Cache) Foreign(key int32, home creel.SubclusterID) bool {
	if _, _, ok := c.find(key); ok {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyPatience)
	defer cancel()
	c.files.refresh(ctx)
	if _, _, ok := c.find(key); ok {
		return false
	}
	_, shares := (*c.rings.Load())[home]
	return !shares
}

// readAgain returns the time to wait before the next reading for an unknown key.
func (c *Cache) readAgain() time.Duration {
	return max(refreshPause-time.Since(c.last.Load().began), 0)
}

// find searches all rings. If several members have the id, the first by id wins, independent of the order of a map.
// Key ids start at a random number of 32 bits.
func (c *Cache) find(id int32) (member creel.SubclusterID, key token.Key, ok bool) {
	for _, rings := range [...]map[creel.SubclusterID]token.Ring{*c.rings.Load(), c.files.keys()} {
		for m, ring := range rings {
			if found, has := ring.Find(id); has && (!ok || m < member) {
				member, key, ok = m, found, true
			}
		}
	}
	return member, key, ok
}
