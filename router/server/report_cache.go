// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
)

// Form is an encoding of an application's report.
type Form int

// The cached forms.
const (
	RPC Form = iota
	REST
)

// reportMost bounds one cached report, in bytes.
const reportMost = 16 << 10

// reportCacheBytes bounds the memory of all reports, since clients choose the user names.
const reportCacheBytes = 32 << 20

// reportCache has the last reports of applications that went through this router. Users get them while home does not
// answer. The content of a report depends on the caller, so each is stored for its user. The oldest are dropped first.
type reportCache struct {
	mu      sync.Mutex
	reports *simplelru.LRU[reportKey, report]
	bytes   int // of all bodies
}

type reportKey struct {
	app  creel.ApplicationID
	user string
	form Form
}

type report struct {
	at   time.Time
	body []byte
}

// init sets the greatest number of reports, which is above 0.
func (c *reportCache) init(most int) {
	// NewLRU fails only for a size below 1.
	c.reports, _ = simplelru.NewLRU(most, func(_ reportKey, r report) { c.bytes -= len(r.body) })
}

// saw stores an application's report that home sent to a user.
func (s *Server) saw(app creel.ApplicationID, user string, form Form, body []byte) {
	if len(body) > reportMost {
		return
	}
	c := &s.reportCache
	key := reportKey{app, user, form}
	c.mu.Lock()
	defer c.mu.Unlock()
	last, _ := c.reports.Peek(key)
	c.bytes += len(body) - len(last.body)
	if !bytes.Equal(last.body, body) {
		last.body = bytes.Clone(body)
	}
	c.reports.Add(key, report{time.Now(), last.body})
	for c.bytes > reportCacheBytes {
		c.reports.RemoveOldest()
	}
}

// seen returns the last report of an application that a user got from this router, and its age.
func (s *Server) seen(app creel.ApplicationID, user string, form Form) (body []byte, age time.Duration, ok bool) {
	c := &s.reportCache
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.reports.Peek(reportKey{app, user, form})
	return r.body, time.Since(r.at), ok
}

// AsOf returns the text that precedes a cached report.
func AsOf(age time.Duration, err error) string {
	return fmt.Sprintf("This report is %s old; since then: %v. ", units.Age(age.Seconds()), err)
}
