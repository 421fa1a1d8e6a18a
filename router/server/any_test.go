// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// A call that any member can answer skips a member whose release lacks it, or where it is disabled. That is the
// answer if all are so; a silent member, however, may have it.
func TestAnySkipsMembersWithoutCall(t *testing.T) {
	members := make([]subcluster.Status, 3)
	for i, id := range []creel.SubclusterID{"sc-a", "sc-b", "sc-c"} {
		members[i] = subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive}
	}
	view := subcluster.NewView(time.Now(), members, nil)
	pool := remote.NewPool(remote.Config{User: "creel"})
	t.Cleanup(func() { pool.Close() })
	s := New(Config{View: func() *subcluster.View { return view }, Pool: pool})
	lacks := &creel.Error{Kind: remote.ErrNotInRelease}
	for name, c := range map[string]struct {
		answers map[creel.SubclusterID]error
		want    error
	}{
		"one has it": {map[creel.SubclusterID]error{"sc-a": lacks, "sc-b": lacks}, nil},
		"two are without reservations": {map[creel.SubclusterID]error{
			"sc-a": OfNoPlan(&hrpc.RemoteError{Message: "Reservation is not enabled. Please enable & try again"}),
			"sc-b": OfNoPlan(&remote.StatusError{Code: 503, Body: []byte("Unable to create new reservation from RM web service")}),
		}, nil},
		"nobody has it": {map[creel.SubclusterID]error{"sc-a": lacks, "sc-b": lacks, "sc-c": lacks}, remote.ErrNotInRelease},
		"one is silent": {map[creel.SubclusterID]error{"sc-a": lacks, "sc-b": lacks,
			"sc-c": &remote.Unavailable{Err: errors.New("silent")}}, creel.ErrUnavailable},
	} {
		for range 10 { // the order is random
			_, err := Any(t.Context(), s, func(_ context.Context, m *remote.Member) (int, error) { return 0, c.answers[m.ID] })
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
