// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// managed returns a submission whose AM needs a container of a size.
func managed(id creel.ApplicationID, mb int64) *pb.ApplicationSubmissionContextProto {
	c := routertest.Context(id, "story")
	c.UnmanagedAm = new(false)
	c.Resource = pb.FromResource(creel.NewResource(mb, 1))
	return c
}

func drain(t *testing.T, r *routertest.Router, method, member, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method,
		"http://"+r.Web+"/api/v1/subclusters/"+member+"/drain?user.name=root", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("%s the drain of %s: %s", method, member, res.Status)
	}
}

// Thirty applications wait in a full member. It is drained by moving, and the router that moves them dies when the
// first has changed its home and its new home does not have it yet. Another router continues: each application
// arrives at the other member once and gets its container there. A client that polls sees every one of them all the
// time. A kill in the middle takes effect. Applications with a container stay where they are.
func TestDrainMovesSurviveRouterDeath(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 2})
	full, free, ctx := f.Members[0], f.Members[1], t.Context()
	client := f.As(f.Routers[1], "alice")
	drain(t, f.Routers[0], "PUT", "sc-b", `{"mode":"stop"}`)
	f.Until("the other member is drained", func() bool {
		for _, r := range f.Routers {
			if len(r.Server.View().Active()) != 1 {
				return false
			}
		}
		return true
	})
	submit := func(mb int64) creel.ApplicationID {
		id := full.NewApplicationID()
		_, err := client.SubmitApplication(ctx,
			&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: managed(id, mb)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	// Two heartbeats of each node follow: the first may have been read before the submission.
	offered := func() {
		sent := func() (out []time.Time) {
			err := full.D.Query(ctx, func(m *rm.Machine, _ time.Time) {
				m.Nodes(func(n rm.NodeView) bool { out = append(out, n.LastHeartbeat); return true })
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		for range 2 {
			before := sent()
			f.Until("each node has sent a heartbeat", func() bool {
				for i, at := range sent() {
					if !at.After(before[i]) {
						return false
					}
				}
				return true
			})
		}
	}
	var running, waiting []creel.ApplicationID
	for _, mb := range []int64{8192, 1024, 128} { // until no container of that size fits
		for range 200 {
			id := submit(mb)
			offered() // a full node grants nothing
			if v, _ := full.App(ctx, id); v.Containers == 0 {
				_, err := client.ForceKillApplication(ctx,
					&pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)})
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			running = append(running, id)
		}
	}
	if len(running) == 0 {
		t.Fatal("nothing runs in the full member")
	}
	for range 30 {
		waiting = append(waiting, submit(128))
	}
	started := map[creel.ApplicationID]time.Time{}
	for _, id := range waiting {
		v, _ := full.App(ctx, id)
		if v.Containers != 0 || v.State != creel.AppAccepted {
			t.Fatalf("%s does not wait: %s with %d containers", id, v.State, v.Containers)
		}
		started[id] = v.Submitted
	}

	// The router that moves first stops behind its first change of a home.
	reached := []<-chan struct{}{
		f.Routers[0].HoldAt(routertest.AfterMove), f.Routers[1].HoldAt(routertest.AfterMove),
	}
	var through atomic.Pointer[routertest.Router]
	through.Store(f.Routers[1])
	drain(t, f.Routers[1], "DELETE", "sc-b", "")
	drain(t, f.Routers[1], "PUT", "sc-a", `{"mode":"move","reason":"new disks"}`)

	// A client polls all the time.
	stop := make(chan struct{})
	var polls atomic.Int64
	var lost atomic.Pointer[string]
	var polling sync.WaitGroup
	polling.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			id := waiting[i%len(waiting)]
			by := through.Load()
			r, err := f.As(by, "alice").GetApplicationReport(ctx,
				&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)})
			if err != nil && through.Load() != by {
				continue // the client tries the next of its routers
			}
			if err != nil {
				text := fmt.Sprintf("%s: %v", id, err)
				lost.CompareAndSwap(nil, &text)
			} else if at := r.GetApplicationReport().GetStartTime(); at != started[id].UnixMilli() {
				text := fmt.Sprintf("%s was submitted at %d and is said to have been at %d", id, started[id].UnixMilli(), at)
				lost.CompareAndSwap(nil, &text)
			}
			polls.Add(1)
		}
	})

	dead, lives := f.Routers[0], f.Routers[1]
	select {
	case <-reached[0]:
	case <-reached[1]:
		dead, lives = lives, dead
	case <-ctx.Done():
		t.Fatal("nothing is moved")
	}
	through.Store(lives)
	lives.HoldAt(-1)
	client = f.As(lives, "alice")
	var between creel.ApplicationID // its home has changed, and its new home does not have it
	for _, id := range waiting {
		home, err := f.Store.Home(ctx, id)
		if _, there := free.App(ctx, id); err == nil && home == free.ID && !there {
			between = id
		}
	}
	if between.IsZero() {
		t.Fatal("no application is between its homes")
	}
	if v, _ := full.App(ctx, between); !strings.Contains(v.Waits, "sc-b, because sc-a is drained by root (new disks)") {
		t.Errorf("its old home says %q", v.Waits)
	}
	killed, err := client.ForceKillApplication(ctx,
		&pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(between)})
	if err != nil || killed.GetIsKillCompleted() {
		t.Errorf("a kill in the middle is answered %v, %v", killed, err)
	}
	dead.Kill()
	f.Until("the killed one has ended at its new home", func() bool {
		v, ok := free.App(ctx, between)
		return ok && v.State == creel.AppKilled
	})
	f.Until("each has its container", func() bool {
		for _, id := range waiting {
			v, _ := free.App(ctx, id)
			if _, left := full.App(ctx, id); left || v.Containers != 1 && v.State != creel.AppKilled {
				return false
			}
		}
		return true
	})
	close(stop)
	polling.Wait()
	if text := lost.Load(); text != nil {
		t.Errorf("of %d polls: %s", polls.Load(), *text)
	}
	for _, id := range waiting {
		if homes := f.Homes(id); len(homes) != 1 || homes[0] != free.ID {
			t.Errorf("%s is in %v", id, homes)
		}
		if v, _ := free.App(ctx, id); !v.Submitted.Equal(started[id].Truncate(time.Millisecond)) {
			t.Errorf("%s was submitted at %v, and now at %v", id, started[id], v.Submitted)
		}
	}
	for _, id := range running {
		if homes := f.Homes(id); len(homes) != 1 || homes[0] != full.ID {
			t.Errorf("%s, which had a container, is in %v", id, homes)
		}
	}
	// Late requests of the moves are rejected.
	_, err = client.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: managed(waiting[0], 128)})
	if err != nil && !errors.Is(err, creel.ErrApplicationNotFound) {
		t.Errorf("a repeat of a submission is answered %v", err)
	}
	if homes := f.Homes(waiting[0]); len(homes) != 1 {
		t.Errorf("after a repeat of its submission %s is in %v", waiting[0], homes)
	}
}
