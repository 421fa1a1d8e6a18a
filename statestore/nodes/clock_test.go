// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"testing"
	"time"
)

func TestClockFollowsTheServer(t *testing.T) {
	var c clock
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	if _, ok := c.read(at(0)); ok {
		t.Error("a clock that never heard of the server's is trusted")
	}
	expect := func(local, want int64) {
		t.Helper()
		if now, ok := c.read(at(local)); !ok || now.UnixMilli() != want {
			t.Errorf("at %d it is %v (%v), want %d", local, now.UnixMilli(), ok, want)
		}
	}
	c.learn(at(10_000), at(90), at(110))
	expect(110, 10_000)
	expect(160, 10_050)
	c.learn(at(10_060), at(150), at(200)) // a slow answer says less than the earlier one
	expect(200, 10_090)
	c.learn(at(10_200), at(210), at(211)) // the server's clock is ahead
	expect(211, 10_200)
	c.learn(at(10_150), at(212), at(213)) // it is behind: the time does not go back
	expect(213, 10_200)
	c.learn(at(5_000), at(214), at(215)) // another leader with another clock
	expect(215, 5_002)
	if _, ok := c.read(at(215 + trusted.Milliseconds() + 1)); ok {
		t.Error("a clock without a recent write is trusted")
	}
}
