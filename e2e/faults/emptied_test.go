// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
)

// The store is emptied while every router is down. One ResourceManager is paused, so it does not register again at
// once. A router that starts then has never read the complete store. Clients repeat all their submissions. Each
// succeeds, and its application runs in its former place, once.
func TestStoreEmptiedWhileRoutersAreDownDoublesNothing(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	f := found(t, server.URL(), "")
	ids := make([]string, 60)
	before := map[string]string{}
	for i := range ids {
		ids[i] = f.newID()
		f.submitSoon(ids[i])
	}
	for _, id := range ids {
		homes := f.homes(id)
		if len(homes) != 1 {
			t.Fatalf("%s has the homes %v", id, homes)
		}
		before[id] = homes[0]
	}
	url := f.storeURL
	f.router.Stop()
	time.Sleep(5 * time.Second) // witnesses have looked since the last member came
	f.members[0].rm.Signal(syscall.SIGSTOP)
	server.Do("FLUSHALL")
	f.router = f.startRouter("router-2", url)
	time.Sleep(6 * time.Second)
	accepted := 0
	for _, id := range ids[:5] {
		if a := f.submit(id); a.code == 202 {
			accepted++
		}
	}
	if accepted > 0 {
		t.Errorf("%d submissions were taken before every member had said what it runs", accepted)
	}
	f.members[0].rm.Signal(syscall.SIGCONT)
	refused := 0
	for _, id := range ids {
		refused += f.submitSoon(id)
	}
	doubled, moved := 0, 0
	for _, id := range ids {
		switch homes := f.homes(id); {
		case len(homes) != 1:
			doubled++
			t.Errorf("%s runs in %v", id, homes)
		case homes[0] != before[id]:
			moved++
		}
	}
	t.Logf("%d repeated submissions: %d doubled, %d moved; told %d times to repeat", len(ids), doubled, moved, refused)
	if moved > 0 {
		t.Errorf("%d applications are at another home", moved)
	}
}
