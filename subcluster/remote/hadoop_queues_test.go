// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

// A queue's limit is written in the unit of its capacity, never more than requested, and never below its guarantee,
// which Hadoop refuses.
func TestMaximaKeepTheQueuesUnit(t *testing.T) {
	above := creel.NewResource(16384, 64)
	for _, c := range []struct {
		capacity string
		to       creel.Resource
		want     string
	}{
		{"30", creel.NewResource(8192, 64), "50"},
		{"30", creel.NewResource(8191, 64), "49.993"}, // rounded down
		{"30", creel.NewResource(8192, 16), "30"},     // its cores allow 25 %
		{"30", creel.NewResource(0, 0), "30"},
		{"0", creel.NewResource(0, 0), "0"},
		{"2w", creel.NewResource(4096, 64), "25"},
		{"30", creel.NewResource(99999, 999), "100"},
		{"[memory=1024,vcores=1]", creel.NewResource(2048, 1<<40), "[memory=2048,vcores=64,yarn.io/gpu=4]"},
		{"[memory=1024,vcores=1]", creel.NewResource(1<<40, 8), "[memory=16384,vcores=8,yarn.io/gpu=4]"}, // the parent's
		{"[memory=1024,vcores=2]", creel.NewResource(512, 4), "[memory=1024,vcores=4,yarn.io/gpu=4]"},
		{"[memory=1Gi, vcores=2]", creel.NewResource(0, 0), "[memory=1024,vcores=2,yarn.io/gpu=4]"},
		{"[memory=0,vcores=0]", creel.NewResource(0, 0), "[memory=1,vcores=0,yarn.io/gpu=4]"}, // no memory is no maximum
	} {
		h := &HadoopQueues{
			conf:   map[string]string{"yarn.scheduler.capacity.root.a.capacity": c.capacity},
			maxima: map[subcluster.QueueOn]creel.Resource{{Queue: "root.a"}: above.With("yarn.io/gpu", 4)},
		}
		if got, _ := h.text("root.a", c.to, above); got != c.want {
			t.Errorf("%s of %s by a capacity of %s is %q, want %q", c.to, above, c.capacity, got, c.want)
		}
	}
}

// A cluster that has lost nodes counts with the size that it had, until they do not come
// back within Linger.
func TestShrunkenClusterCountsFormerSize(t *testing.T) {
	h := &HadoopQueues{Linger: time.Minute}
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		mb    int64
		want  float64
	}{
		{0, 1000, 1}, {time.Second, 250, 4}, {30 * time.Second, 500, 2}, {61 * time.Second, 500, 1}, {62 * time.Second, 800, 1},
	} {
		if factor := h.grow(now.Add(c.after), "", creel.NewResource(c.mb, 1)); factor != c.want {
			t.Errorf("after %s with %d MB it counts %v times, want %v", c.after, c.mb, factor, c.want)
		}
	}
}

// A part of a queue is counted from the effective limit of the queue above it: its guarantee, where its part is less.
func TestShareIsOfParentsEffectiveLimit(t *testing.T) {
	var order SchedulerConfChange
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for _, c := range []struct{ above, capacity, want string }{
		{"50", "0", "50 10"},
		{"10", "0", "20 25"},
		{"[memory=50000,vcores=50]", "[memory=0,vcores=0]", "[memory=50000,vcores=50] [memory=5000,vcores=5]"},
		{"[memory=50000,vcores=50]", "0", "[memory=50000,vcores=50] 10"},
	} {
		h := &HadoopQueues{
			Web: NewWebPort(subcluster.Addresses{Web: server.Listener.Addr().String()}, login.Login{}, nil),
			conf: map[string]string{
				"yarn.scheduler.capacity.root.a.capacity":   c.above,
				"yarn.scheduler.capacity.root.a.b.capacity": c.capacity,
			},
			maxima: map[subcluster.QueueOn]creel.Resource{{Queue: "root"}: creel.NewResource(100_000, 100)},
		}
		unclear, err := h.Limit(t.Context(), map[creel.QueuePath]creel.Resource{
			"root.a": creel.NewResource(20_000, 20), "root.a.b": creel.NewResource(5_000, 5),
		})
		if err != nil || unclear || len(order.Update) != 2 {
			t.Fatalf("%+v, %v, %v", order, unclear, err)
		}
		if got := order.Update[0].Params.Entry[0].Value + " " + order.Update[1].Params.Entry[0].Value; got != c.want {
			t.Errorf("below a guarantee of %s: %s, want %s", c.above, got, c.want)
		}
	}
}

// The configuration is that of the active ResourceManager: after a failover it is read at once, and a maximum that
// only the former one had is set again.
func TestAFailoverHasTheConfigurationReadAgain(t *testing.T) {
	var hosts [2]*httptest.Server
	var active, orders atomic.Int32
	for i, maximum := range []string{"50", "100"} {
		hosts[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case active.Load() != int32(i):
				w.Header().Set("Location", hosts[1-i].URL+r.URL.Path)
				w.WriteHeader(http.StatusTemporaryRedirect)
			case r.Method == http.MethodPut:
				orders.Add(1)
			case r.URL.Path == SchedulerConfPath:
				fmt.Fprintf(w, `{"property":[{"name":"yarn.scheduler.capacity.root.a.capacity","value":"10"},
					{"name":"yarn.scheduler.capacity.root.a.maximum-capacity","value":%q}]}`, maximum)
			default:
				io.WriteString(w, `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root"}}}`)
			}
		}))
		defer hosts[i].Close()
	}
	h := &HadoopQueues{Web: NewWebPort(subcluster.Addresses{Web: strings.TrimPrefix(hosts[0].URL, "http://") + "," +
		strings.TrimPrefix(hosts[1].URL, "http://")}, login.Login{}, nil)}
	for i := range hosts {
		active.Store(int32(i))
		if _, _, err := h.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.maxima[subcluster.QueueOn{Queue: "root"}] = creel.NewResource(1000, 10)
		if _, err := h.Limit(t.Context(), map[creel.QueuePath]creel.Resource{"root.a": creel.NewResource(500, 5)}); err != nil {
			t.Fatal(err)
		}
		if n := orders.Load(); n != int32(i) {
			t.Errorf("%d maxima were set at the active one of configuration %d, want %d", n, i, i)
		}
	}
}
