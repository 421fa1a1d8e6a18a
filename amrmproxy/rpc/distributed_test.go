// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// placed returns the numbers of an AM's containers that a proxy placed, and that its ResourceManager granted.
func (m *am) placed() (here, there int) {
	for c := range m.has {
		if c.Sequence() >= 1<<39 {
			here++
		} else {
			there++
		}
	}
	return here, there
}

// opportunistic returns the number of opportunistic containers of the AM's attempt that a member lists.
func (m *am) opportunistic(id creel.SubclusterID) (n int) {
	list, err := m.f.as(id, "ann").GetContainers(context.Background(), &pb.GetContainersRequestProto{
		ApplicationAttemptId: pb.FromAttemptID(creel.AttemptID{Application: m.app, Attempt: 1}),
	})
	if err != nil {
		return 0
	}
	for _, c := range list.GetContainers() {
		if c.GetExecutionType() == pb.ExecutionTypeProto_OPPORTUNISTIC {
			n++
		}
	}
	return n
}

// The proxy places opportunistic containers itself, and the ResourceManager grants the guaranteed ones. A second proxy
// continues with other ids, and so does the same proxy after a restart of the ResourceManager.
func TestProxyPlacesOpportunisticContainers(t *testing.T) {
	f := foundWith(t, true, byHeadroom, 3)
	p := f.proxy()
	m := f.submit("sc-a", p)
	m.register()
	m.ask(1, 2)
	m.ask(60, 5)
	m.heartbeatUntil("all are granted", func() bool { return m.want[1]+m.want[60] == 0 })
	if here, there := m.placed(); here != 5 || there != 2 {
		t.Errorf("the proxy placed %d containers, the ResourceManager %d", here, there)
	}
	if n := m.opportunistic("sc-a"); n != 5 {
		t.Errorf("the ResourceManager lists %d opportunistic containers", n)
	}

	p.stop()
	p = f.proxy()
	m.connect(p.address)
	m.ask(60, 3)
	m.heartbeatUntil("three more are granted", func() bool { return m.want[60] == 0 })
	if here, there := m.placed(); here != 8 || there != 2 {
		t.Errorf("the proxies placed %d containers, the ResourceManager %d", here, there)
	}
	if n := m.opportunistic("sc-a"); n != 8 {
		t.Errorf("the ResourceManager lists %d opportunistic containers", n)
	}
	m.finish()
	m.noRecords()
}
