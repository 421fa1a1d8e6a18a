// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// With ACLs on, priority ACLs of a queue apply to submissions and changes, to administrators too, with the messages
// of a real ResourceManager. A user's own default precedes the queue's.
func TestPrioritiesAreLimitedByUser(t *testing.T) {
	limits := func(acls bool) *cluster {
		return start(t, func(s *server.Config) {
			s.ACLs = acls
			q := &s.Machine.Queues.Root.Children[0]
			q.DefaultPriority, q.PriorityACL = 2, "[user=bob max_priority=3] [user=alice max_priority=7 default_priority=4]"
			q.PriorityLimits = []queues.PriorityLimit{
				{Who: queues.ACL{Users: []string{"bob"}}, Max: 3},
				{Who: queues.ACL{Users: []string{"alice"}}, Max: 7, Default: 4, HasDefault: true},
			}
		})
	}
	c := limits(true)
	refused := func(user, queue, priority, says string) {
		t.Helper()
		id := at(t, c.call("POST", base+"/apps/new-application?user.name="+user, "").body, "application-id").(string)
		c.try("POST", base+"/apps?user.name="+user, `{"application-id":"`+id+`","queue":"`+queue+`"`+priority+
			`,"resource":{"memory":256,"vCores":1},"am-container-spec":{"commands":{"command":"x"}}}`, 400,
			"User "+user+" (auth:SIMPLE) does not have permission to submit/update "+id+" for "+says)
	}
	priority := func(id string) string {
		return fmt.Sprint(c.get(base+"/apps/"+id+"/priority?user.name=root", "priority"))
	}
	refused("alice", "default", `,"priority":8`, "8")
	refused("bob", "default", `,"priority":4`, "4")
	refused("root", "default", `,"priority":1`, "1")
	refused("dave", "default", "", "2")
	usual := c.submit("alice", "usual", `,"queue":"default"`)
	if got := priority(usual); got != "4" {
		t.Errorf("alice's own default is %s", got)
	}
	if got := priority(c.submit("bob", "usual", `,"queue":"default"`)); got != "2" {
		t.Errorf("bob has the queue's default: %s", got)
	}
	if got := priority(c.submit("dave", "elsewhere", `,"queue":"other","priority":99`)); got != "10" {
		t.Errorf("a queue without limits: %s", got)
	}
	put := base + "/apps/" + usual + "/priority?user.name="
	if r := c.call("PUT", put+"alice", `{"priority":8}`); r.status == 200 || priority(usual) != "4" {
		t.Errorf("alice raises her own: %d %s", r.status, r.body)
	}
	c.try("PUT", put+"alice", `{"priority":7}`, 200, `{"priority":7}`)
	doc := c.call("GET", base+"/scheduler?user.name=root", "").body
	if !strings.Contains(doc, `"accessType":"APPLICATION_MAX_PRIORITY","accessControlList":"[user=bob max_priority=3] [user=alice`) {
		t.Errorf("the queue's document does not tell the limits: %s", doc)
	}

	c = limits(false)
	if got := priority(c.submit("dave", "free", `,"queue":"default","priority":9`)); got != "9" {
		t.Errorf("while ACLs are off: %s", got)
	}
}
