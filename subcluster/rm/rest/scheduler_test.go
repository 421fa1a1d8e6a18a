// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// keys are the fields of a JSON object in the order in which they are written.
func keys(t *testing.T, doc json.RawMessage) (names []string, fields map[string]json.RawMessage) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(doc)))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	fields = map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		fields[name.(string)] = v
	}
	return names, fields
}

const (
	fairFields = "maxApps minResources maxResources usedResources amUsedResources amMaxResources demandResources steadyFairResources fairResources clusterResources reservedResources maxContainerAllocation " +
		"allocatedContainers reservedContainers pendingContainers queueName schedulingPolicy preemptable"
	capacityRootFields = "type capacity usedCapacity maxCapacity weight normalizedWeight queueCapacityVectorInfo queueName queuePath maxParallelApps isAbsoluteResource queues capacities health maximumAllocation " +
		"queueAcls queuePriority orderingPolicyInfo mode queueType creationMethod autoCreationEligibility autoQueueTemplateProperties autoQueueParentTemplateProperties autoQueueLeafTemplateProperties"
	capacityLeafFields = "type queuePath capacity usedCapacity maxCapacity absoluteCapacity absoluteMaxCapacity absoluteUsedCapacity weight normalizedWeight numApplications maxParallelApps queueName isAbsoluteResource " +
		"state resourcesUsed hideReservationQueues nodeLabels allocatedContainers reservedContainers pendingContainers capacities resources minEffectiveCapacity maxEffectiveCapacity maximumAllocation queueAcls " +
		"queuePriority orderingPolicyInfo autoCreateChildQueueEnabled leafQueueTemplate mode queueType creationMethod autoCreationEligibility autoQueueTemplateProperties autoQueueParentTemplateProperties " +
		"autoQueueLeafTemplateProperties numActiveApplications numPendingApplications numContainers maxApplications maxApplicationsPerUser userLimit users userLimitFactor configuredMaxAMResourceLimit " +
		"AMResourceLimit usedAMResource userAMResourceLimit preemptionDisabled intraQueuePreemptionDisabled defaultPriority isAutoCreatedLeafQueue maxApplicationLifetime defaultApplicationLifetime"
)

func has(t *testing.T, what string, names []string, want string) {
	t.Helper()
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the fields of %s are\n%s\nand should be\n%s", what, got, want)
	}
}

// The fields of CapacitySchedulerInfo, in YARN's order.
func TestCapacitySchedulerFields(t *testing.T) {
	c := start(t, nil)
	_, doc := keys(t, json.RawMessage(c.call("GET", base+"/scheduler", "").body))
	_, inner := keys(t, doc["scheduler"])
	names, root := keys(t, inner["schedulerInfo"])
	has(t, "the root", names, capacityRootFields)
	var queues struct{ Queue []json.RawMessage }
	if err := json.Unmarshal(root["queues"], &queues); err != nil || len(queues.Queue) != 2 {
		t.Fatalf("queues: %v, %s", err, root["queues"])
	}
	for _, q := range queues.Queue {
		names, _ := keys(t, q)
		has(t, "a leaf", names, capacityLeafFields)
	}
}

// A FairScheduler's tree: parents hold childQueues, leaves their class and
// counts.
func TestFairSchedulerFields(t *testing.T) {
	conf, err := queueconf.ReadFair(
		"fair-scheduler.xml",
		[]byte(`<allocations><queue name="a"><weight>2</weight><schedulingPolicy>fair</schedulingPolicy></queue>
		<queue name="p" type="parent"><queue name="b"><schedulingPolicy>fifo</schedulingPolicy></queue></queue></allocations>`),
		queueconf.Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, func(cfg *server.Config) { cfg.Machine.Queues, cfg.Machine.Placement = conf.Queues, conf.Placement })
	_, doc := keys(t, json.RawMessage(c.call("GET", base+"/scheduler", "").body))
	_, inner := keys(t, doc["scheduler"])
	names, info := keys(t, inner["schedulerInfo"])
	has(t, "the document", names, "type rootQueue")
	policies := map[string]string{}
	var walk func(q json.RawMessage)
	walk = func(q json.RawMessage) {
		names, fields := keys(t, q)
		var name, policy string
		if err := json.Unmarshal(fields["queueName"], &name); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(fields["schedulingPolicy"], &policy); err != nil {
			t.Fatal(err)
		}
		policies[name] = policy
		if slices.Contains(names, "childQueues") {
			has(t, name, names, fairFields+" childQueues")
			var below struct{ Queue []json.RawMessage }
			if err := json.Unmarshal(fields["childQueues"], &below); err != nil {
				t.Fatal(err)
			}
			for _, b := range below.Queue {
				walk(b)
			}
			return
		}
		has(t, name, names, "type "+fairFields+" numPendingApps numActiveApps")
	}
	walk(info["rootQueue"])
	if policies["root.a"] != "fair" || policies["root.p.b"] != "FIFO" || policies["root"] != "fair" ||
		len(policies) < 4 {
		t.Errorf("policies: %v", policies)
	}
	x := c.call("GET", base+"/scheduler", "", "Accept", "application/xml").body
	if !strings.Contains(x, `xsi:type="fairScheduler"><rootQueue><maxApps>`) ||
		strings.Count(x, `<queue xsi:type="fairSchedulerLeafQueueInfo">`) < 2 {
		t.Errorf("as XML: %.400s", x)
	}
	if got := c.get(base+"/scheduler-overview", "schedulerType"); got != "Fair Scheduler" {
		t.Errorf("overview: %v", got)
	}
}
