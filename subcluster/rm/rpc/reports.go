// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"sync"
	"time"

	"github.com/creelrm/creel"
)

// Clients wait for their applications by asking for a report over and over. One
// that was made is given again, by the goroutine that reads the connection,
// while the machine was only asked questions and no longer than reportAge: what
// it shows of time alone (seconds used, time left) counts in seconds.
const (
	reportAge  = 100 * time.Millisecond
	maxReports = 8192
)

type reportKey struct {
	app  creel.ApplicationID
	user string // who asked: it tells what is shown
}

type encodedReport struct {
	moves uint64
	made  time.Time
	body  []byte // the encoded response
}

// reports are the encoded reports of a door.
type reports struct {
	mu sync.RWMutex
	m  map[reportKey]encodedReport
}

// get gives the report when nothing has moved since it was made.
func (r *reports) get(key reportKey, moves uint64, now time.Time) []byte {
	r.mu.RLock()
	e := r.m[key]
	r.mu.RUnlock()
	if e.moves != moves || now.Sub(e.made) > reportAge {
		return nil
	}
	return e.body
}

func (r *reports) put(key reportKey, e encodedReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil || len(r.m) >= maxReports {
		r.m = map[reportKey]encodedReport{} // those that are still asked for come back
	}
	r.m[key] = e
}
