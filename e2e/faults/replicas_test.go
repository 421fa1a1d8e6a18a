// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
)

// A router starts without the replica of its store that must receive each change. It stays up, is not ready, and
// reports the reason. Meanwhile the store is readable. When the replica starts, the router becomes ready by itself.
func TestARouterStartsWithoutTheStoresReplica(t *testing.T) {
	operatorsSee(t)
	primary := redistest.Start(t)
	f := &federation{t: t}
	router := f.spawn("router", "router",
		"creel.store.url="+primary.URL()+"?timeout=300ms&max_wait=2s&wait=1&wait_timeout=200ms",
		"yarn.router.clientrm.address=127.0.0.1:0",
		"yarn.router.rmadmin.address=127.0.0.1:0",
		"yarn.router.webapp.address=127.0.0.1:0",
	)
	router.awaitReady(t)
	const why = "a primary of the state store has 0 of 1 replicas"
	f.await("readyz says why", func() bool { return strings.Contains(page(t, router, "/readyz?verbose"), why) })
	if code := call(t, router, http.MethodGet, "/readyz", nil, nil).code; code != http.StatusServiceUnavailable {
		t.Errorf("/readyz is answered %d, want 503", code)
	}
	time.Sleep(2 * step) // operators look
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", primary.Addr[strings.LastIndexByte(primary.Addr, ':')+1:])
	redistest.AwaitReplica(primary)
	f.await("readyz does not name the replica any more", func() bool {
		return !strings.Contains(page(t, router, "/readyz?verbose"), why)
	})
	if router.Ended() {
		t.Error("the router ended")
	}
	_ = replica
}
