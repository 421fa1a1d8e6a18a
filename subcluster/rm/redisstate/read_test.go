// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// scans plays a state of two entries whose scans leave out the second while short is above 0.
func scans(short int, stored int64, refused error) (map[string]string, error) {
	return readWhole(func(cursor string) ([]any, string, error) {
		if cursor == "0" {
			return []any{"a", "1"}, "7", nil
		}
		if short--; short >= 0 {
			return nil, "0", nil
		}
		return []any{"b", "2", "a", "1"}, "0", nil // a scan may repeat entries
	}, func() (int64, error) { return stored, refused })
}

func TestShortScanIsRepeated(t *testing.T) {
	want := map[string]string{"a": "1", "b": "2"}
	for short := range maxReads {
		if got, err := scans(short, 2, nil); err != nil || !maps.Equal(got, want) {
			t.Errorf("after %d short scans: %v, %v", short, got, err)
		}
	}
	if got, err := scans(maxReads, 2, nil); err == nil || !strings.Contains(err.Error(), "1 of 2 entries") {
		t.Errorf("only short scans: %v, %v", got, err)
	}
	if _, err := scans(0, 2, state.ErrFenced); !errors.Is(err, state.ErrFenced) {
		t.Errorf("fenced during the scan: %v", err)
	}
}

// Redis fails over while a new holder reads the state. The successor accepts the cursor, which means other entries
// there.
func TestFailoverDuringScanLosesNoEntry(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	d := deployment(s.URL(), 1, time.Hour)
	h, want := d.Start(t), map[string]string{}
	if err := h.Save(func(tx *state.Tx) {
		for i := range 10 * scanCount {
			want[fmt.Sprint(i)] = ""
			tx.Put(fmt.Sprint(i), nil)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.End(); err != nil {
		t.Fatal(err)
	}
	opened, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	l := opened.(*Log)
	parts := 0
	l.scan = func(ctx context.Context, cursor string) ([]any, string, error) {
		if parts++; parts == 5 {
			s.Primary.Kill()
			s.AwaitFailover()
			s.Primary.Restart() // as a replica: without one nothing is acknowledged
			s.Primary.Do("REPLICAOF", "127.0.0.1", s.Replica.Port())
		}
		return l.scanPart(ctx, cursor)
	}
	got := map[string]string{}
	if err := l.Each(func(key string, value []byte) error {
		got[key] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d entries of %d were read", len(got), len(want))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
