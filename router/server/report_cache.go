// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"fmt"
	"sync"
	"time"

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

// reportCacheBytes bounds the memory of all reports, since clients choose the user names. Beyond it all reports are
// dropped.
const reportCacheBytes = 32 << 20

// reportCache has the last reports of applications that went through this router. Users get them while home does not
// answer. The content of a report depends on the caller, so each is stored for its user. The oldest are dropped
// first.
type reportCache struct {
	mu    sync.Mutex
	most  int
	order []reportKey // a ring
	next  int
	byKey map[reportKey]report
	bytes int // of all bodies
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

// Saw stores an application's report that home sent to a user.
func (s *Server) Saw(app creel.ApplicationID, user string, form Form, body []byte) {
	if len(body) > reportMost {
		return
	}
	c := &s.reportCache
	key := reportKey{app, user, form}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil || c.bytes > reportCacheBytes {
		c.byKey, c.order, c.next, c.bytes = map[reportKey]report{}, nil, 0, 0
	}
	before, there := c.byKey[key]
	if !there {
		if len(c.order) < c.most {
			c.order = append(c.order, key)
		} else {
			c.bytes -= len(c.byKey[c.order[c.next]].body)
			delete(c.byKey, c.order[c.next])
			c.order[c.next] = key
			c.next = (c.next + 1) % c.most
		}
	}
	if !bytes.Equal(before.body, body) {
		c.bytes += len(body) - len(before.body)
		before.body = bytes.Clone(body)
	}
	before.at = time.Now()
	c.byKey[key] = before
}

// Seen returns the last report of an application that a user got from this router, and its age.
func (s *Server) Seen(app creel.ApplicationID, user string, form Form) (body []byte, age time.Duration, ok bool) {
	c := &s.reportCache
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.byKey[reportKey{app, user, form}]
	return r.body, time.Since(r.at), ok
}

// AsOf returns the text that precedes a cached report.
func AsOf(age time.Duration, err error) string {
	return fmt.Sprintf("This report is %s old; since then: %v. ", units.Age(age.Seconds()), err)
}
