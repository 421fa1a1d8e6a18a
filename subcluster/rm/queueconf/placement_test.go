// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/placement"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// placedAt runs placement and writes the outcome as "queue", "queue+" when it may
// be created, "-" when the submission keeps its own queue, "refused: why".
func placedAt(p queues.Placement, s queues.PlacementRequest, live ...creel.QueuePath) string {
	if p == nil {
		return "-"
	}
	got, err := p.Place(s, func(path creel.QueuePath) bool {
		for _, l := range live {
			if l == path {
				return true
			}
		}
		return false
	})
	switch {
	case errors.Is(err, creel.ErrInvalidRequest):
		var e *creel.Error
		errors.As(err, &e)
		return "refused: " + e.Why
	case err != nil:
		return "error: " + err.Error()
	case got.Queue == "":
		return "-"
	case got.Rule == "":
		return string(got.Queue) + " without a reason"
	case got.Create:
		return string(got.Queue) + "+"
	}
	return string(got.Queue)
}

const mappingTree = `
root.queues = default,users,groups,managed,flex,q1,q2,dev,ambi,ambi2
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
root.ambi.capacity = 1w
root.ambi.queues = same
root.ambi.same.capacity = 1w
root.ambi2.capacity = 1w
root.ambi2.queues = same
root.ambi2.same.capacity = 1w
`

// The mappings of Hadoop's page and their edge cases, in the old format.
func TestQueueMappings(t *testing.T) {
	alice := queues.PlacementRequest{User: "alice", Groups: []string{"dev", "eng"}, Name: "wordcount", Queue: "default"}
	carol := queues.PlacementRequest{User: "carol", Groups: []string{"staff"}, Name: "q2", Queue: "default"}
	first := queues.PlacementRequest{User: "first.last", Groups: []string{"x"}, Queue: "default"}
	named := alice
	named.Queue = "root.q1"
	for _, tc := range []struct {
		mappings string
		s        queues.PlacementRequest
		want     string
	}{
		{"u:alice:q1", alice, "root.q1"},
		{"u:alice:q1", carol, "-"},
		{"u:bob:q2,u:alice:q1", alice, "root.q1"},
		{"u:alice:q2,u:alice:q1", alice, "root.q2"},
		{"g:eng:q2", alice, "root.q2"},
		{"g:eng:q2", carol, "-"},
		{"g:staff:root.q2", carol, "root.q2"},
		{"u:%user:%user", alice, "root.users.alice"},
		{"u:%user:%user", carol, "root.default"}, // no queue carol: the old format falls back to the default
		{"u:%user:users.%user", alice, "root.users.alice"},
		{"u:%user:root.users.%user", first, "root.users.first_dot_last"},
		{"u:%user:%primary_group", alice, "root.dev"},
		{"u:alice:%secondary_group", alice, "root.groups.eng"},
		{"u:%user:root.groups.%secondary_group", alice, "root.groups.eng"},
		{"u:%user:%secondary_group", carol, "root.default"},
		{"u:%user:root.managed.%user", carol, "root.managed.carol+"},
		{"u:%user:managed.%user", carol, "root.managed.carol+"},
		{"u:%user:root.managed.%primary_group.%user", carol, "root.default"}, // a managed parent makes one level
		{"u:%user:root.flex.%primary_group.%user", carol, "root.flex.staff.carol+"},
		{"u:%user:root.flex.a.%primary_group.%user", carol, "root.default"}, // at most two levels
		{"u:alice:root.groups", alice, "invalid"},
		{"u:alice:q1", named, "-"},
		{"u:alice:same", alice, "invalid"},
	} {
		text := mappingTree + "queue-mappings = " + tc.mappings
		c, err := ReadCapacity(properties(text), cluster)
		got := "invalid"
		if err == nil {
			got = placedAt(c.Placement, tc.s)
		}
		if got != tc.want {
			t.Errorf("%s for %s in %s: %s, not %s (%v)", tc.mappings, tc.s.User, tc.s.Queue, got, tc.want, err)
		}
	}

	override := readCapacity(
		t,
		mappingTree+"queue-mappings = u:alice:q2\nqueue-mappings-override.enable = true",
	).Placement
	if got := placedAt(override, named); got != "root.q2" {
		t.Errorf("with override a named queue stays: %s", got)
	}
	live := readCapacity(t, mappingTree+"queue-mappings = u:%user:root.managed.%user").Placement
	if got := placedAt(live, carol, "root.managed.carol"); got != "root.managed.carol" {
		t.Errorf("a queue that was made before is made again: %s", got)
	}
	apps := readCapacity(
		t,
		mappingTree+"queue-mappings = u:alice:q1\nyarn.scheduler.queue-placement-rules.app-name = wordcount:q2,%application:%application",
	).Placement
	for s, want := range map[*queues.PlacementRequest]string{&alice: "root.q1", &carol: "root.q2", {User: "bob", Name: "wordcount"}: "root.q2", {User: "bob", Name: "nope"}: "root.default"} {
		if got := placedAt(apps, *s); got != want {
			t.Errorf("application %s of %s goes to %s, not %s", s.Name, s.User, got, want)
		}
	}
}

func TestWrongQueueMappingsNameTheLine(t *testing.T) {
	for mapping, want := range map[string]string{
		"x:alice:q1":        `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "x:alice:q1" is neither u:user:queue nor g:group:queue`,
		"u:alice":           `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u:alice" is neither u:user:queue nor g:group:queue`,
		"u::q1":             `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u::q1" has an empty part`,
		"u:alice:q9":        `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u:alice:q9": there is no queue "q9"`,
		"u:alice:same":      `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u:alice:same": queue name "same" is ambiguous: root.ambi.same and root.ambi2.same`,
		"u:alice:root.q9":   `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u:alice:root.q9": there is no queue root.q9, and root does not create queues`,
		"u:alice:groups":    `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u:alice:groups": root.groups is a parent queue`,
		"u:%user:q1.%usr":   `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u:%user:q1.%usr": unknown variable %usr; known are %user, %primary_group, %secondary_group, %application, %default, %specified`,
		"u:%user:q1..%user": `cs.xml:28: yarn.scheduler.capacity.queue-mappings: "u:%user:q1..%user": the queue path has an empty part`,
	} {
		_, err := ReadCapacity(properties(mappingTree+"queue-mappings = "+mapping), cluster)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", mapping, err, want)
		}
	}
}

// jsonPlacement puts rules in JSON over the tree above.
func jsonPlacement(t *testing.T, rules string) (queues.Placement, error) {
	t.Helper()
	props := append(properties(mappingTree),
		Property{Name: capacityPrefix + "mapping-rule-format", Value: "json"},
		Property{Name: capacityPrefix + "mapping-rule-json", Value: rules, File: "cs.xml", Line: 99})
	c, err := ReadCapacity(props, cluster)
	return c.Placement, err
}

func TestMappingRulesInJSON(t *testing.T) {
	s := queues.PlacementRequest{User: "alice", Groups: []string{"dev", "eng", "ops"}, Name: "q2", Queue: "default"}
	specified := s
	specified.Queue = "root.q1"
	stranger := queues.PlacementRequest{User: "zoe", Groups: []string{"zoo"}, Name: "z", Queue: "default"}
	for _, tc := range []struct {
		rules string
		s     queues.PlacementRequest
		want  string
	}{
		{`{"type":"user","matches":"*","policy":"user","parentQueue":"root.users"}`, s, "root.users.alice"},
		{`{"type":"user","matches":"alice","policy":"custom","customPlacement":"root.q2"}`, s, "root.q2"},
		{`{"type":"user","matches":"bob","policy":"custom","customPlacement":"root.q2"}`, s, "-"},
		{`{"type":"group","matches":"eng","policy":"custom","customPlacement":"root.groups.eng"}`, s, "root.groups.eng"},
		{`{"type":"application","matches":"q2","policy":"applicationName","parentQueue":"root"}`, s, "root.q2"},
		{`{"type":"application","matches":"*","policy":"applicationName"}`, s, "root.q2"},
		{`{"type":"user","matches":"*","policy":"primaryGroup"}`, s, "root.dev"},
		{`{"type":"user","matches":"*","policy":"secondaryGroup","parentQueue":"root.groups"}`, s, "root.groups.eng"},
		{`{"type":"user","matches":"*","policy":"secondaryGroupUser","parentQueue":"root.groups"}`, s, "-"},
		{`{"type":"user","matches":"*","policy":"primaryGroupUser","parentQueue":"root.flex"}`, s, "root.flex.dev.alice+"},
		{`{"type":"user","matches":"*","policy":"primaryGroupUser","parentQueue":"root.flex","create":false}`, s, "-"},
		{`{"type":"user","matches":"*","policy":"primaryGroupUser","parentQueue":"root.managed","fallbackResult":"reject"}`, s,
			"refused: rule 1 (user *: primaryGroupUser): there is no queue root.managed.dev.alice, and root.managed creates at most 1 levels"},
		{`{"type":"user","matches":"*","policy":"specified"},{"type":"user","matches":"*","policy":"defaultQueue"}`, s, "root.default"},
		{`{"type":"user","matches":"*","policy":"user"},{"type":"user","matches":"*","policy":"custom","customPlacement":"%application"}`, stranger, "-"},
		{`{"type":"user","matches":"*","policy":"user","fallbackResult":"placeDefault"},{"type":"user","matches":"*","policy":"reject"}`, stranger, "root.default"},
		{`{"type":"user","matches":"*","policy":"setDefaultQueue","value":"root.q1"},{"type":"user","matches":"*","policy":"user","fallbackResult":"placeDefault"}`, stranger, "root.q1"},
		{`{"type":"user","matches":"*","policy":"setDefaultQueue","value":"root.users.%user"},{"type":"user","matches":"*","policy":"defaultQueue"}`, s, "root.users.alice"},
		{`{"type":"user","matches":"*","policy":"setDefaultQueue","value":"root.nowhere"},{"type":"user","matches":"*","policy":"user","fallbackResult":"placeDefault"}`, stranger,
			`refused: rule 2 (user *: user): there is no queue "zoe"; and the default queue: there is no queue root.nowhere, and the rule does not create one`},
		{`{"type":"user","matches":"*","policy":"reject"}`, s, "refused: rule 1 (user *: reject) rejects"},
		{`{"type":"user","matches":"*","policy":"reject"}`, specified, "-"},
		{`{"type":"user","matches":"%user","policy":"custom","customPlacement":"root.groups.%secondary_group.%user"}`, queues.PlacementRequest{User: "bob2", Groups: []string{"x", "ops"}}, "root.groups.ops.bob2"},
	} {
		p, err := jsonPlacement(t, `{"rules":[`+tc.rules+`]}`)
		if err != nil {
			t.Errorf("%s: %v", tc.rules, err)
			continue
		}
		if got := placedAt(p, tc.s); got != tc.want {
			t.Errorf("%s\n  for %s: %s\n  not  %s", tc.rules, tc.s.User, got, tc.want)
		}
	}
}

func TestWrongMappingRulesInJSON(t *testing.T) {
	const at = "cs.xml:99: yarn.scheduler.capacity.mapping-rule-json: "
	for rules, want := range map[string]string{
		"{\n\n\"rules\": [}": at + "line 3 of the JSON: invalid character '}' looking for beginning of value",
		`{"rulez":[]}`:       at + `line 1 of the JSON: unknown field "rulez"`,
		`{"rules":[]} {}`:    at + "something follows the JSON object",
		`{"rules":[{"type":"user","matches":"*"}]}`:                                                             at + "rule 1: policy is missing",
		`{"rules":[{"type":"queue","matches":"*","policy":"user"}]}`:                                            at + `rule 1: type "queue" is none of user, group, application`,
		`{"rules":[{"type":"user","policy":"user"}]}`:                                                           at + "rule 1: matches is missing",
		`{"rules":[{"type":"group","matches":"*","policy":"user"}]}`:                                            at + `rule 1: "*" does not work with groups`,
		`{"rules":[{"type":"user","matches":"*","policy":"custom"},{"type":"user","matches":"*","policy":""}]}`: at + "rule 1: policy custom needs customPlacement\n" + at + "rule 2: policy is missing",
		`{"rules":[{"type":"user","matches":"*","policy":"user","fallbackResult":"shrug"}]}`:                    at + `rule 1: fallbackResult "shrug" is none of skip, reject, placeDefault`,
		`{"rules":[{"type":"user","matches":"*","policy":"setDefaultQueue"}]}`:                                  at + "rule 1: policy setDefaultQueue needs value",
	} {
		if _, err := jsonPlacement(t, rules); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", rules, err, want)
		}
	}
	props := append(
		properties(mappingTree),
		Property{Name: capacityPrefix + "mapping-rule-format", Value: "yaml", File: "cs.xml", Line: 5},
	)
	if _, err := ReadCapacity(
		props,
		cluster,
	); err == nil ||
		!strings.Contains(
			err.Error(),
			`cs.xml:5: yarn.scheduler.capacity.mapping-rule-format: "yaml" is neither legacy nor json`,
		) {
		t.Errorf("%v", err)
	}
	props[len(props)-1].Value = "json"
	props = append(
		props,
		Property{Name: capacityPrefix + "mapping-rule-json-file", Value: "/rules.json", File: "cs.xml", Line: 6},
	)
	if _, err := ReadCapacity(
		props,
		cluster,
	); err == nil ||
		!strings.Contains(
			err.Error(),
			"cs.xml:6: yarn.scheduler.capacity.mapping-rule-json-file: /rules.json cannot be read",
		) {
		t.Errorf("%v", err)
	}
	opt := cluster
	opt.MappingRules = []byte(`{"rules":[{"type":"user","matches":"*","policy":"custom","customPlacement":"q1"}]}`)
	c, err := ReadCapacity(props, opt)
	if err != nil || placedAt(c.Placement, queues.PlacementRequest{User: "x"}) != "root.q1" {
		t.Errorf("rules of a file: %v", err)
	}
}

// The rules of the documented allocation file, rule by rule.
func TestFairPlacementRules(t *testing.T) {
	documented := readFair(t, documentedFair).Placement
	policy := func(rules string) queues.Placement {
		return readFair(
			t,
			`<allocations><queue name="eng"/><queue name="parent" type="parent"><queue name="one_dot_two"/></queue><queue name="ann"/>
			<queuePlacementPolicy>`+rules+`</queuePlacementPolicy></allocations>`,
		).Placement
	}
	for _, tc := range []struct {
		name string
		p    queues.Placement
		s    queues.PlacementRequest
		live []creel.QueuePath
		want string
	}{
		{"a queue named", documented, queues.PlacementRequest{User: "u", Queue: "sample_queue.sample_sub_queue"}, nil, "root.sample_queue.sample_sub_queue"},
		{"a full path named", documented, queues.PlacementRequest{User: "u", Queue: "root.new.leaf"}, nil, "root.new.leaf+"},
		{"a dot at the end", documented, queues.PlacementRequest{User: "u", Queue: "q1."}, nil, `refused: queue name "q1." begins or ends with a dot`},
		{"an empty part", documented, queues.PlacementRequest{User: "u", Queue: "a..b"}, nil, `refused: "root.a..b" is not a queue path`},
		{"nothing fits", documented, queues.PlacementRequest{User: "u", Groups: []string{"g"}, Queue: "default"}, nil, "root.sample_queue"},
		{"primary group with a queue", documented, queues.PlacementRequest{User: "u", Groups: []string{"sample_queue"}}, nil, "root.sample_queue"},
		{"nested under a secondary group", documented, queues.PlacementRequest{User: "u.v", Groups: []string{"g", "secondary_group_queue"}}, nil, "root.secondary_group_queue.u_dot_v+"},
		{"nested, made before", documented, queues.PlacementRequest{User: "u", Groups: []string{"g", "secondary_group_queue"}}, []creel.QueuePath{"root.secondary_group_queue.u"}, "root.secondary_group_queue.u"},
		{"user", policy(`<rule name="user"/>`), queues.PlacementRequest{User: "a.b"}, nil, "root.a_dot_b+"},
		{"user that must exist", policy(`<rule name="user" create="false"/><rule name="reject"/>`), queues.PlacementRequest{User: "ann"}, nil, "root.ann"},
		{"user without a queue", policy(`<rule name="user" create="false"/><rule name="reject"/>`), queues.PlacementRequest{User: "bob"}, nil, "refused: no rule before reject found a queue"},
		{"specified that must exist", policy(`<rule name="specified" create="false"/><rule name="default"/>`), queues.PlacementRequest{User: "x", Queue: "nowhere"}, nil, "root.default+"},
		{"primary group is made", policy(`<rule name="primaryGroup"/>`), queues.PlacementRequest{User: "x", Groups: []string{"one.two"}}, nil, "root.one_dot_two+"},
		{"secondary group, the first with a queue", policy(`<rule name="secondaryGroupExistingQueue"/><rule name="default"/>`), queues.PlacementRequest{User: "x", Groups: []string{"ann", "no", "eng", "parent"}}, nil, "root.eng"},
		{"nested below a leaf passes", policy(`<rule name="nestedUserQueue"><rule name="primaryGroup" create="false"/></rule><rule name="default" queue="ann"/>`), queues.PlacementRequest{User: "x", Groups: []string{"eng"}}, nil, "root.ann"},
		{"nested below a new parent", policy(`<rule name="nestedUserQueue"><rule name="primaryGroup"/></rule>`), queues.PlacementRequest{User: "x", Groups: []string{"new"}}, nil, "root.new.x+"},
		{"nested below the default", policy(`<rule name="nestedUserQueue"><rule name="default" queue="parent"/></rule>`), queues.PlacementRequest{User: "one.two"}, nil, "root.parent.one_dot_two"},
		{"no policy: specified", readFair(t, "<allocations/>").Placement, queues.PlacementRequest{User: "x", Queue: "q"}, nil, "root.q+"},
		{"no policy: user", readFair(t, "<allocations/>").Placement, queues.PlacementRequest{User: "x", Queue: "default"}, nil, "root.x+"},
		{"no groups at all", policy(`<rule name="primaryGroup" create="false"/><rule name="secondaryGroupExistingQueue"/><rule name="default"/>`), queues.PlacementRequest{User: "x"}, nil, "root.default+"},
	} {
		if got := placedAt(tc.p, tc.s, tc.live...); got != tc.want {
			t.Errorf("%s: %s, not %s", tc.name, got, tc.want)
		}
	}

	closed := fairCluster
	closed.Fair.AllowUndeclaredPools = false
	c, err := ReadFair("f", []byte(`<allocations><queue name="default"/><queue name="q"/></allocations>`), closed)
	if err != nil {
		t.Fatal(err)
	}
	for queue, want := range map[string]string{"q": "root.q", "other": "root.default", "default": "root.default"} {
		if got := placedAt(c.Placement, queues.PlacementRequest{User: "x", Queue: queue}); got != want {
			t.Errorf("closed to undeclared queues, %s goes to %s", queue, got)
		}
	}
}

func FuzzMappingRules(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(
		`{"rules":[{"type":"user","matches":"*","policy":"user","parentQueue":"root.users"}]}`,
		"u:%user:%primary_group.%user",
		"a.b",
		"root.q1",
	)
	f.Add(
		`{"rules":[{"type":"user","matches":"*","policy":"setDefaultQueue","value":"%default"},{"type":"group","matches":"g","policy":"secondaryGroupUser"}]}`,
		"g:g:%secondary_group",
		"",
		"",
	)
	f.Add(
		`{"rules":[{"type":"user","matches":"*","policy":"custom","customPlacement":"%specified.%default.%user"}]}`,
		"u:a:root.flex.%user",
		"%user",
		"%default",
	)
	f.Fuzz(func(t *testing.T, rules, legacy, user, queue string) {
		s := queues.PlacementRequest{User: user, Groups: []string{"g", user, "eng"}, Name: queue, Queue: queue}
		for _, props := range [][]Property{
			append(properties(mappingTree), Property{Name: capacityPrefix + "mapping-rule-format", Value: "json"}, Property{Name: capacityPrefix + "mapping-rule-json", Value: rules}, Property{Name: capacityPrefix + "queue-mappings-override.enable", Value: "true"}),
			append(properties(mappingTree), Property{Name: capacityPrefix + "queue-mappings", Value: legacy}),
		} {
			c, err := ReadCapacity(props, cluster)
			if err != nil || c.Placement == nil {
				continue
			}
			got, err := c.Placement.Place(s, func(creel.QueuePath) bool { return false })
			if err != nil || got.Queue == "" {
				continue
			}
			// For any rules, the outcome is a leaf of the tree or may be created in it.
			again, err := placement.NewTree(
				&c.Queues.Root,
			).Target(string(got.Queue), true, func(creel.QueuePath) bool { return false })
			if err != nil || again.Queue != got.Queue || again.Create != got.Create {
				t.Fatal(fmt.Sprint(got, again, err))
			}
			if twice, err := c.Placement.Place(
				s,
				func(creel.QueuePath) bool { return false },
			); err != nil ||
				twice != got {
				t.Fatalf("the same submission went to %v and to %v", got, twice)
			}
		}
	})
}
