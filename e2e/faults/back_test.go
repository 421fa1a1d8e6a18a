// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// Redis returns with a snapshot from before the launch of an AM's UAM. The AM gets more containers, and finishes.
func TestStoreGoesBackUnderAnAM(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	f := foundWith(t, server.URL(), "", []string{"creel.proxy.policy=broadcast"})
	id := f.newID()
	f.submitSoon(id)
	am := f.am(client, id)
	f.await("the AM registers", func() bool { return am.register() == nil })
	older := server.Snapshot()
	marks := marksOf(server)
	am.more(f, 8) // asked of both members
	f.awaitLooks(server, marks)
	server.GoBack(older)
	am.more(f, 4)
	am.finish(f)
	f.await("the application has finished", func() bool { return f.state(f.router, id) == "FINISHED" })
	f.submitSoon(f.newID())
}

// Redis returns with a backup from before applications were submitted and a member was drained. Each submission is
// repeated at once: it runs in its former place, once. The member is drained again.
func TestOldBackupOfTheStoreIsRestored(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	f := found(t, server.URL(), "")
	f.submitSoon(f.newID())
	backup := server.Snapshot()
	ids, before := make([]string, 20), map[string]string{}
	for i := range ids {
		ids[i] = f.newID()
		f.submitSoon(ids[i])
		homes := f.homes(ids[i])
		if len(homes) != 1 {
			t.Fatalf("%s has the homes %v", ids[i], homes)
		}
		before[ids[i]] = homes[0]
	}
	drained := func() bool {
		for _, s := range f.view().Subclusters {
			if s.ID == "sc-1" {
				return s.State == "draining"
			}
		}
		return false
	}
	order := map[string]any{"reason": "maintenance"}
	if a := call(t, f.router, http.MethodPut, "/api/v1/subclusters/sc-1/drain", order, nil); a.code != http.StatusOK {
		t.Fatalf("the drain was answered %+v", a)
	}
	f.await("sc-1 is drained", drained)
	marks := marksOf(server)
	f.awaitLooks(server, marks)
	server.GoBack(backup)
	for _, id := range ids {
		f.submitSoon(id)
		if homes := f.homes(id); len(homes) != 1 || homes[0] != before[id] {
			t.Errorf("%s runs in %v, and ran in %s", id, homes, before[id])
		}
	}
	f.await("sc-1 is drained again", drained)
}

// marks are the counts of looks at the store, by key; each process has one.
type marks map[string]int

func marksOf(server *redistest.Server) marks {
	m := marks{}
	keys, _ := server.Do("KEYS", "*mark:*").([]any)
	for _, key := range keys {
		count, _ := strconv.Atoi(fmt.Sprint(server.Do("GET", key)))
		m[fmt.Sprint(key)] = count
	}
	return m
}

// awaitLooks waits until the router, the proxy and every member have read the store since the marks.
func (f *federation) awaitLooks(server *redistest.Server, since marks) {
	f.t.Helper()
	f.await("every process has looked at the store", func() bool {
		newer := 0
		for key, count := range marksOf(server) {
			if count > since[key] {
				newer++
			}
		}
		return newer == len(f.members)+2
	})
}
