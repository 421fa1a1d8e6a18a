// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// Two routers see the same changes of members; each is recorded once, and none of a frozen view.
func TestMembersEventsOfTwoRouters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.NewState("test", nil), time.Now)
		view := func(freeze bool, members ...subcluster.Status) *subcluster.View {
			v := subcluster.NewView(time.Now(), members, nil)
			if freeze {
				v.Freeze = &subcluster.Freeze{Reason: "all members are silent"}
			}
			return v
		}
		member := func(epoch int64, state subcluster.State, age time.Duration) subcluster.Status {
			return subcluster.Status{
				Member: subcluster.Member{ID: "a", Epoch: epoch}, State: state, Age: age, Reason: "as reported",
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var routers []*memberEvents
		for range 2 {
			r := events.NewRecorder(store, slog.New(slog.DiscardHandler))
			go func() { _ = r.Run(ctx) }()
			routers = append(routers, &memberEvents{recorder: r})
		}
		for _, v := range []*subcluster.View{
			nil, view(false), view(false, member(1, subcluster.StateActive, time.Second)),
			view(true, member(1, subcluster.StateLost, time.Minute)),
			view(false, member(1, subcluster.StateLost, time.Minute)),
			view(false, member(2, subcluster.StateActive, 0)),
		} {
			for _, r := range routers {
				r.compare(ctx, v)
			}
			synctest.Wait()
		}
		list, err := store.Events(ctx, "", 10)
		var got []string
		for _, e := range list {
			got = append(got, fmt.Sprintf("%s %s>%s", e.Subject, e.Before, e.After))
		}
		if want := "[a >joined a active>lost a lost>joined]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, want %s: %v", got, want, err)
		}
	})
}
