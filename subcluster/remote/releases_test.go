// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster"
)

// How many calls of the table releases lack, as the classes of their ResourceManagers show.
func TestReleaseGaps(t *testing.T) {
	for release, want := range map[string]int{
		"3.1.4": 10, "3.2.0": 6, "3.2.4": 6, "3.3.0": 3, "3.3.6": 3, "3.4.0": 0, "3.4.2": 0, "3.10.0": 0, "10.0.0": 0,
		"": 0, "3.3.6-amzn-3": 0, "3.1.1.7.1.7.0-551": 0, "3.3": 0, "3.3.6-SNAPSHOT": 0, "3.3.99999999999999999999": 0,
	} {
		if got := lackedBy(release); len(got) != want {
			t.Errorf("%q lacks %v", release, got)
		}
	}
}

// A call that a member's release lacks is not made: not by REST, whatever the path is about, nor by either protocol
// of RPC. A call that the table lists with another method is made.
func TestMissingReleaseCallsAreSkipped(t *testing.T) {
	var web, rpc atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { web.Add(1) }))
	t.Cleanup(s.Close)
	client, _ := rpcServer(t, "127.0.0.1:0", clientProtocol, "getAttributesToNodes",
		func(context.Context, []byte) ([]byte, error) { rpc.Add(1); return nil, nil })
	pool := NewPool(Config{User: "creel", KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { pool.Close() })
	status := subcluster.Status{Member: subcluster.Member{
		ID: "sc-1", Version: "hadoop-3.1.4", Addresses: subcluster.Addresses{Client: client, Web: s.Listener.Addr().String()},
	}}
	m := pool.Member(&status)
	get := func(m *Member, method, path string) error {
		_, _, err := m.Web(t.Context(), Read, method, webBase+path, "", nil, nil)
		return err
	}
	for _, call := range [][2]string{
		{"GET", "/scheduler-overview"}, {"GET", "/scheduler-overview?user.name=alice"},
		{"GET", "/scheduler/app-activities/application_1_0001?limit=1"},
		{"POST", "/containers/container_1_0001_01_000001/signal/GRACEFUL_SHUTDOWN"}, {"POST", "/nodes/h:1/resource"},
	} {
		err := get(m, call[0], call[1])
		if !errors.Is(err, ErrNotInRelease) || !errors.Is(err, creel.ErrNotEnabled) || errors.Is(err, creel.ErrUnavailable) ||
			!strings.Contains(err.Error(), "is not in Hadoop 3.1.4: subcluster sc-1 runs that release") {
			t.Errorf("%v: %v", call, err)
		}
	}
	if _, err := m.Client(t.Context(), Read, "alice", "getAttributesToNodes", nil); !errors.Is(err, ErrNotInRelease) {
		t.Errorf("by RPC: %v", err)
	}
	if _, err := m.Admin(t.Context(), "alice", "mapAttributesToNodes", nil); !errors.Is(err, ErrNotInRelease) {
		t.Errorf("by RPC of administrators: %v", err)
	}
	if web.Load() != 0 || rpc.Load() != 0 || len(m.Open()) > 0 {
		t.Errorf("%d calls by REST and %d by RPC were made; cut off: %v", web.Load(), rpc.Load(), m.Open())
	}
	has := [][2]string{
		{"GET", "/scheduler/activities"}, {"GET", "/nodes/h:1"}, {"POST", "/scheduler-overview"}, {"GET", "/nodes/h:1/resource"},
		{"GET", "/scheduler-overview/more"}, {"GET", "/scheduler"},
	}
	for _, call := range has {
		if err := get(m, call[0], call[1]); err != nil {
			t.Errorf("%v: %v", call, err)
		}
	}
	if int(web.Load()) != len(has) {
		t.Errorf("%d calls were made of %d", web.Load(), len(has))
	}
	// Upgraded, it is asked.
	status.Version = "hadoop-3.4.2"
	upgraded := pool.Member(&status)
	if err := get(upgraded, "GET", "/scheduler-overview"); err != nil {
		t.Errorf("upgraded: %v", err)
	}
	if _, err := upgraded.Client(t.Context(), Read, "alice", "getAttributesToNodes", nil); err != nil || rpc.Load() != 1 {
		t.Errorf("upgraded, by RPC: %v", err)
	}
	if !upgraded.ByAgent() || pool.Member(&status) != upgraded {
		t.Error("its client is made again though nothing changed")
	}
}
