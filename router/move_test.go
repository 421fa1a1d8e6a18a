// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
)

// A move that is abandoned after its home has changed goes back only once the next home has promised that it will not
// run the application: it may have taken it, with a lost answer.
func TestCancelledMoveAsksNextHomeFirst(t *testing.T) {
	silent := &creel.Error{Kind: creel.ErrUnavailable, What: "sc-2 does not answer"}
	for _, c := range []struct {
		name     string
		standing router.Standing
		err      error
		end      router.MoveEnd
		home     creel.SubclusterID
		told     []string
	}{
		{"it is silent", 0, silent, router.MoveLater, "sc-2", nil},
		{"it has taken it", router.Running, nil, router.MoveDone, "sc-2", []string{"arrived", "drop at sc-1"}},
		{"it promises", router.Disowned, nil, router.MoveStays, "sc-1", []string{"release at sc-1"}},
		{"it cannot promise", router.Absent, nil, router.MoveLater, "sc-2", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &homes{
				at:     map[creel.ApplicationID]creel.SubclusterID{app: "sc-2"},
				number: map[creel.ApplicationID]int64{app: 3},
			}
			var told []string
			tell := func(what string) func(context.Context, creel.SubclusterID, creel.ApplicationID, int64) error {
				return func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, claim int64) error {
					if claim <= 3 {
						t.Errorf("%s under claim %d, which is older than the one that changed the home", what, claim)
					}
					told = append(told, what+" at "+string(at))
					return nil
				}
			}
			m := router.Mover[string]{
				Homes: h,
				Disown: func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, _ int64) (router.Standing, error) {
					if at != "sc-2" {
						t.Errorf("%s is asked", at)
					}
					return c.standing, c.err
				},
				Hold: func(context.Context, creel.SubclusterID, creel.ApplicationID, int64, string) (string, error) {
					return "the submission", nil
				},
				Release: tell("release"),
				Drop:    tell("drop"),
				Arrived: func(context.Context, router.HomeMove, int64) error { told = append(told, "arrived"); return nil },
				Now:     time.Now,
			}
			end, why := m.Carry(t.Context(), router.HomeMove{
				Application: app, From: "sc-1", To: "sc-2", Why: "sc-1 is drained", GiveUp: "it was undone",
			})
			if end != c.end || h.at[app] != c.home || !slices.Equal(told, c.told) {
				t.Errorf("the move %v (%s), its home is %s, told %q; want %v, %s, %q", end, why, h.at[app], told, c.end, c.home, c.told)
			}
		})
	}
}

// A change of home with a lost answer may have happened. The mover then reads the home and serves it, and the old
// home drops the application only when the new one has it.
func TestMoveContinuesAfterLostStoreAnswer(t *testing.T) {
	h := &homes{
		at:     map[creel.ApplicationID]creel.SubclusterID{app: "sc-1"},
		number: map[creel.ApplicationID]int64{app: 1},
	}
	var told []string
	tell := func(what string) func(context.Context, creel.SubclusterID, creel.ApplicationID, int64) error {
		return func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, _ int64) error {
			told = append(told, what+" at "+string(at))
			return nil
		}
	}
	first := true
	m := router.Mover[string]{
		Homes: h,
		Disown: func(context.Context, creel.SubclusterID, creel.ApplicationID, int64) (router.Standing, error) {
			return router.Disowned, nil
		},
		Hold: func(context.Context, creel.SubclusterID, creel.ApplicationID, int64, string) (string, error) {
			h.lost, first = first, false
			return "the submission", nil
		},
		Submit: func(_ context.Context, to creel.SubclusterID, _ creel.ApplicationID, held string, _ int64) (router.Verdict, error) {
			told = append(told, held+" to "+string(to))
			return router.Accepted, nil
		},
		Release: tell("release"),
		Drop:    tell("drop"),
		Arrived: func(context.Context, router.HomeMove, int64) error { told = append(told, "arrived"); return nil },
		Now:     time.Now,
	}
	move := router.HomeMove{Application: app, From: "sc-1", To: "sc-2", Why: "sc-1 is drained"}
	if end, why := m.Carry(t.Context(), move); end != router.MoveLater || h.at[app] != "sc-2" || len(told) > 0 {
		t.Fatalf("the move %v (%s), its home is %s, told %q; want it to go on, nobody told", end, why, h.at[app], told)
	}
	end, why := m.Carry(t.Context(), move)
	if want := []string{"the submission to sc-2", "arrived", "drop at sc-1"}; end != router.MoveDone || !slices.Equal(told, want) {
		t.Fatalf("the move %v (%s), told %q; want it done, %q", end, why, told, want)
	}
}
