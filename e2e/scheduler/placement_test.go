// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"encoding/xml"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

const placementTree = `
root.queues = default,users,groups,managed,flex,q1,q2,dev
root.default.capacity = 1w
root.users.capacity = 1w
root.users.queues = alice,bob,first_dot_last
root.users.alice.capacity = 1w
root.users.bob.capacity = 1w
root.users.first_dot_last.capacity = 1w
root.groups.capacity = 1w
root.groups.queues = eng,ops
root.groups.eng.capacity = 1w
root.groups.ops.capacity = 1w
root.groups.ops.queues = bob2
root.groups.ops.bob2.capacity = 1w
root.managed.capacity = 1w
root.managed.auto-create-child-queue.enabled = true
root.managed.leaf-queue-template.capacity = 10
root.flex.capacity = 1w
root.flex.auto-queue-creation-v2.enabled = true
root.q1.capacity = 1w
root.q2.capacity = 1w
root.dev.capacity = 1w
hadoop.user.group.static.mapping.overrides = alice=dev,eng;carol=staff;bob=ops;bob2=x,ops;first.last=y;zoe=zoo,ops,eng;nobody1=;dan=dev
`

// submission is one row: user, groups, name and queue of a submission.
type submission struct{ user, groups, name, queue string }

func (s submission) String() string { return s.user + " submits " + s.name + " to " + s.queue }

var submissions = []submission{
	{"alice", "dev,eng", "wordcount", "default"},
	{"alice", "dev,eng", "q2", "default"},
	{"alice", "dev,eng", "wordcount", "root.q1"},
	{"alice", "dev,eng", "wordcount", "q1"},
	{"carol", "staff", "q2", "default"},
	{"carol", "staff", "x.y", "default"},
	{"bob", "ops", "sleep", "default"},
	{"bob2", "x,ops", "sleep", "default"},
	{"first.last", "y", "sleep", "default"},
	{"zoe", "zoo,ops,eng", "sleep", "default"},
	{"dan", "dev", "sleep", "q2"},
}

// TestPlacementMatchesHadoop runs a real ResourceManager and creel's placement with the same mappings
// and submissions. One ResourceManager reloads its queues for each set of mappings. A queue created by a submission
// exists for the next one in both.
func TestPlacementMatchesHadoop(t *testing.T) {
	real := startRM(t, placementTree)
	admin := yarnrpc.NewResourceManagerAdministrationProtocolClient(
		newClient(t),
		real.Admin,
		hrpc.Login{User: hadoop.OSUser(t)},
	)
	made := map[creel.QueuePath]bool{}
	// Those in which a submission makes queues come last: a leaf name in a mapping
	// must be of one queue only.
	for _, c := range []struct{ name, mappings string }{
		{"user", "queue-mappings = u:alice:q1,g:ops:q2,u:%user:root.users.%user"},
		{"groups", "queue-mappings = u:alice:%secondary_group,u:%user:root.groups.%secondary_group.%user,u:carol:q1"},
		{"secondary", "queue-mappings = u:%user:root.groups.%secondary_group"},
		{"primary", "queue-mappings = u:%user:%primary_group"},
		{"override", "queue-mappings-override.enable = true\nqueue-mappings = u:alice:q2,g:dev:root.dev"},
		{"application", "queue-mappings = u:zoe:q1\nyarn.scheduler.queue-placement-rules.app-name = wordcount:dev,%application:%application"},
		{"made", "queue-mappings = u:alice:root.managed.%user,u:bob:managed.%primary_group,u:%user:root.flex.%primary_group.%user"},
		{"json", `mapping-rule-format = json
mapping-rule-json = {"rules":[{"type":"user","matches":"alice","policy":"custom","customPlacement":"root.groups.%secondary_group"},{"type":"user","matches":"*","policy":"setDefaultQueue","value":"root.q1"},{"type":"user","matches":"bob2","policy":"secondaryGroupUser","parentQueue":"root.groups","fallbackResult":"reject"},{"type":"group","matches":"staff","policy":"primaryGroupUser","parentQueue":"root.flex"},{"type":"user","matches":"*","policy":"user","parentQueue":"root.users","create":false},{"type":"application","matches":"*","policy":"applicationName"},{"type":"user","matches":"zoe","policy":"reject"},{"type":"user","matches":"*","policy":"specified","fallbackResult":"placeDefault"}]}`},
		{"json2", `mapping-rule-format = json
queue-mappings-override.enable = true
mapping-rule-json = {"rules":[{"type":"user","matches":"zoe","policy":"primaryGroupUser","parentQueue":"root.managed","fallbackResult":"reject"},{"type":"user","matches":"alice","policy":"specified","fallbackResult":"skip"},{"type":"user","matches":"alice","policy":"applicationName","parentQueue":"root.flex"},{"type":"user","matches":"carol","policy":"user","parentQueue":"root.flex","create":false,"fallbackResult":"placeDefault"},{"type":"user","matches":"*","policy":"primaryGroup"},{"type":"user","matches":"*","policy":"defaultQueue"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rewrite(t, real, placementTree+c.mappings)
			if _, err := admin.RefreshQueues(t.Context(), &yarnpb.RefreshQueuesRequestProto{}); err != nil {
				t.Fatal(err)
			}
			_, config := ours(t, real.ConfDir)
			for _, s := range submissions {
				queue, refusal := submit(t, real, s.user, s.name, s.queue)
				want := queue
				if refusal != "" {
					want = "refused"
				}
				got := place(config, s, made)
				t.Logf("%v: %s", s, want)
				if got != want {
					t.Errorf("%v: ours %s, Hadoop's %s %s", s, got, want, refusal)
				}
			}
		})
	}
}

// rewrite puts other queues and rules into a ResourceManager's
// capacity-scheduler.xml, the only file that it reads again.
func rewrite(t *testing.T, real *hadoop.ResourceManager, lines string) {
	t.Helper()
	conf := hadoop.Conf{}.With(queueConf(lines))
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		b.WriteString("  <property><name>" + name + "</name><value>")
		if err := xml.EscapeText(&b, []byte(conf[name])); err != nil {
			t.Fatal(err)
		}
		b.WriteString("</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	if err := os.WriteFile(
		filepath.Join(real.ConfDir, "capacity-scheduler.xml"),
		[]byte(b.String()),
		0o644,
	); err != nil {
		t.Fatal(err)
	}
}

// place runs our rules on a submission and returns the queue it ends in.
func place(c queueconf.Config, s submission, made map[creel.QueuePath]bool) string {
	placed := queues.PlacementResult{}
	if c.Placement != nil {
		var err error
		placed, err = c.Placement.Place(
			queues.PlacementRequest{User: s.user, Groups: strings.Split(s.groups, ","), Name: s.name, Queue: s.queue},
			func(q creel.QueuePath) bool { return made[q] },
		)
		if err != nil {
			return "refused"
		}
	}
	if placed.Queue == "" {
		// The submission keeps its queue; all that are named here are below the root.
		return "root." + strings.TrimPrefix(s.queue, "root.")
	}
	if placed.Create {
		made[placed.Queue] = true
	}
	return string(placed.Queue)
}
