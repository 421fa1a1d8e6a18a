// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/redis"
)

// ValidPolicy checks a document before it replaces a valid one.
func ValidPolicy(_ creel.QueuePath, document []byte) error {
	_, err := policies.Parse(document)
	return err
}

// basePolicy is the policy of queues without a document in the store.
func basePolicy(s *settings.Settings) (policies.Policy, error) {
	const document = `{"home":{"policy":%q},"split":{"policy":%q}}`
	policy, err := policies.Parse(
		fmt.Appendf(nil, document, s.String("creel.router.policy"), s.String("creel.proxy.policy")))
	if err != nil {
		return policy, s.Problem("creel.router.policy", err.Error(), "see creel.proxy.policy too")
	}
	return policy, nil
}

// OpenStore opens the state store of creel.store.url, and checks that this creel can read its data. "memory" means a
// store in this process. The returned function closes the store.
func OpenStore(ctx context.Context, s *settings.Settings) (statestore.Store, func() error, error) {
	if open := opensNodes(s); open != nil {
		store, err := openNodes(ctx, s, open)
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	conf, inMemory, err := storeConfig(s)
	if err != nil {
		return nil, nil, err
	}
	if inMemory {
		state := memory.NewState("memory", ValidPolicy)
		return memory.New(state, time.Now), func() error { return nil }, nil
	}
	figures := newStoreFigures()
	conf.Observe = figures.observe
	opened, err := redis.Open(conf)
	if err != nil {
		return nil, nil, s.Problem("creel.store.url", err.Error(), "")
	}
	store := countedStore{opened, figures}
	check, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	waits := time.AfterFunc(storeSilence, func() {
		slog.Warn("the state store does not answer yet",
			"store", shownStore(s), "waits_for", (storePatience - storeSilence).String())
	})
	err = store.CheckSchema(check)
	waits.Stop()
	if err == nil || errors.Is(err, redis.ErrNoReplicas) {
		patience := storePatience
		if err != nil { // without its replicas it may not take the name, but must not have another
			patience = storeSilence
		}
		joining, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if joined := joinFederation(joining, store, s); err == nil || errors.Is(joined, creel.ErrNotPermitted) {
			err = joined
		}
	}
	if errors.Is(err, redis.ErrNoReplicas) {
		// The server is up and can be read. Until a replica is up, it acknowledges no change.
		slog.Warn("the state store acknowledges no change: too few replicas", "store", shownStore(s), "error", err,
			"try", "start the missing replica, or lower creel.store.wait-replicas (wait= in creel.store.url)")
		return store, store.Close, nil
	}
	if err != nil {
		return nil, nil, errors.Join(storeError(s, err), store.Close())
	}
	return store, store.Close, nil
}

// These are a daemon's wait for its store at the start, and the time after which it logs the wait.
const (
	storePatience = 10 * time.Second
	storeSilence  = 2 * time.Second
)

// storeConfig reads the store's settings; memory means a store in this process.
func storeConfig(s *settings.Settings) (conf redis.Config, inMemory bool, err error) {
	address, plain := s.String("creel.store.url"), s.Bool("hadoop.security.credential.clear-text-fallback")
	if address == "memory" {
		return conf, true, nil
	}
	if !strings.Contains(address, "://") {
		return conf, false, s.Problem("creel.store.url", "it is not a store's URL",
			"give memory, a redis URL such as redis://127.0.0.1:6379, zk://127.0.0.1:2181/federationstore, or mysql://USER@HOST/DATABASE")
	}
	if !plain && hasPassword(address) {
		return conf, false, s.Problem("creel.store.url",
			"it has a password, and hadoop.security.credential.clear-text-fallback=false forbids that",
			"hadoop credential create creel.store.password -provider jceks://file/PATH, and remove it from the URL")
	}
	password, err := storePassword(s, "creel.store.password", "creel.store.password-file")
	if err != nil {
		return conf, false, err
	}
	sentinels, err := storePassword(s, "creel.store.sentinel-password", "creel.store.sentinel-password-file")
	if err != nil {
		return conf, false, err
	}
	trust, err := redisTLS(s)
	if err != nil {
		return conf, false, s.Problem(redisCertificate, err.Error(), "")
	}
	return redis.Config{
		URL:         address,
		TLS:         trust,
		Password:    password,
		Prefix:      s.String("creel.store.prefix"),
		Timeout:     s.Duration("creel.store.timeout"),
		Wait:        s.Int("creel.store.wait-replicas"),
		WaitTimeout: s.Duration("creel.store.wait-timeout"),
		Validate:    ValidPolicy,
		Confirm:     true,
		Log:         slog.Default(),

		SentinelPassword: sentinels,
	}, false, nil
}

// joinFederation rejects a store of another federation.
func joinFederation(ctx context.Context, store statestore.Store, s *settings.Settings) error {
	name := s.String("creel.federation.name")
	owner, err := statestore.JoinFederation(ctx, store, name)
	if err == nil && owner != name {
		slog.Warn("the state store has the name of a federation, this process has none",
			"federation", owner, "try", "set creel.federation.name="+owner)
	}
	return err
}

// storePassword reads a password from a credential provider, or else from the file that a setting names; "" if there
// is neither.
func storePassword(s *settings.Settings, alias, fileKey string) (string, error) {
	if password, found, err := credential(s, alias); found || err != nil {
		return password, err
	}
	return passwordFrom(s, fileKey)
}

// maxPassword is the size of the largest file that passes for a password.
const maxPassword = 4 << 10

// passwordFrom reads the password in the file that a setting names; "" if it names none.
func passwordFrom(s *settings.Settings, key string) (string, error) {
	file := s.String(key)
	if file == "" {
		return "", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", s.Problem(key, "it cannot be read: "+fileReason(err), "")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	if err != nil {
		return "", s.Problem(key, "it cannot be read: "+fileReason(err), "")
	}
	password := strings.TrimRight(string(b), "\r\n")
	if password == "" || len(b) > maxPassword || strings.ContainsAny(password, "\r\n") {
		return "", s.Problem(key, "it does not contain one line", "write the password into it, and nothing else")
	}
	return password, nil
}

// shownStore returns the store's URL without passwords.
func shownStore(s *settings.Settings) string {
	if overZooKeeper(s) {
		return s.String("creel.store.url") // it has no password
	}
	u, err := url.Parse(s.String("creel.store.url"))
	if err != nil {
		return "(hidden URL: it may contain a password)"
	}
	u.RawQuery = "" // may contain a Sentinel's password
	return u.Redacted()
}

// storeError describes a store that could not be used at the start, with the setting that chose it and the store's
// reason. If the store rejected the connection, advice follows its message.
func storeError(s *settings.Settings, err error) error {
	out := &creel.Error{
		Kind: creel.ErrUnavailable,
		What: "the state store " + shownStore(s) + " cannot be used",
		Why:  err.Error(),
		Try:  "start it, or correct creel.store.url (--store)",
	}
	var told *creel.Error
	if errors.As(err, &told) && told.Why != "" {
		out.Why = told.Why
		if !errors.Is(err, creel.ErrUnavailable) {
			out.Try = told.Try + ", or correct creel.store.url (--store)"
		}
	}
	return out
}

// clusterSecret reads the secret that encrypts shared data in the store: from a file, or from the store, where the
// first daemon creates it.
func clusterSecret(store statestore.Keys, file string) (func(context.Context) ([]statestore.Key, error), error) {
	if file != "" {
		b, err := secretFrom(file)
		if err != nil {
			return nil, err
		}
		keys := []statestore.Key{{ID: 1, Secret: b}}
		return func(context.Context) ([]statestore.Key, error) { return keys, nil }, nil
	}
	const ring = "cluster"
	return func(ctx context.Context) ([]statestore.Key, error) {
		for {
			keys, err := store.Keys(ctx, ring)
			if err != nil || len(keys) > 0 {
				return keys, err
			}
			fresh := make([]byte, 32)
			if _, err := rand.Read(fresh); err != nil {
				return nil, err
			}
			if _, err := store.RotateKey(ctx, ring, 0, fresh, 0); err != nil && !errors.Is(err, creel.ErrConflict) {
				return nil, err
			}
		}
	}, nil
}

// fileReason returns why a file cannot be read, without its name.
func fileReason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
