// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"maps"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// journalWorld is an application of several attempts on one node, under ResourceManagers that are restarted.
type journalWorld struct {
	*world
	keeps   bool
	node    creel.NodeID
	epoch   int64
	record  AppRecord
	attempt creel.AttemptID
	am      creel.ContainerID
	has     map[creel.ContainerID]*NodeContainer // the node's containers, until it may forget them
	waits   map[creel.ContainerID]bool           // containers whose completion the AM waits for
}

func newKeeper(t *testing.T, keeps bool) *journalWorld {
	k := &journalWorld{
		world: newWorld(t, func(c *Config) { c.Volatile, c.MaxAttempts = false, 1000 }), keeps: keeps,
		node: creel.NodeID{Host: "n", Port: 1},
		has:  map[creel.ContainerID]*NodeContainer{}, waits: map[creel.ContainerID]bool{},
	}
	k.comes()
	k.attempt = k.submit("u", "default", func(s *Submission) { s.KeepContainers = k.keeps })
	k.takeActions()
	k.sendHeartbeat()
	k.register(k.attempt)
	return k
}

// takeActions takes the saves and launches since its last call.
func (k *journalWorld) takeActions() {
	for _, a := range k.got {
		switch a := a.(type) {
		case SaveApp:
			attempts := k.record.Attempts
			if k.record = a.Record; len(k.record.Attempts) == 0 {
				k.record.Attempts = attempts
			}
		case SaveAttempt:
			same := func(r AttemptRecord) bool { return r.ID == a.Record.ID }
			if i := slices.IndexFunc(k.record.Attempts, same); i >= 0 {
				k.record.Attempts[i] = a.Record
			} else {
				k.record.Attempts = append(k.record.Attempts, a.Record)
			}
		case LaunchAM:
			k.am = a.Container.ID
			k.has[k.am] = &NodeContainer{ID: k.am, Resource: a.Container.Resource, State: creel.ContainerRunning}
		}
	}
	k.got = nil
}

func (k *journalWorld) hears(a *Answer) {
	for _, c := range a.Completed {
		delete(k.waits, c.ID)
	}
	for _, g := range a.Granted {
		k.waits[g.ID] = true
		k.has[g.ID] = &NodeContainer{ID: g.ID, Resource: g.Resource, State: creel.ContainerRunning}
	}
	k.takeActions()
}

// sendHeartbeat sends a heartbeat of the node with all its containers.
func (k *journalWorld) sendHeartbeat() {
	var said []ContainerStatus
	for _, id := range k.sorted(nil) {
		said = append(said, ContainerStatus{ID: id, State: k.has[id].State, ExitStatus: k.has[id].ExitStatus})
	}
	out := k.heartbeat(k.node, said...)
	for _, id := range out.Forget {
		delete(k.has, id)
	}
	for _, id := range out.Cleanup {
		if c := k.has[id]; c != nil {
			c.State, c.ExitStatus = creel.ContainerComplete, 143
		}
	}
	k.takeActions()
}

// sorted are the containers of the node that pass.
func (k *journalWorld) sorted(pass func(*NodeContainer) bool) []creel.ContainerID {
	all := slices.SortedFunc(maps.Keys(k.has), func(a, b creel.ContainerID) int {
		if a.Attempt != b.Attempt {
			return a.Attempt.Compare(b.Attempt)
		}
		return int(a.ID - b.ID)
	})
	return slices.DeleteFunc(all, func(id creel.ContainerID) bool { return pass != nil && !pass(k.has[id]) })
}

// tasks are the containers that run, without the AM's.
func (k *journalWorld) tasks() []creel.ContainerID {
	return k.sorted(func(c *NodeContainer) bool { return c.State == creel.ContainerRunning && c.ID != k.am })
}

func (k *journalWorld) end(id creel.ContainerID) {
	k.has[id].State, k.has[id].ExitStatus = creel.ContainerComplete, 3
}

// begin has the AM of the current attempt register, if that has begun and has not registered.
func (k *journalWorld) begin() {
	v, _ := k.m.App(k.attempt.Application)
	if v.Attempt == k.attempt && k.ids[k.attempt] != unregistered {
		return
	}
	if v.Attempt != k.attempt && !k.keeps {
		clear(k.waits)
	}
	k.attempt = v.Attempt
	k.ids[k.attempt] = unregistered
	if k.am.Attempt == k.attempt && k.has[k.am] != nil && k.has[k.am].State == creel.ContainerRunning {
		k.register(k.attempt)
		k.takeActions()
	}
}

const unregistered = -1

// restart has another ResourceManager begin with the journal of the one before. Its node and its AM come back in either order.
func (k *journalWorld) restart(amFirst bool) {
	k.takeActions()
	k.epoch++
	k.world = newWorld(k.t, func(c *Config) { c.Volatile, c.Epoch, c.MaxAttempts = false, k.epoch, 1000 })
	record := k.record
	record.Attempts = slices.Clone(record.Attempts)
	if err := k.m.Recover(k.now, &Recover{Apps: []AppRecord{record}}); err != nil {
		k.t.Fatal(err)
	}
	k.pump()
	k.ids[k.attempt] = unregistered
	if amFirst {
		k.begin()
	}
	k.comes()
	k.begin()
}

// comes has the node register.
func (k *journalWorld) comes() {
	r := &RegisterNode{ID: k.node, Resource: creel.NewResource(64<<10, 64)}
	for _, id := range k.sorted(nil) {
		r.Containers = append(r.Containers, *k.has[id])
	}
	if _, err := k.m.RegisterNode(k.now, r); err != nil {
		k.t.Fatal(err)
	}
	k.responses[k.node] = 0
	k.pump()
	k.takeActions()
}

// Through restarts of the ResourceManager and deaths of AMs, an AM receives the completion of each container that it
// was granted, or that it keeps from an earlier attempt, and its node may forget each in the end.
func TestNoEndOfAContainerIsLost(t *testing.T) {
	propertytest.Check(t, func(r *rapid.T) {
		k := newKeeper(t, rapid.Bool().Draw(r, "keeps"))
		r.Repeat(map[string]func(*rapid.T){
			"ask": func(r *rapid.T) {
				n := int32(rapid.IntRange(1, 3).Draw(r, "containers"))
				if k.ids[k.attempt] != unregistered && len(k.has) < 40 {
					k.hears(k.asks(k.attempt, ask(1, "*", 512, 1, n)))
				}
			},
			"call": func(*rapid.T) {
				if k.ids[k.attempt] != unregistered {
					k.hears(k.allocate(k.attempt, AllocateRequest{}))
				}
			},
			"heartbeat": func(*rapid.T) { k.sendHeartbeat(); k.begin() },
			"end": func(r *rapid.T) {
				if tasks := k.tasks(); len(tasks) > 0 {
					k.end(rapid.SampledFrom(tasks).Draw(r, "container"))
				}
			},
			"AM dies": func(*rapid.T) {
				if k.ids[k.attempt] != unregistered {
					k.end(k.am)
					k.sendHeartbeat() // so that its answer is never requested again
					k.begin()
				}
			},
			"AM dies in a call": func(*rapid.T) {
				if k.ids[k.attempt] != unregistered {
					k.allocate(k.attempt, AllocateRequest{}) // the answer gets lost
					k.end(k.am)
					k.sendHeartbeat()
					k.begin()
				}
			},
			"restart": func(r *rapid.T) { k.restart(rapid.Bool().Draw(r, "AM first")) },
			"":        func(*rapid.T) { k.audit() },
		})
		for range 3 {
			k.sendHeartbeat()
			k.begin()
		}
		for _, id := range k.tasks() {
			k.end(id)
		}
		for range 3 {
			k.sendHeartbeat()
			k.hears(k.allocate(k.attempt, AllocateRequest{}))
		}
		k.sendHeartbeat()
		if len(k.waits) > 0 {
			r.Fatalf("the AM waits for ever for %v", slices.Collect(maps.Keys(k.waits)))
		}
		if left := k.sorted(nil); len(left) != 1 || left[0] != k.am {
			r.Fatalf("the node has to remember %v, want the AM %s alone", left, k.am)
		}
	})
}

// A node that comes back to a restarted ResourceManager after the AM has registered has containers that were granted
// to this AM: the AM does not receive them as kept from an earlier attempt.
func TestAnAMHearsOfItsOwnContainersOnce(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		k := newKeeper(t, keeps)
		k.hears(k.asks(k.attempt, ask(1, "*", 512, 1, 2)))
		k.sendHeartbeat()
		k.restart(true)
		if got := k.allocate(k.attempt, AllocateRequest{}).FromPrevious; len(got) > 0 {
			t.Errorf("keeps containers %v: it is told of %v", keeps, got)
		}
	}
}
