// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
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
	is, _, err := s.Claim(t.Context(), storetest.App(app), member)
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

// unavailable wants what a caller gets from an ill store: the kind, a time to
// come back, and a reason that names the illness.
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
// unavailable. It gives the error back.
func waits(t *testing.T, s *redis.Store, app int) error {
	t.Helper()
	const given = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), given)
	defer cancel()
	began := time.Now()
	_, _, err := s.Claim(ctx, storetest.App(app), "sc-1")
	unavailable(t, err, "")
	// The last pause before the deadline is at most 320 ms, half of it chance;
	// what is sure is that it did not give up at the first error.
	if took := time.Since(began); s.Stats().Retries == 0 && took < given {
		t.Fatalf("it gave up after %v and never tried again", took)
	}
	return err
}

func TestAServerThatIsGone(t *testing.T) {
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
	if is, _, err := s.Claim(t.Context(), storetest.App(app), "sc-1"); err != nil || is != "sc-1" {
		t.Errorf("the claim that waited gave %q, %v", is, err)
	}
}

func TestAServerThatIsSlowPausedOrCutOff(t *testing.T) {
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
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL(), MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")
	ok(t, s.Register(t.Context(), subcluster.Member{ID: "sc-1"}))
	server.Do("REPLICAOF", "127.0.0.1", "1")
	unavailable(t, waits(t, s, 2), "read-only")
	homeIs(t, s, 1, "sc-1") // reads go on
	if r, err := s.Records(t.Context()); err != nil || len(r.Members) != 1 {
		t.Fatalf("records are %+v, %v", r, err)
	}
	server.Do("REPLICAOF", "NO", "ONE")
	claimed(t, s, 2, "sc-1", "sc-1")
}

func TestAServerThatIsOutOfMemory(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL(), MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")
	claimed(t, s, 2, "sc-1", "sc-1")
	ok(t, s.Register(t.Context(), subcluster.Member{ID: "sc-1"}))
	lease, err := s.Acquire(t.Context(), "l", "a", time.Hour)
	ok(t, err)
	server.Do("CONFIG", "SET", "maxmemory", "1")
	unavailable(t, waits(t, s, 3), "out of memory")
	// What keeps the federation alive, and what frees memory, goes on.
	homeIs(t, s, 1, "sc-1")
	ok(t, s.Beat(t.Context(), subcluster.Beat{ID: "sc-1", Load: []byte(`{"clusterMetrics":{"appsRunning":1}}`)}))
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

func TestAServerWhoseDiskIsFull(t *testing.T) {
	server := redistest.Start(t, "--save", "3600 1000000", "--stop-writes-on-bgsave-error", "yes")
	s := open(t, redis.Config{URL: server.URL(), MaxWait: time.Hour})
	claimed(t, s, 1, "sc-1", "sc-1")
	ok(t, os.Mkdir(filepath.Join(server.Dir, "dump.rdb"), 0o700)) // the snapshot cannot be put there
	ok(t, os.WriteFile(filepath.Join(server.Dir, "dump.rdb", "x"), nil, 0o600))
	server.Do("BGSAVE")
	for !strings.Contains(server.Do("INFO", "persistence").(string), "rdb_last_bgsave_status:err") {
		time.Sleep(5 * time.Millisecond)
	}
	unavailable(t, waits(t, s, 2), "disk")
	homeIs(t, s, 1, "sc-1")
	ok(t, os.RemoveAll(filepath.Join(server.Dir, "dump.rdb")))
	server.Do("BGSAVE")
	claimedSoon(t, s, 2)
}

// A store that comes back empty gives no running application a second home.
func TestAServerThatComesBackEmpty(t *testing.T) {
	server := redistest.Start(t)
	a, b := open(t, redis.Config{URL: server.URL()}), open(t, redis.Config{URL: server.URL()})
	ok(t, a.Register(t.Context(), subcluster.Member{ID: "sc-1"}))
	ok(t, a.Register(t.Context(), subcluster.Member{ID: "sc-2"}))
	for i := range 10 {
		claimed(t, a, i, "sc-1", "sc-1")
	}
	if _, err := b.Spread(t.Context(), storetest.Attempt(1, 1)); !errors.Is(err, creel.ErrAttemptNotFound) {
		t.Fatal(err) // b knows the store, too
	}
	records, err := a.Records(t.Context())
	ok(t, err)
	view := subcluster.Build(nil, records, records.Now)

	server.Kill()
	server.Restart() // it never wrote anything down

	// Nothing is doubled, and nobody hears that an application does not exist.
	for _, s := range []*redis.Store{a, b} {
		_, _, err = s.Claim(t.Context(), storetest.App(1), "sc-2")
		unavailable(t, err, "came back empty")
		_, err = s.Home(t.Context(), storetest.App(1))
		unavailable(t, err, "came back empty")
		_, err = s.Move(t.Context(), storetest.App(1), "sc-1", "sc-2")
		unavailable(t, err, "came back empty")
		_, err = s.Spread(t.Context(), storetest.Attempt(1, 1))
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
	if err := a.Beat(t.Context(), subcluster.Beat{ID: "sc-1"}); !errors.Is(err, creel.ErrNotRegistered) {
		t.Fatalf("a beat gave %v", err)
	}
	ok(t, a.Register(t.Context(), subcluster.Member{ID: "sc-1"}))

	// The ResourceManagers report what they run; two claim application 3.
	reports := []statestore.Report{{Member: "sc-1"}, {Member: "sc-2"}}
	for i := range 10 {
		reports[0].Applications = append(reports[0].Applications, statestore.ReportedApplication{ID: storetest.App(i), Attempt: 2})
	}
	reports[1].Applications = []statestore.ReportedApplication{
		{ID: storetest.App(3), Attempt: 1},
		{ID: storetest.App(4), Unmanaged: true},
	}
	homes, conflicts := statestore.Rebuild(reports)
	if len(homes) != 10 || len(conflicts) != 1 || conflicts[0].Home != "sc-1" || conflicts[0].Application != storetest.App(3) {
		t.Fatalf("rebuilt %v with conflicts %v", homes, conflicts)
	}
	conflicts, err = a.Reopen(t.Context(), homes)
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

// While one process writes the homes back, others still wait.
func TestNobodyClaimsWhileTheStoreIsRebuilt(t *testing.T) {
	server := redistest.Start(t)
	a := open(t, redis.Config{URL: server.URL()})
	claimed(t, a, 1, "sc-1", "sc-1")
	server.Do("FLUSHALL")
	server.Do("HSET", "{creel:c}:meta", "id", "new", "schema", "1", "state", "rebuilding")
	_, _, err := a.Claim(t.Context(), storetest.App(1), "sc-2")
	unavailable(t, err, "came back empty")
	fresh := open(t, redis.Config{URL: server.URL()})
	_, _, err = fresh.Claim(t.Context(), storetest.App(1), "sc-2")
	unavailable(t, err, "written back")
	if _, err := fresh.Reopen(t.Context(), []statestore.Home{{Application: storetest.App(1), Home: "sc-1"}}); err != nil {
		t.Fatal(err) // whoever began it may be dead: anybody may finish it
	}
	claimed(t, a, 1, "sc-2", "sc-1")
}

// One primary of a cluster is gone: the others' shards go on.
func TestAClusterThatLacksAPrimary(t *testing.T) {
	c := redistest.StartCluster(t, 3)
	s := open(t, redis.Config{URL: c.URL(), Timeout: 100 * time.Millisecond})
	for i := range 64 {
		claimed(t, s, i, "sc-1", "sc-1")
	}
	c.Nodes[1].Kill()
	served, refused := 0, 0
	for i := range 64 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		switch is, _, err := s.Claim(ctx, storetest.App(i), "sc-2"); {
		case err == nil && is == "sc-1":
			served++
		case errors.Is(err, creel.ErrUnavailable):
			refused++
		default:
			t.Fatalf("claim gave %q, %v", is, err)
		}
		cancel()
	}
	if served == 0 || refused == 0 || served < refused {
		t.Fatalf("%d claims were served, %d refused", served, refused)
	}
}

// Slots move between the primaries of a cluster while claims go on.
func TestAClusterThatMovesSlots(t *testing.T) {
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
	s := redistest.StartSentinels(t)
	stuck := open(t, redis.Config{URL: s.Primary.URL(), Wait: 1, WaitTimeout: 50 * time.Millisecond})
	claimed(t, stuck, 1, "sc-1", "sc-1")
	s.Via.Cut()
	s.AwaitFailover()
	_, _, err := stuck.Claim(shortly(t), storetest.App(2), "sc-1")
	unavailable(t, err, "replicas")
	follows := open(t, redis.Config{URL: s.URL()})
	claimed(t, follows, 2, "sc-2", "sc-2")
	claimed(t, follows, 1, "sc-2", "sc-1")
}

// kill -9 in the middle of 100,000 claims, each application claimed by two
// routers for two members: what was acknowledged is there afterwards, and no
// application has two homes.
func TestKillInTheMiddleOfClaims(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	cfg := redis.Config{URL: server.URL(), MaxWait: time.Hour}
	routers := []*redis.Store{open(t, cfg), open(t, cfg)}
	members := []creel.SubclusterID{"sc-0", "sc-1"}
	const apps, callers = 50_000, 64
	var acked [2][apps]creel.SubclusterID
	var count atomic.Int64
	var wg sync.WaitGroup
	for r, s := range routers {
		for c := range callers / 2 {
			wg.Go(func() {
				for i := c; i < apps; i += callers / 2 {
					is, _, err := s.Claim(t.Context(), storetest.App(i), members[r])
					if err != nil {
						t.Errorf("application %d: %v", i, err)
						return
					}
					acked[r][i] = is
					count.Add(1)
				}
			})
		}
	}
	for _, at := range []int64{30_000, 60_000} {
		for count.Load() < at && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		server.Kill()
		server.Restart()
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	s := open(t, cfg)
	listed := map[creel.ApplicationID]creel.SubclusterID{}
	for _, m := range members {
		for cursor := ""; ; {
			page, next, err := s.HomesAt(t.Context(), m, cursor, statestore.MaxPage)
			ok(t, err)
			for _, h := range page {
				if was, twice := listed[h.Application]; twice {
					t.Fatalf("%v is listed at %s and at %s", h.Application, was, m)
				}
				listed[h.Application] = h.Home
			}
			if cursor = next; next == "" {
				break
			}
		}
	}
	won := map[creel.SubclusterID]int{}
	for i := range apps {
		is := listed[storetest.App(i)]
		if acked[0][i] != is || acked[1][i] != is || is == "" {
			t.Fatalf("application %d: acknowledged %q and %q, stored %q", i, acked[0][i], acked[1][i], is)
		}
		won[is]++
	}
	t.Logf("%d claims acknowledged through 2 kills, homes %v, %d repeats", count.Load(), won, routers[0].Stats().Retries+routers[1].Stats().Retries)
}

func TestUsersAndPermissions(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "router", "on", ">s3cret", "resetkeys", "~{creel:*", "resetchannels", "&creel:changes",
		"+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+wait", "+time")
	server.Do("CONFIG", "SET", "requirepass", "other")
	s := open(t, redis.Config{URL: "redis://router:s3cret@" + server.Addr})
	claimed(t, s, 1, "sc-1", "sc-1")
	if is, err := s.Move(t.Context(), storetest.App(1), "sc-1", "sc-2"); err != nil || is != "sc-2" {
		t.Fatalf("a move, which publishes, gave %q, %v", is, err)
	}
	for name, url := range map[string]string{
		"no login":       "redis://" + server.Addr,
		"wrong password": "redis://router:wrong@" + server.Addr,
		"wrong prefix":   "redis://router:s3cret@" + server.Addr + "?prefix=other",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := open(t, redis.Config{URL: url, MaxWait: time.Hour}).Claim(t.Context(), storetest.App(1), "sc-1")
			if !errors.Is(err, creel.ErrNotPermitted) || strings.Contains(err.Error(), "s3cret") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, pool := selfSigned(t, dir)
	server := redistest.Start(t)
	tlsPort := freePort(t)
	server.Do("CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", cert, "tls-auth-clients", "no", "tls-port", fmt.Sprint(tlsPort))
	url := fmt.Sprintf("rediss://127.0.0.1:%d", tlsPort)
	s := open(t, redis.Config{URL: url, TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}})
	claimed(t, s, 1, "sc-1", "sc-1")
	untrusting := open(t, redis.Config{URL: url, MaxWait: time.Hour, Timeout: time.Minute})
	_, _, err := untrusting.Claim(t.Context(), storetest.App(1), "sc-1")
	unavailable(t, err, "certificate")
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func selfSigned(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	ok(t, err)
	pk, err := x509.MarshalECPrivateKey(private)
	ok(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ok(t, os.WriteFile(cert, certPEM, 0o600))
	ok(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: pk}), 0o600))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return cert, key, pool
}
