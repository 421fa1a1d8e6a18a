// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// life is one life of a ResourceManager with a journal.
type life struct {
	*Server
	t     *testing.T
	hosts *Hosts
	end   func()
}

func live(t *testing.T, dir string, hosts *Hosts) *life {
	t.Helper()
	s, err := New(Config{
		ClusterID: "test", Machine: rm.Defaults(), Dir: dir, AdminACL: queues.ACL{Users: []string{"root"}},
		Groups: groups.New(func(user string) []string { return []string{user} }, time.Minute),
		Rack:   func(string) string { return "/default-rack" },
		Hosts:  func() (Hosts, error) { return *hosts, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	l := &life{Server: s, t: t, hosts: hosts}
	l.end = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.end = func() {}
	}
	t.Cleanup(func() { l.end() })
	return l
}

// node registers a node of a host and returns its state, "refused" if it must stop.
func (l *life) node(host string) string {
	l.t.Helper()
	id := creel.NodeID{Host: host, Port: 1}
	op, err := l.RegisterNode(l.t.Context(), Caller{User: "yarn"}, &rm.RegisterNode{
		ID: id, HTTPPort: 2, Resource: creel.NewResource(8192, 8),
	})
	if errors.Is(err, creel.ErrNotPermitted) {
		return "refused"
	}
	if err == nil {
		var r rm.NodeRegistration
		if r, err = Do(l.t.Context(), l.Server, Caller{User: "yarn"}, op); err == nil && r.Action == rm.NodeStop {
			return "refused"
		}
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return l.state(host)
}

func (l *life) state(host string) string {
	l.t.Helper()
	h, err := l.Drains.State(l.t.Context(), host)
	if err != nil || len(h.Nodes) != 1 {
		return fmt.Sprint(len(h.Nodes), " nodes ", err)
	}
	return h.Nodes[0].State.String()
}

func (l *life) drain(host string, atOnce bool) error {
	return l.Drains.Drain(l.t.Context(), Caller{User: "root"}, HostDrain{
		Host: host, Reason: "disks", AtOnce: atOnce, Timeout: time.Hour,
	})
}

// Drains outlive the ResourceManager: a node that drains registers again and goes on draining, one that was taken out
// at once stays out, and an undone drain is gone.
func TestDrainedHostsSurviveRestart(t *testing.T) {
	dir, none := t.TempDir(), &Hosts{}
	l := live(t, dir, none)
	for _, host := range []string{"slow", "fast", "back", "other"} {
		if state := l.node(host); state != "RUNNING" {
			t.Fatalf("%s is %s", host, state)
		}
	}
	for host, atOnce := range map[string]bool{"slow": false, "fast": true, "back": false} {
		if err := l.drain(host, atOnce); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Drains.Undrain(t.Context(), Caller{User: "root"}, "back"); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"slow": "DECOMMISSIONING", "fast": "DECOMMISSIONED", "back": "RUNNING", "other": "RUNNING",
	} {
		if state := l.state(host); state != want {
			t.Errorf("%s is %s, want %s", host, state, want)
		}
	}
	l.end()
	l = live(t, dir, none)
	for host, want := range map[string]string{
		"slow": "DECOMMISSIONING", "fast": "refused", "back": "RUNNING", "other": "RUNNING",
	} {
		if state := l.node(host); state != want {
			t.Errorf("after a restart %s is %s, want %s", host, state, want)
		}
	}
	list, err := l.Drains.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Host != "fast" || list[1].Host != "slow" ||
		list[1].Drain.By != "root" || list[1].Drain.Reason != "disks" || list[1].Drain.Since == 0 {
		t.Fatalf("the drains are %+v, %v", list, err)
	}
	if left := time.Until(list[1].Nodes[0].LeaveBy); left <= 0 || left > time.Hour {
		t.Errorf("it leaves in %v", left)
	}
	if err := l.RefreshNodes(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	if state := l.state("slow"); state != "DECOMMISSIONING" {
		t.Errorf("a refresh of the files made it %s", state)
	}
	if err := l.Drains.Undrain(t.Context(), Caller{User: "root"}, "fast"); err != nil {
		t.Fatal(err)
	}
	if state := l.node("fast"); state != "RUNNING" {
		t.Errorf("taken in again it is %s", state)
	}
}

// Drains by other users and of unknown hosts are refused, and so is the undrain of a host in the exclude file.
func TestDrainsThatCannotBeAreRefused(t *testing.T) {
	files := &Hosts{}
	l := live(t, t.TempDir(), files)
	l.node("a")
	root, eve := Caller{User: "root"}, Caller{User: "eve"}
	for name, c := range map[string]struct {
		err  error
		kind error
	}{
		"another user's drain":     {l.Drains.Drain(t.Context(), eve, HostDrain{Host: "a"}), creel.ErrNotPermitted},
		"another user's undrain":   {l.Drains.Undrain(t.Context(), eve, "a"), creel.ErrNotPermitted},
		"an unknown host":          {l.Drains.Drain(t.Context(), root, HostDrain{Host: "nosuch"}), creel.ErrNodeNotFound},
		"no host":                  {l.Drains.Drain(t.Context(), root, HostDrain{}), creel.ErrInvalidRequest},
		"a timeout below zero":     {l.Drains.Drain(t.Context(), root, HostDrain{Host: "a", Timeout: -1}), creel.ErrInvalidRequest},
		"a host that is not taken": {l.Drains.Undrain(t.Context(), root, "a"), creel.ErrNodeNotFound},
	} {
		if !errors.Is(c.err, c.kind) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if state := l.state("a"); state != "RUNNING" {
		t.Errorf("a is %s", state)
	}
	files.Exclude = []string{"a"}
	if err := l.RefreshNodes(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Drains.Undrain(t.Context(), root, "a"); !errors.Is(err, creel.ErrConflict) {
		t.Errorf("a host of the exclude file: %v", err)
	}
}

// The time that a drain has left is never above its timeout, whatever the clock did since the order.
func TestTimeLeftOfDrainIsBounded(t *testing.T) {
	began := time.UnixMilli(1_000_000)
	d := HostDrain{Since: began.UnixMilli(), Timeout: time.Minute}
	for after, want := range map[time.Duration]time.Duration{
		0: time.Minute, 20 * time.Second: 40 * time.Second, time.Hour: time.Millisecond, -time.Hour: time.Minute,
	} {
		if o := d.order(creel.NodeID{}, began.Add(after)); !o.Graceful || o.Timeout != want {
			t.Errorf("%v after the order it has %v left, want %v", after, o.Timeout, want)
		}
	}
	if o := (HostDrain{AtOnce: true}).order(creel.NodeID{}, began); o.Graceful {
		t.Error("at once is graceful")
	}
}
