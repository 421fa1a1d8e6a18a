// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// A block that grew large while the disk was slow is not reused. The block that was in reserve is being filled by
// then. It must not be handed out a second time, or later commits would overwrite a block on its way to the disk.
func TestALargeBlockLeavesNoneInReserve(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The disk takes a block on the test's command.
	entered, leave := make(chan struct{}), make(chan struct{})
	j.sync = func(*os.File) error {
		entered <- struct{}{}
		<-leave
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	want := map[string][]byte{}
	put := func(key string, size int) {
		var tx state.Tx
		want[key] = bytes.Repeat([]byte(key[len(key)-1:]), size)
		tx.Put(key, want[key])
		j.Commit(&tx, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	// Each round something is on its way to the disk while more is committed.
	put("first", 1000)
	onItsWay := func() {
		select {
		case <-entered:
		case err := <-ended:
			t.Fatalf("the journal ended: %v", err)
		}
	}
	for round, size := range []int{1000, 9 << 20, 20, 30, 40, 50} {
		onItsWay()
		put(fmt.Sprint("during-", round), size)
		leave <- struct{}{}
	}
	onItsWay()
	leave <- struct{}{}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	found := 0
	if err := again.Each(func(key string, value []byte) error {
		found++
		if !bytes.Equal(value, want[key]) {
			t.Errorf("%s has %d bytes, %.20q...; %d were committed", key, len(value), value, len(want[key]))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if found != len(want) {
		t.Errorf("%d entries were committed, %d are there", len(want), found)
	}
}
