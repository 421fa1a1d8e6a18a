// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/resolver"
	"github.com/creelrm/creel/subcluster/resolver/server"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// federation is a store, members that publish, and one that follows; heartbeat data goes from digest to view at once.
type federation struct {
	mu         sync.Mutex
	nodes      map[creel.SubclusterID]resolver.Nodes
	publishers map[creel.SubclusterID]*server.Publisher
	stop       map[creel.SubclusterID]context.CancelFunc
	store      *memory.Store
	follower   *server.Follower
	group      sync.WaitGroup
}

func (f *federation) set(id creel.SubclusterID, n resolver.Nodes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[id] = n
}

func (f *federation) view() *subcluster.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	var members []subcluster.Status
	for id, p := range f.publishers {
		s := subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive}
		s.Load.Nodes = p.Digest()
		members = append(members, s)
	}
	return subcluster.NewView(time.Now(), members, nil)
}

// start begins the life of a member's process.
func (f *federation) start(t *testing.T, id creel.SubclusterID) {
	p := &server.Publisher{
		Member: id, Store: f.store, Linger: 24,
		Read: func(context.Context) (resolver.Nodes, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.nodes[id], nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.publishers[id], f.stop[id] = p, cancel
	f.group.Go(func() { _ = p.Run(ctx) })
}

func run(t *testing.T, list *server.MachineList, tell func(t *testing.T, f *federation)) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{
			nodes:      map[creel.SubclusterID]resolver.Nodes{},
			publishers: map[creel.SubclusterID]*server.Publisher{},
			stop:       map[creel.SubclusterID]context.CancelFunc{},
			store:      memory.New(memory.NewState("m", nil), time.Now),
		}
		f.follower = &server.Follower{Store: f.store, View: f.view, List: list}
		ctx, cancel := context.WithCancel(t.Context())
		f.group.Go(func() { _ = f.follower.Run(ctx) })
		tell(t, f)
		cancel()
		for _, stop := range f.stop {
			stop()
		}
		f.group.Wait()
	})
}

func (f *federation) want(t *testing.T, name string, want ...creel.SubclusterID) {
	t.Helper()
	synctest.Wait()
	if got := f.follower.Where(name); !slices.Equal(got, want) {
		t.Errorf("%s: %s is at %v, want %v", time.Now().Format(time.TimeOnly), name, got, want)
	}
}

func TestHostsAreKnownSoonAfterTheyRegister(t *testing.T) {
	run(t, nil, func(t *testing.T, f *federation) {
		f.set("sc-1", resolver.Nodes{"n1": "/r1"})
		f.start(t, "sc-1")
		f.start(t, "sc-2")
		time.Sleep(8 * time.Second)
		f.want(t, "n1", "sc-1")
		f.want(t, "n2")
		f.set("sc-2", resolver.Nodes{"n2": "/r1"})
		time.Sleep(9 * time.Second) // 5 s to be published, 3 s to be read
		f.want(t, "n2", "sc-2")
		f.want(t, "/r1", "sc-1", "sc-2")
		reads := f.follower.Reads()
		time.Sleep(10 * time.Minute)
		f.want(t, "n2", "sc-2")
		if more := f.follower.Reads() - reads; more != 0 {
			t.Errorf("in ten minutes without a change the store was read %d times", more)
		}
	})
}

// A node that restarts, and a ResourceManager that restarts and whose nodes are still to register, change nothing
// that others read.
func TestHostsStayPublishedDuringRestart(t *testing.T) {
	run(t, nil, func(t *testing.T, f *federation) {
		f.set("sc-1", resolver.Nodes{"n1": "/r1", "n2": "/r1"})
		f.start(t, "sc-1")
		time.Sleep(8 * time.Second)
		reads := f.follower.Reads()
		f.set("sc-1", resolver.Nodes{"n2": "/r1"})
		time.Sleep(time.Minute)
		f.want(t, "n1", "sc-1")
		f.stop["sc-1"]()
		f.set("sc-1", nil)
		f.start(t, "sc-1")
		time.Sleep(time.Minute)
		f.want(t, "n1", "sc-1")
		f.want(t, "n2", "sc-1")
		if more := f.follower.Reads() - reads; more != 0 {
			t.Errorf("it was read %d times", more)
		}
		f.set("sc-1", resolver.Nodes{"n2": "/r1"})
		time.Sleep(3 * time.Minute)
		f.want(t, "n1")
		f.want(t, "n2", "sc-1")
	})
}

func TestEmptiedStoreGetsNodesBack(t *testing.T) {
	run(t, nil, func(t *testing.T, f *federation) {
		f.set("sc-1", resolver.Nodes{"n1": "/r1"})
		f.start(t, "sc-1")
		time.Sleep(8 * time.Second)
		set, err := f.store.Documents(t.Context(), resolver.Class("sc-1"))
		if err != nil || len(set.Documents) != 1 {
			t.Fatal(set, err)
		}
		if _, err := f.store.PutDocument(t.Context(), statestore.DocumentWrite{
			Class: resolver.Class("sc-1"), Name: resolver.Document, Expect: set.Documents[0].Version,
		}); err != nil {
			t.Fatal(err)
		}
		f.want(t, "n1", "sc-1") // the nodes read before hold
		time.Sleep(70 * time.Second)
		set, err = f.store.Documents(t.Context(), resolver.Class("sc-1"))
		if err != nil || len(set.Documents) != 1 {
			t.Errorf("a minute later the store has %v, %v", set.Documents, err)
		}
	})
}

// Another writer's document, for which no heartbeat vouches.
func TestNodesThatNoHeartbeatNamesAreNotBelieved(t *testing.T) {
	run(t, nil, func(t *testing.T, f *federation) {
		f.set("sc-1", resolver.Nodes{"n1": "/r1"})
		f.start(t, "sc-1")
		time.Sleep(8 * time.Second)
		set, _ := f.store.Documents(t.Context(), resolver.Class("sc-1"))
		if _, err := f.store.PutDocument(t.Context(), statestore.DocumentWrite{
			Class: resolver.Class("sc-1"), Name: resolver.Document, Expect: set.Documents[0].Version,
			Data: resolver.Nodes{"evil": "/r1"}.Encode(),
		}); err != nil {
			t.Fatal(err)
		}
		f.set("sc-1", resolver.Nodes{"n1": "/r1", "n2": "/r1"})
		for range 20 {
			time.Sleep(time.Second)
			f.want(t, "evil")
		}
		f.want(t, "n2", "sc-1")
	})
}

// A member that publishes an unreadable document does not hide the others' hosts, and costs one read.
func TestUnreadableMemberHidesNoOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.NewState("m", nil), time.Now)
		var members []subcluster.Status
		for id, data := range map[creel.SubclusterID][]byte{
			"sc-0": []byte("junk"), "sc-1": resolver.Nodes{"n1": "/r1"}.Encode(),
		} {
			if _, err := store.PutDocument(t.Context(), statestore.DocumentWrite{
				Class: resolver.Class(id), Name: resolver.Document, Data: data,
			}); err != nil {
				t.Fatal(err)
			}
			s := subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive}
			s.Load.Nodes = resolver.Digest(data)
			members = append(members, s)
		}
		view := subcluster.NewView(time.Now(), members, nil)
		f := &server.Follower{Store: store, View: func() *subcluster.View { return view }}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _ = f.Run(ctx) })
		time.Sleep(time.Minute)
		if got := f.Where("n1"); !slices.Equal(got, []creel.SubclusterID{"sc-1"}) || f.Reads() != 2 {
			t.Errorf("n1 is at %v after %d reads", got, f.Reads())
		}
		cancel()
		group.Wait()
	})
}

func TestAMachineListOverrulesAndIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	write := func(text string, at int) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Unix(int64(at), 0)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := server.OpenMachineList(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a list that is not there: %v", err)
	}
	write("n1,sc-1", 1)
	if _, err := server.OpenMachineList(path); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a bad list: %v", err)
	}
	write("n1,sc-2,/r9", 2)
	list, err := server.OpenMachineList(path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, list, func(t *testing.T, f *federation) {
		f.set("sc-1", resolver.Nodes{"n1": "/r1"})
		f.start(t, "sc-1")
		time.Sleep(8 * time.Second)
		f.want(t, "n1", "sc-2")
		write("nonsense", 3)
		time.Sleep(2 * time.Second)
		f.want(t, "n1", "sc-2")
		write("", 4)
		time.Sleep(2 * time.Second)
		f.want(t, "n1", "sc-1")
	})
}
