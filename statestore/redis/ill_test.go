// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/subcluster"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func claimed(t *testing.T, s *redis.Store, app int, member, want creel.SubclusterID) {
	t.Helper()
	is, _, err := s.Claim(t.Context(), storetest.App(app), member, nil)
	if err != nil || is != want {
		t.Fatalf("claim gave %q, %v; want %q", is, err, want)
	}
}

func homeIs(t *testing.T, s *redis.Store, app int, want creel.SubclusterID) {
	t.Helper()
	is, err := s.Home(t.Context(), storetest.App(app))
	if err != nil || is != want {
		t.Fatalf("home is %q, %v; want %q", is, err, want)
	}
}

// unavailable wants the error of an ill store: the kind, a time to come back, and a reason that names the illness.
func unavailable(t *testing.T, err error, why string) {
	t.Helper()
	if !errors.Is(err, creel.ErrUnavailable) || statestore.RetryAfter(err) <= 0 {
		t.Fatalf("got %v, want creel.ErrUnavailable with a time to come back", err)
	}
	if !strings.Contains(err.Error(), why) {
		t.Fatalf("the error %q does not say %q", err, why)
	}
}

// waits wants a claim that waits for most of the time it is given and then is
// unavailable.
func waits(t *testing.T, s *redis.Store, app int) {
	t.Helper()
	const given = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), given)
	defer cancel()
	began := time.Now()
	_, _, err := s.Claim(ctx, storetest.App(app), "sc-1", nil)
	unavailable(t, err, "")
	// The last pause before the deadline is at most 320 ms, half of it random; it is certain only that the store did
	// not give up at the first error.
	if took := time.Since(began); s.Stats().Retries == 0 && took < given {
		t.Fatalf("it gave up after %v and never tried again", took)
	}
}

func TestAServerThatIsGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, redis.Config{URL: server.URL(), Timeout: 100 * time.Millisecond, MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")
	server.Kill()
	waits(t, s, 2)
	if _, err := s.Home(shortly(t), storetest.App(1)); !errors.Is(err, creel.ErrUnavailable) {
		t.Fatalf("home gave %v", err)
	}
	// A claim that waits when the server comes back is served then.
	var wg sync.WaitGroup
	wg.Go(func() { claimedSoon(t, s, 3) })
	time.Sleep(50 * time.Millisecond)
	server.Restart()
	wg.Wait()
	homeIs(t, s, 1, "sc-1")
	homeIs(t, s, 3, "sc-1")
}

// shortly is a context with a deadline that an ill store will not meet.
func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func claimedSoon(t *testing.T, s *redis.Store, app int) {
	if is, _, err := s.Claim(t.Context(), storetest.App(app), "sc-1", nil); err != nil || is != "sc-1" {
		t.Errorf("the claim that waited gave %q, %v", is, err)
	}
}

func TestSlowPausedOrUnreachableServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	path := redistest.NewProxy(t, server.Addr)
	s := open(t, redis.Config{URL: "redis://" + path.Addr, Timeout: 150 * time.Millisecond, MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")

	path.Delay(20 * time.Millisecond)
	claimed(t, s, 2, "sc-1", "sc-1")
	path.Heal()

	illnesses := []struct {
		name      string
		fall, get func()
	}{
		{"silent network", path.Silence, path.Heal},
		{"cut network", path.Cut, path.Heal},
		{"paused server", server.Pause, server.Resume},
	}
	for i, ill := range illnesses {
		t.Run(ill.name, func(t *testing.T) {
			ill.fall()
			waits(t, s, 100+i)
			var wg sync.WaitGroup
			wg.Go(func() { claimedSoon(t, s, 200+i) })
			time.Sleep(20 * time.Millisecond)
			ill.get()
			wg.Wait()
			claimed(t, s, 100+i, "sc-2", homeNow(t, s, 100+i, "sc-2")) // it may have happened: then it holds
			homeIs(t, s, 1, "sc-1")
		})
	}
}

// refused wants claims to be unavailable for a reason. A claim that timed out before the server returned the reason
// is repeated with more time.
func refused(t *testing.T, s *redis.Store, app int, why string) {
	t.Helper()
	for given := 300 * time.Millisecond; ; given *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), given)
		_, _, err := s.Claim(ctx, storetest.App(app), "sc-1", nil)
		cancel()
		unavailable(t, err, "")
		if strings.Contains(err.Error(), why) {
			return
		}
		if given > 30*time.Second {
			t.Fatalf("the error %q does not say %q", err, why)
		}
	}
}

// homeNow is the home that is, or will be if there is none.
func homeNow(t *testing.T, s *redis.Store, app int, otherwise creel.SubclusterID) creel.SubclusterID {
	t.Helper()
	is, err := s.Home(t.Context(), storetest.App(app))
	if errors.Is(err, creel.ErrApplicationNotFound) {
		return otherwise
	}
	ok(t, err)
	return is
}

func TestAServerThatIsReadOnly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL(), MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")
	ok(t, s.Register(t.Context(), subcluster.Member{ID: "sc-1"}))
	server.Do("REPLICAOF", "127.0.0.1", "1")
	waits(t, s, 2)
	refused(t, s, 2, "read-only")
	homeIs(t, s, 1, "sc-1") // reads go on
	if r, err := s.Records(t.Context()); err != nil || len(r.Members) != 1 {
		t.Fatalf("records are %+v, %v", r, err)
	}
	server.Do("REPLICAOF", "NO", "ONE")
	claimed(t, s, 2, "sc-1", "sc-1")
}

func TestAServerThatIsOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL(), MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")
	claimed(t, s, 2, "sc-1", "sc-1")
	ok(t, s.Register(t.Context(), subcluster.Member{ID: "sc-1"}))
	lease, err := s.Acquire(t.Context(), "l", "a", time.Hour)
	ok(t, err)
	server.Do("CONFIG", "SET", "maxmemory", "1")
	waits(t, s, 3)
	refused(t, s, 3, "out of memory")
	// Calls that keep the federation alive or free memory go on.
	homeIs(t, s, 1, "sc-1")
	ok(
		t,
		s.Heartbeat(
			t.Context(),
			subcluster.Heartbeat{ID: "sc-1", Load: []byte(`{"clusterMetrics":{"appsRunning":1}}`)},
		),
	)
	if _, err := s.Renew(t.Context(), lease, time.Hour); err != nil {
		t.Fatal(err)
	}
	ok(t, s.Forget(t.Context(), storetest.App(1), "sc-1", 0))
	if n, err := s.Sweep(t.Context(), 10); err != nil || n != 1 {
		t.Fatalf("sweep freed %d, %v", n, err)
	}
	server.Do("CONFIG", "SET", "maxmemory", "0")
	claimed(t, s, 3, "sc-1", "sc-1")
}

func TestServerWithFullDisk(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--save", "3600 1000000", "--stop-writes-on-bgsave-error", "yes")
	s := open(t, redis.Config{URL: server.URL(), MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")
	ok(t, os.Mkdir(filepath.Join(server.Dir, "dump.rdb"), 0o700)) // the snapshot cannot be put there
	ok(t, os.WriteFile(filepath.Join(server.Dir, "dump.rdb", "x"), nil, 0o600))
	server.Do("BGSAVE")
	for !strings.Contains(server.Do("INFO", "persistence").(string), "rdb_last_bgsave_status:err") {
		time.Sleep(5 * time.Millisecond)
	}
	waits(t, s, 2)
	refused(t, s, 2, "disk")
	homeIs(t, s, 1, "sc-1")
	ok(t, os.RemoveAll(filepath.Join(server.Dir, "dump.rdb")))
	server.Do("BGSAVE")
	claimedSoon(t, s, 2)
}

// A store that comes back empty assigns no running application a second home.
func TestAServerThatComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := open(t, redis.Config{URL: server.URL()}), open(t, redis.Config{URL: server.URL()})
	ok(t, a.Register(t.Context(), subcluster.Member{ID: "sc-1"}))
	ok(t, a.Register(t.Context(), subcluster.Member{ID: "sc-2"}))
	for i := range 10 {
		claimed(t, a, i, "sc-1", "sc-1")
	}
	if _, err := b.UAMRecord(t.Context(), storetest.Attempt(1, 1)); !errors.Is(err, creel.ErrAttemptNotFound) {
		t.Fatal(err) // b knows the store, too
	}
	records, err := a.Records(t.Context())
	ok(t, err)
	view := subcluster.Build(nil, records, records.Now)

	server.Kill()
	server.Restart() // it never wrote anything down

	// No application is doubled, and none is reported as missing.
	for _, s := range []*redis.Store{a, b} {
		_, _, err = s.Claim(t.Context(), storetest.App(1), "sc-2", nil)
		unavailable(t, err, "came back empty")
		_, err = s.Home(t.Context(), storetest.App(1))
		unavailable(t, err, "came back empty")
		_, err = s.Move(t.Context(), storetest.App(1), "sc-1", "sc-2", 0, nil)
		unavailable(t, err, "came back empty")
		_, err = s.UAMRecord(t.Context(), storetest.Attempt(1, 1))
		unavailable(t, err, "came back empty")
	}
	// The view freezes: both members are still homes.
	if records, err = a.Records(t.Context()); err != nil || len(records.Members) != 0 {
		t.Fatalf("records are %+v, %v", records, err)
	}
	view = subcluster.Build(view, records, records.Now)
	if view.Freeze == nil || len(view.Active()) != 2 {
		t.Fatalf("view is %+v, active %v", view.Freeze, view.Active())
	}
	// Members hear that they must register, and do.
	if err := a.Heartbeat(t.Context(), subcluster.Heartbeat{ID: "sc-1"}); !errors.Is(err, creel.ErrNotRegistered) {
		t.Fatalf("a heartbeat gave %v", err)
	}
	ok(t, a.Register(t.Context(), subcluster.Member{ID: "sc-1"}))

	// The ResourceManagers report their applications; two claim application 3.
	reports := []statestore.Report{{Member: "sc-1"}, {Member: "sc-2"}}
	for i := range 10 {
		reports[0].Applications = append(
			reports[0].Applications,
			statestore.ReportedApplication{ID: storetest.App(i), Attempt: 2},
		)
	}
	reports[1].Applications = []statestore.ReportedApplication{
		{ID: storetest.App(3), Attempt: 1},
		{ID: storetest.App(4), Unmanaged: true},
	}
	homes, conflicts := statestore.Rebuild(reports)
	if len(homes) != 10 || len(conflicts) != 1 || conflicts[0].Home != "sc-1" ||
		conflicts[0].Application != storetest.App(3) {
		t.Fatalf("rebuilt %v with conflicts %v", homes, conflicts)
	}
	conflicts, err = a.Reopen(t.Context(), given(homes...))
	if err != nil || len(conflicts) != 0 {
		t.Fatalf("reopening gave %v, %v", conflicts, err)
	}
	for i := range 10 {
		claimed(t, b, i, "sc-2", "sc-1") // the other process goes on by itself
	}
	claimed(t, b, 99, "sc-2", "sc-2")
	if _, err = b.Home(t.Context(), storetest.App(100)); !errors.Is(err, creel.ErrApplicationNotFound) {
		t.Fatalf("an unknown application gave %v", err)
	}
}

func given(homes ...statestore.ApplicationHome) func(context.Context) ([]statestore.ApplicationHome, error) {
	return func(context.Context) ([]statestore.ApplicationHome, error) { return homes, nil }
}

// A newcomer that finds the store empty takes it for a new one and uses it. Processes that knew it before do not
// follow, and the rebuilding outranks the newcomer's changes.
func TestANewcomerOpensTheLostStoreFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := open(t, redis.Config{URL: server.URL()}), open(t, redis.Config{URL: server.URL()})
	for _, s := range []*redis.Store{a, b} {
		claimed(t, s, 1, "sc-1", "sc-1")
		lost(t, s, false)
	}
	server.Do("FLUSHALL")
	lost(t, a, true)
	newcomer := open(t, redis.Config{URL: server.URL()})
	claimed(t, newcomer, 1, "sc-2", "sc-2") // it cannot know better
	lost(t, newcomer, false)
	lost(t, a, true)
	_, _, err := a.Claim(t.Context(), storetest.App(2), "sc-2", nil)
	unavailable(t, err, "opened as a new store")

	conflicts, err := a.Reopen(t.Context(), func(ctx context.Context) ([]statestore.ApplicationHome, error) {
		// While the reports are collected all claims fail, also the newcomer's.
		for _, s := range []*redis.Store{a, b, newcomer} {
			_, _, err := s.Claim(t.Context(), storetest.App(3), "sc-2", nil)
			unavailable(t, err, "came back empty")
		}
		lost(t, b, true)
		return []statestore.ApplicationHome{{ID: storetest.App(1), Home: "sc-1"}}, nil
	})
	ok(t, err)
	if len(conflicts) != 1 || conflicts[0].Home != "sc-1" || conflicts[0].Others[0] != "sc-2" {
		t.Fatalf("conflicts are %v", conflicts)
	}
	for _, s := range []*redis.Store{b, newcomer, a} {
		lost(t, s, false)
		claimed(t, s, 1, "sc-3", "sc-1")
	}
}

func lost(t *testing.T, s *redis.Store, want bool) {
	t.Helper()
	if is, err := s.Lost(t.Context()); err != nil || is != want {
		t.Fatalf("lost is %v, %v; want %v", is, err, want)
	}
}

// One primary of a cluster came back empty.
func TestAPartOfAClusterComesBackEmpty(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	s := open(t, redis.Config{URL: c.URL()})
	var homes []statestore.ApplicationHome
	for i := range 64 {
		claimed(t, s, i, "sc-1", "sc-1")
		homes = append(homes, statestore.ApplicationHome{ID: storetest.App(i), Home: "sc-1"})
	}
	lost(t, s, false)
	c.Nodes[1].Do("FLUSHALL")
	lost(t, s, true)
	if _, err := s.Reopen(t.Context(), given(homes...)); err != nil {
		t.Fatal(err)
	}
	lost(t, s, false)
	for i := range 64 {
		claimed(t, s, i, "sc-2", "sc-1")
	}
}

// While one process writes the homes back, others still wait.
func TestClaimsAreRefusedDuringRebuild(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := open(t, redis.Config{URL: server.URL()})
	claimed(t, a, 1, "sc-1", "sc-1")
	server.Do("FLUSHALL")
	server.Do("HSET", "{creel:c}:meta", "id", "new", "schema", "1", "state", "rebuilding")
	_, _, err := a.Claim(t.Context(), storetest.App(1), "sc-2", nil)
	unavailable(t, err, "came back empty")
	fresh := open(t, redis.Config{URL: server.URL()})
	_, _, err = fresh.Claim(t.Context(), storetest.App(1), "sc-2", nil)
	unavailable(t, err, "written back")
	if _, err := fresh.Reopen(
		t.Context(),
		given(statestore.ApplicationHome{ID: storetest.App(1), Home: "sc-1"}),
	); err != nil {
		t.Fatal(err) // the process that began it may be dead: any other may finish it
	}
	claimed(t, a, 1, "sc-2", "sc-1")
}

// One primary of a cluster is gone: the others' shards go on.
func TestAClusterThatLacksAPrimary(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	s := open(t, redis.Config{URL: c.URL(), Timeout: 100 * time.Millisecond})
	for i := range 64 {
		claimed(t, s, i, "sc-1", "sc-1")
	}
	const low, high = 16384 / 3, 16384 * 2 / 3 // the slots of the second primary
	c.Nodes[1].Kill()
	lost := 0
	for i := range 64 {
		slot := c.Nodes[0].Do("CLUSTER", "KEYSLOT", fmt.Sprintf("{creel:%d}", i)).(int64)
		if slot < low || slot >= high {
			claimed(t, s, i, "sc-2", "sc-1")
		} else if lost++; lost <= 4 {
			_, _, err := s.Claim(shortly(t), storetest.App(i), "sc-2", nil)
			unavailable(t, err, "")
		}
	}
	if lost == 0 || lost > 40 {
		t.Fatalf("%d of 64 shards were at the primary that is gone", lost)
	}
}

// Slots move between the primaries of a cluster while claims go on.
func TestAClusterThatMovesSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	s := open(t, redis.Config{URL: c.URL()})
	claimed(t, s, 0, "sc-1", "sc-1")
	slot := c.Nodes[0].Do("CLUSTER", "KEYSLOT", "{creel:0}").(int64)
	var from, to *redistest.Server
	for _, n := range c.Nodes {
		if _, err := n.Try("HLEN", "{creel:0}:guard"); err == nil {
			from = n
		} else {
			to = n
		}
	}
	id := func(n *redistest.Server) string { return n.Do("CLUSTER", "MYID").(string) }
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	for _, key := range from.Do("CLUSTER", "GETKEYSINSLOT", slot, 100).([]any) {
		from.Do("MIGRATE", "127.0.0.1", to.Port(), key, 0, 5000)
	}
	var wg sync.WaitGroup
	wg.Go(func() { claimedSoon(t, s, 64) }) // same shard, in the middle of the move
	time.Sleep(20 * time.Millisecond)
	for _, n := range []*redistest.Server{to, from} {
		n.Do("CLUSTER", "SETSLOT", slot, "NODE", id(to))
	}
	wg.Wait()
	claimed(t, s, 0, "sc-2", "sc-1")
	claimed(t, s, 128, "sc-2", "sc-2")
}

// A client that stays with an old primary, cut off from all others, gets
// nothing acknowledged if Wait is set.
func TestASplitBrainAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	stuck := open(t, redis.Config{URL: s.Primary.URL(), Wait: 1, WaitTimeout: 50 * time.Millisecond})
	claimed(t, stuck, 1, "sc-1", "sc-1")
	s.Via.Cut()
	s.AwaitFailover()
	refused(t, stuck, 2, "replicas")
	follows := open(t, redis.Config{URL: s.URL()})
	claimed(t, follows, 2, "sc-2", "sc-2")
	claimed(t, follows, 1, "sc-2", "sc-1")
}

func TestUsersAndPermissions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "router", "on", ">s3cret", "resetkeys", "~{creel:*", "resetchannels", "&creel:changes",
		"+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+wait", "+time")
	server.Do("CONFIG", "SET", "requirepass", "other")
	s := open(t, redis.Config{URL: "redis://router:s3cret@" + server.Addr})
	claimed(t, s, 1, "sc-1", "sc-1")
	if is, err := s.Move(t.Context(), storetest.App(1), "sc-1", "sc-2", 0, nil); err != nil || is != "sc-2" {
		t.Fatalf("a move, which publishes, gave %q, %v", is, err)
	}
	for name, url := range map[string]string{
		"no login":       "redis://" + server.Addr,
		"wrong password": "redis://router:wrong@" + server.Addr,
		"wrong prefix":   "redis://router:s3cret@" + server.Addr + "?prefix=other",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := open(
				t,
				redis.Config{URL: url, MaxWait: time.Hour},
			).Claim(t.Context(), storetest.App(1), "sc-1", nil)
			if !errors.Is(err, creel.ErrNotPermitted) || strings.Contains(err.Error(), "s3cret") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	server := redistest.Start(t)
	tlsPort := freePort(t)
	server.Do(
		"CONFIG",
		"SET",
		"tls-cert-file",
		cert,
		"tls-key-file",
		key,
		"tls-ca-cert-file",
		cert,
		"tls-auth-clients",
		"no",
		"tls-port",
		fmt.Sprint(tlsPort),
	)
	url := fmt.Sprintf("rediss://127.0.0.1:%d", tlsPort)
	trust, err := certs.OpenTrust(cert, "", slog.Default())
	ok(t, err)
	s := open(t, redis.Config{URL: url, TLS: trust})
	claimed(t, s, 1, "sc-1", "sc-1")
	untrusting := open(t, redis.Config{URL: url, MaxWait: time.Hour, Timeout: time.Minute})
	_, _, err = untrusting.Claim(t.Context(), storetest.App(1), "sc-1", nil)
	unavailable(t, err, "certificate")
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "redis"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().
			Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	ok(t, err)
	pk, err := x509.MarshalECPrivateKey(private)
	ok(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ok(t, os.WriteFile(cert, certPEM, 0o600))
	ok(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: pk}), 0o600))
	return cert, key
}

// The members' records were deleted and nothing else. Running routers keep their view; a heartbeat notices and its
// member registers again, so that routers started later know it too.
func TestMemberWithLostRecordRegistersAgain(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL()})
	m := subcluster.Member{ID: "sc-1", Epoch: 7, Version: "test"}
	if err := s.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	heartbeat := subcluster.Heartbeat{ID: "sc-1", Epoch: 7}
	if err := s.Heartbeat(t.Context(), heartbeat); err != nil {
		t.Fatal(err)
	}
	server.Do("DEL", "{creel:c}:m")
	if err := s.Heartbeat(t.Context(), heartbeat); !errors.Is(err, creel.ErrNotRegistered) {
		t.Fatalf("a heartbeat without a record: %v", err)
	}
	if err := s.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Records(t.Context()); err != nil || len(r.Members) != 1 {
		t.Fatalf("%d members, %v", len(r.Members), err)
	}
}
