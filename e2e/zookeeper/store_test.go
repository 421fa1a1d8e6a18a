// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/zkclient"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/nodes"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/statestore/zookeeper"
)

func openStore(t *testing.T, cfg zookeeper.Config) *nodes.Store {
	t.Helper()
	s, err := zookeeper.Open(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func storeConfig(address string) zookeeper.Config {
	return zookeeper.Config{
		Servers: zkclient.Servers{Addresses: []string{address}, Timeout: 4 * time.Second},
		Parent:  fmt.Sprintf("/tests/store-%d", parents.Add(1)), Validate: storetest.Validate,
	}
}

// conn is a plain client, as another program's.
func conn(t *testing.T, address string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{address}, 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// tree is all nodes below a path, with their data.
func tree(t *testing.T, c *zk.Conn, root string, out map[string][]byte) {
	t.Helper()
	data, _, err := c.Get(root)
	must(t, err)
	out[root] = data
	children, _, err := c.Children(root)
	must(t, err)
	for _, name := range children {
		tree(t, c, path.Join(root, name), out)
	}
}

// writeTree replaces all nodes below a path, as a tool that restores a backup does.
func writeTree(t *testing.T, c *zk.Conn, root string, nodes map[string][]byte) {
	t.Helper()
	now := map[string][]byte{}
	tree(t, c, root, now)
	var paths []string
	for p := range now {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, p := range paths {
		must(t, c.Delete(p, -1))
	}
	paths = nil
	for p := range nodes {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		_, err := c.Create(p, nodes[p], 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
}

func storeDeployment(t *testing.T, address string) storetest.Deployment {
	cfg := storeConfig(address)
	store := openStore(t, cfg)
	return storetest.Deployment{
		Store:   store,
		Again:   func(t *testing.T) statestore.Store { return openStore(t, cfg) },
		Advance: time.Sleep,
		Back: func(t *testing.T) func(...statestore.ApplicationHome) {
			c, older := conn(t, address), map[string][]byte{}
			tree(t, c, cfg.Parent, older)
			return func(homes ...statestore.ApplicationHome) {
				writeTree(t, c, cfg.Parent, older)
				if lost, err := store.Lost(t.Context()); err != nil || !lost {
					t.Fatalf("a restored copy is lost: %v (%v)", lost, err)
				}
				_, err := store.Reopen(t.Context(), func(context.Context) ([]statestore.ApplicationHome, error) {
					return homes, nil
				})
				must(t, err)
				if lost, err := store.Lost(t.Context()); err != nil || lost {
					t.Fatalf("after the rebuild the store is lost: %v (%v)", lost, err)
				}
			}
		},
		SetSchema: func(t *testing.T, word string) {
			c, node := conn(t, address), cfg.Parent+"/creel/meta"
			data, _, err := c.Get(node)
			must(t, err)
			fields := map[string]any{}
			must(t, json.Unmarshal(data, &fields))
			fields["schema"] = word
			data, err = json.Marshal(fields)
			must(t, err)
			_, err = c.Set(node, data, -1)
			must(t, err)
		},
	}
}

func TestStoreKeepsTheContract(t *testing.T) {
	_, address := hadoop.StartZooKeeper(t)
	storetest.Run(t, func(t *testing.T) storetest.Deployment { return storeDeployment(t, address) })
}

// Random conversations with ZooKeeper and with the memory state give the same answers.
func TestStoreAnswersAsTheMemoryStateDoes(t *testing.T) {
	_, address := hadoop.StartZooKeeper(t)
	var last *nodes.Store
	storetest.Model(t, func() statestore.Store {
		if last != nil {
			must(t, last.Close())
		}
		var err error
		last, err = zookeeper.Open(storeConfig(address))
		must(t, err)
		return last
	})
	must(t, last.Close())
}

// claimers are two processes with the same store.
type claimers struct {
	stores []*nodes.Store
	first  int // the next application
}

// claim makes both processes claim the same applications during a fault. Each application has one home, which both
// received, and every acknowledged claim is there afterwards.
func (c *claimers) claim(t *testing.T, fault string, during func()) {
	t.Helper()
	const apps = 100
	type answer struct {
		app  int
		home creel.SubclusterID
		err  error
	}
	answers := make(chan answer, len(c.stores)*apps)
	first := c.first
	for n, s := range c.stores {
		go func() {
			for i := range apps {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				home, _, err := s.Claim(ctx, storetest.App(first+i), creel.SubclusterID(fmt.Sprint("sc-", n)), nil)
				cancel()
				answers <- answer{first + i, home, err}
			}
		}()
	}
	during()
	homes := map[int]creel.SubclusterID{}
	for range cap(answers) {
		a := <-answers
		must(t, a.err)
		if is, told := homes[a.app]; told && is != a.home {
			t.Fatalf("%s: application %d has the homes %s and %s", fault, a.app, is, a.home)
		}
		homes[a.app] = a.home
	}
	c.first += apps
	for app, home := range homes {
		if is, err := c.stores[0].Home(t.Context(), storetest.App(app)); err != nil || is != home {
			t.Fatalf("%s: application %d lives at %q (%v), and %s was told", fault, app, is, err, home)
		}
	}
}

// The server is killed, restarted, paused and cut off while two processes claim.
func TestFaultsOfTheServerLoseNoClaim(t *testing.T) {
	server, address := hadoop.StartZooKeeper(t)
	path := redistest.NewProxy(t, address)
	direct, cut := storeConfig(address), storeConfig(path.Addr)
	cut.Parent = direct.Parent
	c := claimers{stores: []*nodes.Store{openStore(t, direct), openStore(t, cut)}}
	c.claim(t, "killed", func() { server.KillAlone(); server.Restart(t) })
	c.claim(t, "paused", func() {
		server.Signal(syscall.SIGSTOP)
		time.Sleep(6 * time.Second) // longer than a session
		server.Signal(syscall.SIGCONT)
	})
	c.claim(t, "cut off", func() { path.Cut(); path.Heal() })
	c.claim(t, "silent", func() {
		path.Silence()
		time.Sleep(6 * time.Second) // the session expires
		path.Cut()
		path.Heal()
	})
}

// Of three servers the leader is killed three times, and paused, while two processes claim. The other two go on.
func TestKilledLeadersLoseNoClaim(t *testing.T) {
	q := hadoop.StartQuorum(t)
	conf := storeConfig("")
	conf.Servers.Addresses = q.Addresses
	c := claimers{stores: []*nodes.Store{openStore(t, conf), openStore(t, conf)}}
	c.claim(t, "no fault", func() {})
	for range 3 {
		leader := q.Leader(t)
		c.claim(t, "the leader is killed", func() {
			q.Servers[leader].KillAlone()
			began := time.Now()
			next := q.Leader(t)
			t.Logf("server %d leads %v after the death of %d", next+1, time.Since(began).Round(10*time.Millisecond), leader+1)
		})
		q.Servers[leader].Restart(t)
	}
	leader := q.Servers[q.Leader(t)]
	c.claim(t, "the leader is paused", func() {
		leader.Signal(syscall.SIGSTOP)
		time.Sleep(6 * time.Second) // longer than a session
		leader.Signal(syscall.SIGCONT)
	})
}
