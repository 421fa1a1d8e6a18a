// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// A ResourceManager of Hadoop's forgets an application that ended between two rounds of the tidying. A repeat runs
// nothing while that process lives, and runs again after a restart.
func TestForgottenAtHadoopHomeRunsOnce(t *testing.T) {
	for version, wantAsked := range map[string]int{"hadoop-3.4.2": 1, "creel 1.0": 0} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app := creel.ApplicationID{ClusterTimestamp: 1000, ID: 1}
				member := subcluster.Status{
					Member: subcluster.Member{ID: "sc-1", Version: version}, State: subcluster.StateActive,
				}
				member.Load.Metrics.ActiveNodes, member.Load.Metrics.TotalNodes = 1, 1
				view := subcluster.NewView(time.Now(), []subcluster.Status{member}, nil)
				start, asked, has, runs := int64(1000), 0, false, 0
				s := New(Config{
					Homes: memory.New(memory.NewState("test", nil), time.Now),
					View:  func() *subcluster.View { return view },
					Pool:  remote.NewPool(remote.Config{}),
					Members: func(*remote.Member) Member {
						return fakeMember{fences: version != "hadoop-3.4.2", has: &has, id: func() creel.ApplicationID {
							asked++
							return creel.ApplicationID{ClusterTimestamp: start, ID: int32(asked + 1)}
						}}
					},
				})
				s.Gave(app, 1, "sc-1")
				submit := func() error {
					return s.Submit(t.Context(), policies.Submission{Application: app},
						func(context.Context, *remote.Member, int64) error {
							if !has {
								has = true
								runs++
							}
							return nil
						}).Err
				}
				for range 3 {
					if err := submit(); err != nil || runs != 1 {
						t.Fatalf("%d runs, %v", runs, err)
					}
				}
				if asked != wantAsked {
					t.Errorf("its start was asked %d times within %v, want %d", asked, lifeFresh, wantAsked)
				}
				if wantAsked == 0 {
					return
				}
				has = false
				if err := submit(); !errors.Is(err, creel.ErrEnded) || runs != 1 {
					t.Errorf("%d runs, %v", runs, err)
				}
				start += 5
				if err := submit(); err != nil || runs != 2 {
					t.Errorf("after its restart: %d runs, %v", runs, err)
				}
			})
		})
	}
}

// fakeMember is a ResourceManager that has an application or not.
type fakeMember struct {
	fences bool
	has    *bool
	id     func() creel.ApplicationID
}

func (f fakeMember) Has(context.Context, creel.ApplicationID) (bool, error) { return *f.has, nil }

func (f fakeMember) NewID(context.Context) (creel.ApplicationID, error) { return f.id(), nil }

func (f fakeMember) Fences() bool { return f.fences }

func (f fakeMember) Disown(context.Context, creel.ApplicationID, int64) (router.Standing, error) {
	if *f.has {
		return router.Running, nil
	}
	return router.Absent, nil
}

func (f fakeMember) Placed(context.Context, policies.Submission) (creel.QueuePath, error) {
	return "", nil
}
