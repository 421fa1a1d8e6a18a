// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// A process that ends explains at most the grants on their way that its AM asks for. Without faults each other grant
// must arrive.
func TestUnreceivedGrantsAreCountedByCause(t *testing.T) {
	const granted = 5
	for name, c := range map[string]struct {
		asks   int
		does   func(w *World, m *am, ids []creel.ContainerID)
		causes map[string]int64
		okay   bool
	}{
		"on its way": {granted, func(*World, *am, []creel.ContainerID) {}, map[string]int64{causeNone: granted}, false},
		"AM ends": {granted, func(_ *World, m *am, _ []creel.ContainerID) { m.die() },
			map[string]int64{causeAM: granted}, true},
		"AM with fewer asks ends": {granted - 1, func(_ *World, m *am, _ []creel.ContainerID) { m.die() },
			map[string]int64{causeAM: granted - 1, causeNone: 1}, false},
		"AM ends, then its proxy": {granted - 1, func(w *World, m *am, _ []creel.ContainerID) {
			m.die()
			w.crash(m.proxy().host)
		}, map[string]int64{causeAM: granted - 1, causeNone: 1}, false},
		"proxy ends": {granted, func(w *World, m *am, _ []creel.ContainerID) { w.crash(m.proxy().host) },
			map[string]int64{causeProxy: granted}, true},
		"ResourceManager ends": {granted, func(w *World, m *am, _ []creel.ContainerID) { w.clusters[0].down() },
			map[string]int64{causeRM: granted}, true},
		"one arrives nevertheless": {granted, func(w *World, m *am, ids []creel.ContainerID) {
			w.crash(m.proxy().host)
			w.audit.arrives(ids[0])
		}, map[string]int64{causeProxy: granted - 1}, true},
		"proxy releases one": {granted, func(w *World, m *am, ids []creel.ContainerID) {
			for _, id := range ids[1:] {
				w.audit.arrives(id)
			}
			w.audit.proxyReleases(&pb.AllocateRequestProto{Release: []*pb.ContainerIdProto{pb.FromContainerID(ids[0])}})
		}, map[string]int64{causeSurplus: 1}, false},
		"all arrive": {granted, func(w *World, m *am, ids []creel.ContainerID) {
			for _, id := range ids {
				w.audit.arrives(id)
			}
		}, map[string]int64{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(t)
			w.cfg.Split = ByHeadroom
			of := w.clusters[0]
			app := creel.ApplicationID{ClusterTimestamp: of.start.UnixMilli(), ID: 1}
			attempt := creel.AttemptID{Application: app, Attempt: 1}
			m := newAM(of.nodes[0], creel.NewContainerID(attempt, epochStep, 1), 0, nil)
			w.audit.apps[app] = &appRecord{am: m}
			m.asked[1] = make([]time.Time, c.asks)
			var ids []creel.ContainerID
			answer := &rm.Answer{}
			for k := range int64(granted) {
				ids = append(ids, creel.NewContainerID(attempt, epochStep, 2+k))
				answer.Granted = append(answer.Granted, rm.Grant{ID: ids[k]})
			}
			w.audit.granted += granted
			w.audit.leaves(of, answer)
			c.does(w, m, ids)
			if got := w.audit.unreceived(); !reflect.DeepEqual(got, c.causes) {
				t.Errorf("not received: %v, want %v", got, c.causes)
			}
			w.audit.surplus()
			if broken := breached(w, fmt.Sprintf("of %d granted containers", granted)); broken == c.okay {
				t.Errorf("the auditor reports %q", w.audit.breaches)
			}
		})
	}
}
