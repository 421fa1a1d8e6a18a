// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
)

// Our words are Hadoop's to the letter, read and printed: ids, nodes,
// resources with types of their own, states and their numbers on the wire.
func TestHadoopPrintsAndReadsOurWords(t *testing.T) {
	app := creel.ApplicationID{ClusterTimestamp: 1410901177871, ID: 1}
	late := creel.ApplicationID{ClusterTimestamp: 1410901177871, ID: 123456}
	attempt := creel.AttemptID{Application: late, Attempt: 1234567}
	var commands, want []string
	say := func(v fmt.Stringer, format string, args ...any) {
		commands, want = append(commands, fmt.Sprintf(format, args...)), append(want, v.String())
	}
	for _, v := range []creel.ApplicationID{app, late} {
		say(v, "text application %v", v)
	}
	for _, v := range []creel.AttemptID{{Application: app, Attempt: 1}, attempt} {
		say(v, "text attempt %v", v)
	}
	for _, v := range []creel.ContainerID{{Attempt: creel.AttemptID{Application: app, Attempt: 1}, ID: 5}, creel.NewContainerID(attempt, 3, 1234567),
		creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 12}, 1000, 1)} {
		say(v, "text container %v", v)
	}
	say(
		creel.NodeID{Host: "host-1.example", Port: 45454},
		"text node %v",
		creel.NodeID{Host: "host-1.example", Port: 45454},
	)
	say(
		creel.ReservationID{ClusterTimestamp: 1410901177871, ID: 7},
		"text reservation %v",
		creel.ReservationID{ClusterTimestamp: 1410901177871, ID: 7},
	)
	say(creel.NewResource(0, 0), "resource 0 0")
	say(creel.NewResource(1<<40, 2), "resource %d 2", int64(1<<40))
	say(creel.NewResource(1024, 2, creel.Amount{Name: "yarn.io/gpu", Value: 3}), "resource 1024 2 yarn.io/gpu=3")
	say(
		creel.NewResource(1024, 2, creel.Amount{Name: "disk", Value: 5}, creel.Amount{Name: "yarn.io/gpu", Value: 3}),
		"resource 1024 2 disk=5 yarn.io/gpu=3",
	)
	commands = append(commands, "states")

	conf := hadoop.Conf{"yarn.resource-types": "disk,yarn.io/gpu"}
	answers := ask(t, hadoop.V342, conf, commands)
	for i, w := range want {
		if answers[i].Again != w {
			t.Errorf("%s: Hadoop prints %q, we print %q", commands[i], answers[i].Again, w)
		}
	}
	for _, v := range answers[len(want)-4 : len(want)] {
		r, err := creel.ParseResource(v.Again)
		if err != nil || r.String() != v.Again {
			t.Errorf("%q of Hadoop's reads %v, %v", v.Again, r, err)
		}
	}
	states := answers[len(want)].States
	seen := 0
	for name, kind := range map[string]func(n int32) fmt.Stringer{
		"application": func(n int32) fmt.Stringer { return creel.ApplicationState(n) },
		"attempt":     func(n int32) fmt.Stringer { return creel.AttemptState(n) },
		"container":   func(n int32) fmt.Stringer { return creel.ContainerState(n) },
		"node":        func(n int32) fmt.Stringer { return creel.NodeState(n) },
		"final":       func(n int32) fmt.Stringer { return creel.FinalStatus(n) },
		"queue":       func(n int32) fmt.Stringer { return creel.QueueState(n) },
		"execution":   func(n int32) fmt.Stringer { return creel.ExecutionType(n) },
	} {
		for n := range int32(20) {
			if s, ok := states[fmt.Sprintf("%s %d", name, n)]; ok {
				seen++
				if got := kind(n).String(); got != s {
					t.Errorf("%s state %d is %s of Hadoop's and %s of ours", name, n, s, got)
				}
			}
		}
	}
	if seen != len(states) || seen < 40 {
		t.Errorf("%d of %d states were compared", seen, len(states))
	}
}
