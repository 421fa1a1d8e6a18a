// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/epochs"
	"github.com/creelrm/creel/statestore/memory"
)

// refusingStore has no documents for anybody.
type refusingStore struct{ statestore.Store }

func (refusingStore) Documents(context.Context, string) (statestore.DocumentSet, error) {
	return statestore.DocumentSet{}, creel.ErrUnavailable
}

// Members without a configured first epoch, as nearly all are, get different ones, so that their container ids
// differ. They keep them over a restart, even if the store is unreachable or came back empty. A member configured
// with another member's epoch does not start.
func TestMembersHaveFirstEpochsOfTheirOwn(t *testing.T) {
	store := statestore.Store(memory.New(memory.NewState("test", nil), time.Now))
	dirs := map[creel.SubclusterID]string{}
	start := func(id creel.SubclusterID, defines ...string) (int64, error) {
		if dirs[id] == "" {
			dirs[id] = filepath.Join(t.TempDir(), "journal")
		}
		s, err := settings.Load(settings.Sources{ConfDir: t.TempDir(), Defines: append([]string{
			"creel.subcluster.id=" + string(id), "creel.rm.data=" + dirs[id],
		}, defines...)})
		if err != nil {
			t.Fatal(err)
		}
		conf, err := RMSettings(s, store)
		if err != nil {
			t.Fatal(err)
		}
		const any = "127.0.0.1:0"
		p := &conf.Ports
		p.Client, p.Scheduler, p.Tracker, p.Admin, conf.Web = any, any, any, any, any
		conf.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
		r, err := NewRM(conf)
		if err != nil {
			return 0, err
		}
		first, running := r.Server.FirstEpoch(), r.Start()
		for told := false; !told; time.Sleep(time.Millisecond) { // the epoch is written to a store that answers
			set, err := store.Documents(t.Context(), epochs.Class)
			d, _ := set.Find(epochs.Name)
			told = err != nil || strings.Contains(string(d.Data), fmt.Sprintf("%q:%d", id, first))
		}
		return first, running.Stop()
	}
	must := func(id creel.SubclusterID, defines ...string) int64 {
		first, err := start(id, defines...)
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	one, two := must("sc-1"), must("sc-2")
	if one == 0 || two == 0 || one == two {
		t.Fatalf("the first epochs are %d and %d", one, two)
	}
	if again := must("sc-1"); again != one {
		t.Errorf("after a restart sc-1 has %d, and had %d", again, one)
	}
	if named := must("sc-3", "yarn.resourcemanager.epoch=7000"); named != 7000 {
		t.Errorf("sc-3 names 7000, and has %d", named)
	}
	if _, err := start("sc-4", "yarn.resourcemanager.epoch=7000"); !errors.Is(err, creel.ErrConflict) {
		t.Errorf("sc-4 starts with the first epoch of sc-3: %v", err)
	}

	store = refusingStore{store}
	if again := must("sc-1"); again != one {
		t.Errorf("without the store sc-1 has %d, and had %d", again, one)
	}
	if _, err := start("sc-5"); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a new member starts without a store that gives it its first epoch: %v", err)
	}

	store = memory.New(memory.NewState("emptied", nil), time.Now)
	for id, had := range map[creel.SubclusterID]int64{"sc-1": one, "sc-2": two} {
		if again := must(id); again != had {
			t.Errorf("of a store that is empty %s has %d, and had %d", id, again, had)
		}
	}
	if fresh := must("sc-6"); fresh == one || fresh == two || fresh == 0 {
		t.Errorf("sc-6 has the first epoch %d, and sc-1 and sc-2 have %d and %d", fresh, one, two)
	}
}

// The agents of two Hadoop ResourceManagers without a configured epoch log the conflict and continue. When the first
// member is removed, the second gets the epoch.
func TestAgentsSayThatTwoMembersHaveOneEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		store := memory.New(memory.NewState("test", nil), time.Now)
		var all sync.WaitGroup
		keep := func(id creel.SubclusterID) *bytes.Buffer {
			var out bytes.Buffer
			all.Go(func() {
				if err := keepEpoch(ctx, store, id, 0, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			return &out
		}
		first, second := keep("hadoop-1"), keep("hadoop-2")
		time.Sleep(3*epochEvery + epochEvery/2) // no keeper claims at the moment of the removal
		if first.Len() > 0 || strings.Count(second.String(), "hadoop-2 and hadoop-1 have the same first epoch, 0") != 1 {
			t.Errorf("the first says %q, the second %q", first, second)
		}
		if err := epochs.Forget(ctx, store, "hadoop-1"); err != nil {
			t.Fatal(err)
		}
		stop()
		all.Wait()
		if _, err := epochs.Claim(t.Context(), store, "hadoop-2", 0); err != nil {
			t.Errorf("hadoop-1 is removed: %v", err)
		}
	})
}
