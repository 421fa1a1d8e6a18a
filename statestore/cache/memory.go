// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/creelrm/creel"
)

// memory has the homes that were used last. It is safe for concurrent use. Times are those of Homes.
type memory struct {
	mu    sync.Mutex
	homes *simplelru.LRU[creel.ApplicationID, answer]
	// expired has the time of the last change by the application's id modulo its length. An answer that was requested
	// earlier is out of date. So a change also counts for an answer that is still on its way.
	expired [256]int64
}

// answer is the store's last answer about an application.
type answer struct {
	home  creel.SubclusterID
	asked int64 // time of the request; -1: out of date
}

func (m *memory) init(size int) {
	m.homes, _ = simplelru.NewLRU[creel.ApplicationID, answer](size, nil) // it fails only for a size below 1
	for i := range m.expired {
		m.expired[i] = -1
	}
}

// lastChange returns the place in expired of an application.
func (m *memory) lastChange(app creel.ApplicationID) *int64 {
	return &m.expired[uint32(app.ID)%uint32(len(m.expired))]
}

func (m *memory) get(app creel.ApplicationID) (home creel.SubclusterID, at int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.homes.Get(app)
	return k.home, k.asked, ok
}

// put stores the store's answer to a request that was sent at that time. An answer requested before an announced change
// is stored, but is out of date.
func (m *memory) put(app creel.ApplicationID, home creel.SubclusterID, asked int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if asked <= *m.lastChange(app) {
		asked = -1
	}
	m.homes.Add(app, answer{home, asked})
}

// expire marks an application's home out of date, even if it is only requested yet; gone removes it.
func (m *memory) expire(app creel.ApplicationID, now int64, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*m.lastChange(app) = now
	k, ok := m.homes.Peek(app)
	switch {
	case !ok:
	case gone:
		m.homes.Remove(app)
	default:
		m.homes.Add(app, answer{k.home, -1})
	}
}
