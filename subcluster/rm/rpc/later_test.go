// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

func TestListOfClosedConnectionIsNotMade(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lists, encodings := 0, 0
	run := unlessGone(ctx, func(*rm.Machine, time.Time) func() (int, error) {
		lists++
		return func() (int, error) { encodings++; return 7, nil }
	})
	if n, err := run(nil, time.Time{})(); n != 7 || err != nil {
		t.Fatalf("an open connection gets %d, %v", n, err)
	}
	encode := run(nil, time.Time{})
	cancel()
	if _, err := encode(); err == nil {
		t.Error("a list is encoded for a connection that has closed since")
	}
	if _, err := run(nil, time.Time{})(); err == nil || lists != 2 || encodings != 1 {
		t.Errorf("%d lists and %d encodings were made, %v", lists, encodings, err)
	}
}
