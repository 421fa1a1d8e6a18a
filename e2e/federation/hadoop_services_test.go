// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Hadoop's federation keeps its Router, the AMRMProxies of its NodeManagers and its policy generator. Both
// ResourceManagers become creel's while jobs run. All share Hadoop's store in ZooKeeper, with creel's router at the end.
func TestHadoopsServicesUseCreelsResourceManagers(t *testing.T) {
	m := startHadoopFederation(t)
	first, second := m.Subclusters[0], m.Subclusters[1]
	for _, step := range []struct {
		name   string
		change func(t *testing.T)
		ms     int
	}{
		{"first_resourcemanager_is_creels", func(t *testing.T) { m.toCreel(t, first) }, 40000},
		{"second_resourcemanager_is_creels", func(t *testing.T) { m.toCreel(t, second) }, 40000},
		{"both_are_creels", func(*testing.T) {}, 1000},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			jobs := m.begin(t, step.ms)
			step.change(t)
			m.end(t, jobs, false)
		}) {
			t.FailNow()
		}
	}
	m.startCreelsRouter(t)
	const gpg = "yarn.federation.gpg."
	generator := hadoop.StartPolicyGenerator(t, m.shared.With(hadoop.Conf{
		gpg + "policy.generator.class":                      "org.apache.hadoop.yarn.server.globalpolicygenerator.policygenerator.LoadBasedGlobalPolicy",
		gpg + "policy.generator.interval-ms":                "2000",
		gpg + "policy.generator.load-based.pending.minimum": "1",
		gpg + "policy.generator.load-based.pending.maximum": "3",
		gpg + "policy.generator.load-based.edit.maximum":    "1",
		gpg + "subcluster.cleaner.interval-ms":              "1s",
		gpg + "subcluster.heartbeat.expiration-ms":          "5s",
	}))
	t.Run("weights_follow_the_load", func(t *testing.T) { m.weightsFollowTheLoad(t, generator.Process) })
	t.Run("silent_member_is_lost", func(t *testing.T) { m.silentMemberIsLost(t, generator.Process, second) })
}

// weightsFollowTheLoad fills the first member until applications wait there. The generator reads that, and the queues
// that have children, from creel's ResourceManagers. It gives the member no weight at these queues. creel's router then
// chooses the other one alone.
func (m *migration) weightsFollowTheLoad(t *testing.T, generator *process.Process) {
	first, second, creels := m.Subclusters[0], m.Subclusters[1], m.RouterAddresses[1].Web
	weights := func(of string) bool {
		var policy yarnpb.SubClusterPolicyConfigurationProto
		data, _, err := m.records.Get(t.Context(), "/federationstore/policies/team")
		return err == nil && proto.Unmarshal(data, &policy) == nil &&
			strings.Contains(string(policy.Params), fmt.Sprintf(`{"key":{"id":"sc-1"},"value":"%s"}`, of)) &&
			strings.Contains(string(policy.Params), `{"key":{"id":"sc-2"},"value":"1.0"}`)
	}
	var waiting []string
	for range 6 {
		waiting = append(waiting, submitSleep(t, first.Addresses.Web, "root.default", 4096))
	}
	generator.Await(t, "no weight for the member with load", func() bool { return weights("0.0") })
	for seen := 0; seen < 6; {
		id := submitSleep(t, creels, "root.team.a", 128)
		home := m.Home(t, id)
		KillApp(t, creels, id)
		switch {
		case home == second:
			seen++
		case seen > 0:
			t.Fatalf("the home of %s is %s after %d applications at %s", id, home.ID, seen, second.ID)
		}
	}
	for _, id := range waiting {
		KillApp(t, first.Addresses.Web, id)
	}
	generator.Await(t, "equal weights after the load", func() bool { return weights("1.0") })
}

// silentMemberIsLost stops a ResourceManager of creel's for a while. The generator's cleaner marks the member as lost.
// Its next heartbeat ends that.
func (m *migration) silentMemberIsLost(t *testing.T, generator *process.Process, s *Subcluster) {
	state := func() string {
		var info yarnpb.SubClusterInfoProto
		data, _, err := m.records.Get(t.Context(), "/federationstore/memberships/"+s.ID)
		if err != nil || proto.Unmarshal(data, &info) != nil {
			return fmt.Sprint(err)
		}
		return info.GetState().String()
	}
	s.RM.Signal(syscall.SIGSTOP)
	generator.Await(t, "the member's loss", func() bool { return state() == "SC_LOST" })
	s.RM.Signal(syscall.SIGCONT)
	s.RM.Await(t, "the member's return", func() bool { return state() == "SC_RUNNING" })
	AwaitActive(t, m.RouterAddresses[1].Web, len(m.Subclusters))
	m.awaitMembers(t)
}
