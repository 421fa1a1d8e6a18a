// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/mariadb"
	"github.com/creelrm/creel/statestore/nodes"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
)

// Each write of a property goes to a disk, so there are few.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func configOf(address, database string) mariadb.Config {
	return mariadb.Config{
		Address: address, Database: database, User: User, Password: Password, Validate: storetest.Validate,
	}
}

func openStore(t testing.TB, cfg mariadb.Config) *nodes.Store {
	t.Helper()
	s, err := mariadb.Open(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

var tables = []string{"applicationsHomeSubCluster", "membership", "policies", "reservationsHomeSubCluster", "creel_nodes"}

func storeDeployment(t *testing.T, server *Server) storetest.Deployment {
	database, db := server.Database(t)
	cfg := configOf(server.Address, database)
	store := openStore(t, cfg)
	return storetest.Deployment{
		Store:   store,
		Again:   func(t *testing.T) statestore.Store { return openStore(t, cfg) },
		Advance: time.Sleep,
		Back: func(t *testing.T) func(...statestore.ApplicationHome) {
			for _, table := range tables {
				Exec(t, db, "CREATE TABLE old_"+table+" LIKE "+table, "INSERT INTO old_"+table+" SELECT * FROM "+table)
			}
			return func(homes ...statestore.ApplicationHome) {
				time.Sleep(time.Second) // the time of a table's creation is in seconds
				for _, table := range tables {
					Exec(t, db, "DROP TABLE "+table, "CREATE TABLE "+table+" LIKE old_"+table,
						"INSERT INTO "+table+" SELECT * FROM old_"+table)
				}
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
			var data []byte
			const meta = " WHERE path = '/creel/meta'"
			must(t, db.QueryRowContext(t.Context(), "SELECT data FROM creel_nodes"+meta).Scan(&data))
			fields := map[string]any{}
			must(t, json.Unmarshal(data, &fields))
			fields["schema"] = word
			data, err := json.Marshal(fields)
			must(t, err)
			_, err = db.ExecContext(t.Context(), "UPDATE creel_nodes SET data = ?, version = version + 1"+meta, data)
			must(t, err)
		},
	}
}

// relaxed makes a server not wait for its disk: thousands of daemons register in one test.
const relaxed = "--innodb-flush-log-at-trx-commit=0"

func TestStoreKeepsTheContract(t *testing.T) {
	server := Start(t, relaxed)
	storetest.Run(t, func(t *testing.T) storetest.Deployment { return storeDeployment(t, server) })
}

// Random conversations with MariaDB and with the memory state give the same answers.
func TestStoreAnswersAsTheMemoryStateDoes(t *testing.T) {
	server := Start(t, relaxed)
	var last *nodes.Store
	storetest.Model(t, func() statestore.Store {
		if last != nil {
			must(t, last.Close())
		}
		database, _ := server.Database(t)
		var err error
		last, err = mariadb.Open(configOf(server.Address, database))
		must(t, err)
		return last
	})
	must(t, last.Close())
}

// The server is killed, restarted, paused and cut off while two processes claim. Each application has one home, which
// each process was told, and every acknowledged claim is there afterwards.
func TestFaultsOfTheServerLoseNoClaim(t *testing.T) {
	server := Start(t)
	path := redistest.NewProxy(t, server.Address)
	database, _ := server.Database(t)
	stores := []*nodes.Store{
		openStore(t, configOf(server.Address, database)), openStore(t, configOf(path.Addr, database)),
	}
	first := 0
	claim := func(fault string, during func()) {
		t.Helper()
		const apps = 100
		type answer struct {
			app  int
			home creel.SubclusterID
			err  error
		}
		answers := make(chan answer, 2*apps)
		for n, s := range stores {
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
		for range 2 * apps {
			a := <-answers
			must(t, a.err)
			if is, told := homes[a.app]; told && is != a.home {
				t.Fatalf("%s: application %d has the homes %s and %s", fault, a.app, is, a.home)
			}
			homes[a.app] = a.home
		}
		first += apps
		for app, home := range homes {
			if is, err := stores[0].Home(t.Context(), storetest.App(app)); err != nil || is != home {
				t.Fatalf("%s: application %d lives at %q (%v), and %s was told", fault, app, is, err, home)
			}
		}
	}
	claim("killed", func() { server.KillAlone(); server.Restart(t) })
	claim("paused", func() {
		server.Signal(syscall.SIGSTOP)
		time.Sleep(6 * time.Second) // longer than a call waits
		server.Signal(syscall.SIGCONT)
	})
	claim("cut off", func() { path.Cut(); path.Heal() })
	claim("silent", func() {
		path.Silence()
		time.Sleep(6 * time.Second)
		path.Cut()
		path.Heal()
	})
}
