// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// Messages over a path that is slow in one direction are late; those in the other are not. A late request is served
// although its caller has given up.
func TestAPathIsSlowOneWay(t *testing.T) {
	for name, c := range map[string]struct {
		slow [2]int // from one site to another
		late bool   // the request
	}{
		"there": {[2]int{0, 1}, true},
		"back":  {[2]int{1, 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(t)
			w.faults.Orphans = true
			w.late[w.between(c.slow[0], c.slow[1])] = 5 * time.Second
			began := w.now
			var served time.Time
			var err error
			call(w, w.clusters[0].host, w.clusters[1].host, 2*time.Second, func(reply func(bool, error)) {
				served = w.now
				reply(true, nil)
			}, func(_ bool, e error) { err = e })
			passes(w, 10*time.Second)
			took := served.Sub(began)
			if served.IsZero() || (took > 5*time.Second) != c.late || took > 6*time.Second || err == nil {
				t.Errorf("served after %v, the caller got %v", took, err)
			}
		})
	}
}
