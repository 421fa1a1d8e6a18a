// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

// An agent publishes its ResourceManager's release: from the first registration on, and again when a restart brought
// another.
func TestAgentPublishesResourceManagerRelease(t *testing.T) {
	var info atomic.Value
	var away atomic.Bool
	set := func(state, release string) {
		info.Store(`{"clusterInfo":{"startedOn":1,"haState":"` + state + `","resourceManagerVersion":"` + release + `"}}`)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case away.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/ws/v1/cluster/metrics":
			w.Write([]byte(`{"clusterMetrics":{"activeNodes":3}}`))
		case r.URL.Path == "/ws/v1/cluster/info" && info.Load() != "":
			w.Write([]byte(info.Load().(string)))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	w := &WebMember{Web: NewWebPort(subcluster.Addresses{Web: s.Listener.Addr().String()}, login.Login{}, nil)}
	store := &versions{}
	agent := &Agent{Member: subcluster.Member{ID: "sc-1", Version: subcluster.HadoopVersion}, Store: store, Probe: w.Probe,
		Version: w.Version}
	is := &subcluster.Enrollment{Member: agent.Member}
	heartbeat := func() {
		t.Helper()
		if err := agent.heartbeat(t.Context(), is, 0); (err != nil) != away.Load() {
			t.Fatal(err)
		}
	}
	restart := func(state, release string) {
		away.Store(true)
		heartbeat()
		away.Store(false)
		set(state, release)
		heartbeat()
	}
	set("ACTIVE", "3.3.6")
	heartbeat()
	heartbeat()
	restart("ACTIVE", "3.3.6")  // of the same release
	restart("STANDBY", "3.4.0") // a standby's own word
	restart("ACTIVE", "3.4.2")  // upgraded
	set("ACTIVE", "3.4.3")      // so quickly that no probe failed
	w.asked = w.asked.Add(-queuesEvery)
	heartbeat()
	restart("ACTIVE", "../../x") // no release
	if want := []string{"hadoop-3.3.6", "hadoop-3.4.2", "hadoop-3.4.3", "hadoop"}; !slices.Equal(store.registered, want) {
		t.Errorf("it registered as %q, want %q", store.registered, want)
	}
	if store.heartbeats != 7 {
		t.Errorf("%d heartbeats", store.heartbeats)
	}
	// One that does not report it still counts as Hadoop, as with older agents.
	silent := &WebMember{Web: NewWebPort(subcluster.Addresses{Web: s.Listener.Addr().String()}, login.Login{}, nil)}
	info.Store("")
	if _, err := silent.Probe(t.Context()); err != nil || silent.Version() != subcluster.HadoopVersion {
		t.Errorf("%q, %v", silent.Version(), err)
	}
}

// A ResourceManager that returns its metrics, and whose scheduler's document hangs, serves: it is registered, and its
// lease does not run out.
func TestADocumentThatHangsCostsNoHeartbeat(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ws/v1/cluster/metrics":
			w.Write([]byte(`{"clusterMetrics":{"activeNodes":3}}`))
		case "/ws/v1/cluster/info":
			w.Write([]byte(`{"clusterInfo":{"resourceManagerVersion":"3.3.6"}}`))
		default:
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	w := &WebMember{Web: NewWebPort(subcluster.Addresses{Web: s.Listener.Addr().String()}, login.Login{}, nil)}
	store := &versions{}
	agent := &Agent{Member: subcluster.Member{ID: "sc-1"}, Store: store, Probe: w.Probe, Version: w.Version}
	is := &subcluster.Enrollment{Member: agent.Member}
	if err := agent.heartbeat(t.Context(), is, 0); err != nil || store.heartbeats != 1 {
		t.Errorf("%d heartbeats: %v", store.heartbeats, err)
	}
}

// versions is a store that records the versions a member registered.
type versions struct {
	registered []string
	heartbeats int
}

func (*versions) NextEpoch(ctx context.Context, _ creel.SubclusterID, _ int64, _ bool) (int64, error) {
	return 7, ctx.Err()
}

func (v *versions) Register(ctx context.Context, m subcluster.Member) error {
	v.registered = append(v.registered, m.Version)
	return ctx.Err()
}

func (v *versions) Heartbeat(ctx context.Context, _ subcluster.Heartbeat) error {
	v.heartbeats++
	return ctx.Err()
}

func (*versions) Deregister(context.Context, creel.SubclusterID, int64) error { return nil }
