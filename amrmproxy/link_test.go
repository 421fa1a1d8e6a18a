// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
)

// A UAM that the session may have launched is killed; others end as their state allows.
func TestEndOfALinkByItsState(t *testing.T) {
	for _, c := range []struct {
		name            string
		state           linkState
		finish, unsaved bool
		want            linkState
	}{
		{"registered, with a finish", linkUp, true, false, linkEnding},
		{"registered, without one", linkUp, false, false, linkDropping},
		{"asked for an id", linkNumbering, true, false, linkGone},
		{"planned, not saved", linkPlanned, true, true, linkGone},
		{"planned, being saved", linkPlanned, true, false, linkDropping},
		{"being launched", linkLaunching, true, false, linkLaunching},
		{"launched", linkLaunched, true, true, linkDropping},
	} {
		m := &link{state: c.state}
		if m.end(c.finish, c.unsaved, 7); m.state != c.want || (m.gen == 7) != (c.want == linkDropping) {
			t.Errorf("%s: state %d, generation %d, want state %d", c.name, m.state, m.gen, c.want)
		}
	}
}

// A member that starts an ended UAM again must end one that may exist; another repeats the launch without a limit.
func TestLaunchFailureByMember(t *testing.T) {
	var cfg Config
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, begins := range []bool{false, true} {
		m := &link{state: linkLaunching, standing: standing{begins: begins}}
		for n := range 2 * launchTries {
			m.state = linkLaunching
			drop := m.launchFailed(time.Unix(int64(n), 0), &cfg, false)
			if want := begins && n+1 >= launchTries; drop != want || !drop && m.state != linkPlanned {
				t.Fatalf("begins %v, failure %d: drop %v, state %d", begins, n+1, drop, m.state)
			}
		}
	}
	m := &link{state: linkLaunching}
	if !m.launchFailed(time.Unix(0, 0), &cfg, true) {
		t.Error("the UAM of an ended application is launched again")
	}
}

func TestDrainingIsReportedOnce(t *testing.T) {
	var m link
	var got []bool
	for _, state := range []subcluster.State{
		subcluster.StateActive, subcluster.StateDraining, subcluster.StateDraining, subcluster.StateLost,
	} {
		got = append(got, m.observe(&subcluster.Status{State: state}))
	}
	if got[0] || !got[1] || got[2] || got[3] || !m.lost() {
		t.Errorf("drains: %v, lost %v", got, m.lost())
	}
}

func TestInheritedContainersAreRecordedUntilAcknowledged(t *testing.T) {
	m := &link{id: "sc-b"}
	m.attach(&UAM{Member: "sc-b", Token: &yarnpb.TokenProto{}, Inherited: true}, 3)
	if m.state != linkLaunched || m.gen != 3 || !m.takenOver || !m.toRecord().Inherited || m.heard() {
		t.Fatalf("attached: %+v", m)
	}
	m.heritage = unacked
	if !m.toRecord().Inherited || !m.heard() || m.toRecord().Inherited || !m.contested || m.heard() {
		t.Errorf("after the AM's next call: %+v", m)
	}
}

func TestOnlyHadoopMembersRenumberUAMs(t *testing.T) {
	cfg := Config{OneID: []string{"TEZ"}, Shuffling: []string{"SPARK"}}
	for _, c := range []struct {
		name         string
		st           standing
		kind         string
		used         bool
		renum, keeps bool
	}{
		{"creel's, starts UAMs again", standing{begins: true}, "YARN", true, false, false},
		{"creel's, with data on nodes", standing{begins: true}, "SPARK", true, false, true},
		{"creel's, type unknown", standing{begins: true}, "", true, false, true},
		{"Hadoop's", standing{hadoop: true}, "YARN", true, true, false},
		{"Hadoop's, type that needs one id", standing{hadoop: true}, "TEZ", true, false, true},
		{"accepts an id once", standing{}, "YARN", false, false, true},
		{"the same, drained", standing{status: subcluster.StateDraining}, "YARN", false, false, false},
	} {
		m := &link{standing: c.st, usage: usage{used: c.used}}
		if r, k := m.renumbers(c.kind, &cfg), m.keeps(c.kind, &cfg); r != c.renum || k != c.keeps {
			t.Errorf("%s: renumbers %v, keeps %v", c.name, r, k)
		}
	}
}

func TestLostLinkIsRetriedAfterItsPause(t *testing.T) {
	m := &link{state: linkUp, uam: uam{ownID: creel.ApplicationID{ID: 1}, spent: true}}
	m.lose("it died", time.Unix(10, 0))
	if m.retry(time.Unix(9, 0), true); m.state != linkFailed || m.out != "it died" {
		t.Fatalf("state %d before the pause is over", m.state)
	}
	if m.retry(time.Unix(10, 0), false); m.state != linkFailed {
		t.Fatal("retried where the member does not accept the id again")
	}
	if m.retry(time.Unix(10, 0), true); m.state != linkNone || m.out != "" {
		t.Errorf("state %d after the pause", m.state)
	}
}
