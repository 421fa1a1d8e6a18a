// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// escrowDoc lists the shares of federation-wide maxima.
type escrowDoc struct {
	Escrow []struct {
		Member string
		Cap    map[string]int
	}
}

func escrowOf(t testing.TB, web string) (doc escrowDoc) {
	t.Helper()
	if _, err := Call(t, http.MethodGet, web, "/api/v1/rebalancer", nil, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Three of creel's ResourceManagers and one of Hadoop's share a queue's federation-wide maximum. Load is in two of them
// and then elsewhere. Use reaches the allowed amount (the log reports the time needed). Neither use nor the caps exceed
// the maximum in any sample.
func TestAMaximumHoldsOverHadoopsResourceManagerToo(t *testing.T) {
	const maximum, each = 16384, 512
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"})
	conf := hadoop.Conf{"yarn.scheduler.capacity.maximum-am-resource-percent": "1"}
	for i := range 3 {
		f.Subclusters = append(f.Subclusters, f.StartSubcluster(t, i+1, conf))
	}
	theirs := hadoop.StartRM(t, hadoop.RM{Name: "hadoop-rm", Conf: changeable.With(hadoop.Conf{
		"yarn.am.liveness-monitor.expiry-interval-ms":         "900000",
		"yarn.scheduler.capacity.maximum-am-resource-percent": "1",
		// Its other calculator lets a queue go over by a container of unusual proportions.
		"yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
	})})
	far := &Subcluster{ID: "sc-hadoop", Addresses: theirs.Addresses}
	f.Subclusters = append(f.Subclusters, far)
	start(t, "agent", "agent", f.common(t, theirs.Addresses.Conf()), "--subcluster", far.ID)
	for _, s := range f.Subclusters {
		startSimulated(t, s, 16384)
	}
	f.StartRouter(t, 1, nil)
	f.Await(t, 4)
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 4)
	f.applyTree(t, fmt.Sprintf("queues:\n- {queue: root.other, maximum: {memory: %d}}\n", maximum))

	// A member has no maximum before it has read the tree, and containers granted until then continue to run. So
	// nothing is submitted before each member has requested its share.
	if process.Poll(t.Context().Done(), func() bool { return len(escrowOf(t, web).Escrow) == 4 }) != nil {
		t.Fatalf("not every member asks for its part\n%s", f.Creel(t, "rebalancer", "escrow", "--store", f.Store))
	}

	samples := 0
	// sample reads the use. Members whose use falls are read last, so that the sum is at most the use at one moment.
	sample := func(order []*Subcluster) (sum int, by map[string]int) {
		t.Helper()
		by = map[string]int{}
		for _, s := range order {
			by[s.ID] = queueUse(t, s, "other")
			sum += by[s.ID]
		}
		samples++
		if sum > maximum {
			t.Fatalf("sample %d: %d MB are in use, above %d: %v", samples, sum, maximum, by)
		}
		doc := escrowOf(t, web)
		caps := 0
		for _, e := range doc.Escrow {
			caps += e.Cap["memory-mb"]
		}
		if caps > maximum {
			t.Fatalf("sample %d: caps sum to %d MB, above %d: %+v", samples, caps, maximum, doc.Escrow)
		}
		return sum, by
	}
	apps := map[string][]string{}
	load := func(s *Subcluster, n int) {
		t.Helper()
		for range n {
			apps[s.ID] = append(apps[s.ID], submitSleep(t, s.Addresses.Web, "other", each))
		}
	}
	// comes samples until each member's use is the expected one, within 5 % of the maximum. The limit in force at
	// Hadoop's ResourceManager when its agent starts counts for creel.escrow.recovery, a minute: that can be all, if
	// its node came before the tree did.
	comes := func(order []*Subcluster, want map[string]int) {
		t.Helper()
		began := time.Now()
		for {
			_, by := sample(order)
			far := false
			for id, mb := range want {
				far = far || max(by[id]-mb, mb-by[id]) > maximum/20
			}
			took := time.Since(began)
			if !far {
				t.Logf("after %s: %v, in %d samples none above", took.Round(100*time.Millisecond), by, samples)
				return
			}
			if took > process.Guard {
				t.Fatalf("after %s it is %v, want %v\n%s", took, by, want, f.Creel(t, "rebalancer", "escrow", "--store", f.Store))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	one, two, three := f.Subclusters[0], f.Subclusters[1], f.Subclusters[2]
	order := []*Subcluster{one, two, three, far}
	comes(order, map[string]int{one.ID: 0, far.ID: 0})
	load(one, 12)
	comes(order, map[string]int{one.ID: 6144})
	load(far, 40)
	comes(order, map[string]int{one.ID: 6144, far.ID: maximum - 6144})

	// Half of the applications that run in Hadoop's cluster end, and all that wait there; another member wants the
	// share.
	for _, id := range append(apps[far.ID][20:], apps[far.ID][:10]...) {
		KillApp(t, far.Addresses.Web, id)
	}
	left := queueUse(t, far, "other")
	load(two, 30)
	comes([]*Subcluster{two, one, three, far},
		map[string]int{one.ID: 6144, far.ID: left, two.ID: maximum - 6144 - left})
}
