// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/creelrm/creel"
)

// ways is the number of homes in a set: three cache lines with its header.
const ways = 7

// memory is a set-associative table of homes. The cost of a lookup is the number of cache lines it touches. So a home
// takes 24 bytes next to its neighbours, and is found without a lock: readers retry if a writer interfered.
type memory struct {
	sets  []set
	locks [64]sync.Mutex // writers of a set
	names names
}

// set is a few homes with the same hash bits. All its fields are atomic, so that concurrent reads and writes are
// defined. version is odd during a write; readers then retry.
type set struct {
	version atomic.Uint64
	expired atomic.Int64 // when an entry here was last marked out of date
	slots   [ways]slot
	_       [8]byte // 192 bytes: sets share no cache lines
}

type slot struct {
	stamp atomic.Int64 // the application's ClusterTimestamp
	id    atomic.Int32
	home  atomic.Int32 // its name's number, 0 in an empty slot
	at    atomic.Int64 // when the store was asked; below 0: out of date
}

func (m *memory) init(size int) {
	m.sets = make([]set, max(1, 2*size/ways))
	for i := range m.sets {
		m.sets[i].expired.Store(-1)
	}
}

func (m *memory) set(app creel.ApplicationID) (*set, *sync.Mutex) {
	x := uint64(app.ClusterTimestamp)*0x9e3779b97f4a7c15 ^ uint64(uint32(app.ID))*0xbf58476d1ce4e5b9
	x ^= x >> 32
	x *= 0x94d049bb133111eb
	i, _ := bits.Mul64(x, uint64(len(m.sets)))
	return &m.sets[i], &m.locks[i%uint64(len(m.locks))]
}

func (s *set) find(app creel.ApplicationID) *slot {
	for i := range s.slots {
		k := &s.slots[i]
		if k.id.Load() == app.ID && k.stamp.Load() == app.ClusterTimestamp && k.home.Load() != 0 {
			return k
		}
	}
	return nil
}

func (m *memory) get(app creel.ApplicationID) (home creel.SubclusterID, at int64, ok bool) {
	s, _ := m.set(app)
	for {
		version := s.version.Load()
		if version&1 == 0 {
			var name int32
			k := s.find(app)
			if k != nil {
				name, at = k.home.Load(), k.at.Load()
			}
			if s.version.Load() == version {
				if k == nil {
					return "", 0, false
				}
				return m.names.of(name), at, true
			}
		}
		runtime.Gosched()
	}
}

// put stores the store's answer to a request that was sent at that time. An answer requested before an announced change
// is stored, but is out of date. In a full set the home with the oldest request is dropped.
func (m *memory) put(app creel.ApplicationID, home creel.SubclusterID, asked int64) {
	name := m.names.number(home)
	if name == 0 {
		return
	}
	s, lock := m.set(app)
	lock.Lock()
	defer lock.Unlock()
	k := s.find(app)
	for i := 0; k == nil && i < ways; i++ {
		if s.slots[i].home.Load() == 0 {
			k = &s.slots[i]
		}
	}
	if k == nil {
		k = &s.slots[0]
		for i := range s.slots {
			if s.slots[i].at.Load() < k.at.Load() {
				k = &s.slots[i]
			}
		}
	}
	if asked <= s.expired.Load() {
		asked = -1
	}
	s.version.Add(1)
	k.stamp.Store(app.ClusterTimestamp)
	k.id.Store(app.ID)
	k.home.Store(name)
	k.at.Store(asked)
	s.version.Add(1)
}

// expire marks an application's home out of date, even if it is only requested yet; gone removes it.
func (m *memory) expire(app creel.ApplicationID, now int64, gone bool) {
	s, lock := m.set(app)
	lock.Lock()
	defer lock.Unlock()
	s.expired.Store(now)
	k := s.find(app)
	if k == nil {
		return
	}
	s.version.Add(1)
	k.at.Store(-1)
	if gone {
		k.home.Store(0)
	}
	s.version.Add(1)
}

// names numbers the subclusters. They are few and permanent.
type names struct {
	mu   sync.Mutex
	list atomic.Pointer[[]creel.SubclusterID] // number - 1 -> name; only replaced, never changed
}

// most limits the number of names; homes with other names are not remembered.
const most = 1 << 12

func (n *names) of(number int32) creel.SubclusterID { return (*n.list.Load())[number-1] }

// number of a name, 0 if there are too many.
func (n *names) number(name creel.SubclusterID) int32 {
	find := func() (list []creel.SubclusterID, number int32) {
		if l := n.list.Load(); l != nil {
			list = *l
		}
		for i, known := range list {
			if known == name {
				return list, int32(i + 1)
			}
		}
		return list, 0
	}
	if _, k := find(); k != 0 {
		return k
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	list, k := find()
	if k != 0 || len(list) >= most {
		return k
	}
	grown := append(list[:len(list):len(list)], name)
	n.list.Store(&grown)
	return int32(len(grown))
}
