// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// stall is longer than a router waits for a member's response to a submission. That limit is
// creel.router.submit-timeout and the member's own deadline, 10 s. So the router times out while the submission is
// still in the member's socket buffer.
const stall = 12 * time.Second

// Both ResourceManagers are stopped for twice as long as AMs and nodes may be silent. After that time they attribute
// the silence to their own pause: every application and node continues.
func TestPausedResourceManagerExpiresNothing(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	const expiry = stall / 2
	ms := strconv.FormatInt(expiry.Milliseconds(), 10)
	f := found(t, server.URL(), "",
		"yarn.am.liveness-monitor.expiry-interval-ms="+ms, "yarn.nm.liveness-monitor.expiry-interval-ms="+ms)
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	ams := make([]*am, 6)
	for i := range ams {
		id := f.newID()
		f.submitSoon(id)
		ams[i] = f.am(client, id)
		if err := ams[i].register(); err != nil {
			t.Fatal(err)
		}
		ams[i].more(f, 1)
	}
	for _, m := range f.members {
		m.rm.Signal(syscall.SIGSTOP)
	}
	time.Sleep(stall)
	for _, m := range f.members {
		m.rm.Signal(syscall.SIGCONT)
	}
	time.Sleep(time.Second) // in which the unjust would have judged
	for _, m := range ams {
		if s := f.state(f.router, m.app); s != "RUNNING" {
			t.Errorf("%s is %q after the pause", m.app, s)
		}
	}
	for _, m := range ams {
		m.more(f, 1)
	}
	for _, m := range f.members {
		if n := f.nodes(m.rm); n != 2 {
			t.Errorf("%s has %d nodes after the pause, want 2", m.id, n)
		}
		m.rm.WaitLine(t, "this process was paused")
	}
}

// The router, the proxy, the store, and all three at once are stopped for longer than the timeouts. Those are three
// leases of a member, and twice an AM's timeout at the proxy. AMs continue to call meanwhile. Afterwards no member was
// marked lost, no AM was expired, and every application finishes.
func TestPausedRouterProxyOrStoreLosesNothing(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	const expiry = stall / 2
	f := foundWith(t, server.URL(), "",
		[]string{"yarn.am.liveness-monitor.expiry-interval-ms=" + strconv.FormatInt(expiry.Milliseconds(), 10)})
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	both := func(daemons ...*daemon) (stop, run func()) {
		send := func(s syscall.Signal) func() {
			return func() {
				for _, d := range daemons {
					d.Signal(s)
				}
			}
		}
		return send(syscall.SIGSTOP), send(syscall.SIGCONT)
	}
	stopRouter, runRouter := both(f.router)
	stopProxy, runProxy := both(f.proxy)
	for _, paused := range []struct {
		name      string
		stop, run func()
	}{
		{"router", stopRouter, runRouter},
		{"proxy", stopProxy, runProxy},
		{"store", server.Pause, server.Resume},
		{
			"all three", func() { stopRouter(); stopProxy(); server.Pause() },
			func() { server.Resume(); runProxy(); runRouter() },
		},
	} {
		if !t.Run(paused.name, func(t *testing.T) {
			f := *f
			f.t = t
			ams := make([]*am, 3)
			for i := range ams {
				id := f.newID()
				f.submitSoon(id)
				ams[i] = f.am(client, id)
				if err := ams[i].register(); err != nil {
					t.Fatal(err)
				}
				ams[i].more(&f, 2)
			}
			stops := make([]func(), len(ams))
			for i, m := range ams {
				stops[i] = m.keepCalling(&f)
			}
			paused.stop()
			time.Sleep(stall)
			paused.run()
			for end := time.Now().Add(2 * lease); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				for _, s := range f.view().Subclusters {
					if !strings.EqualFold(s.State, "active") {
						t.Errorf("%s became %s: %s", s.ID, s.State, s.Reason)
					}
				}
			}
			for i, m := range ams {
				if s := f.state(f.router, m.app); s != "RUNNING" {
					t.Errorf("%s is %q after the pause", m.app, s)
				}
				stops[i]()
				m.more(&f, 2)
				m.finish(&f)
			}
			for _, m := range ams {
				f.await(m.app+" has finished", func() bool { return f.state(f.router, m.app) == "FINISHED" })
			}
			f.submitSoon(f.newID())
			for _, d := range []*daemon{f.router, f.proxy} {
				for _, blame := range []string{"state=lost", "state=LOST", "the AM has been silent"} {
					if out := d.Output(); strings.Contains(out, blame) {
						t.Errorf("%s says %q", d.Name, blame)
					}
				}
			}
		}) {
			return
		}
	}
	f.router.WaitLine(t, "this process was paused")
	f.proxy.WaitLine(t, "this process was paused")
}
