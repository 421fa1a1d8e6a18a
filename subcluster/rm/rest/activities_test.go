// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// waiting starts an application with two asks that wait: their containers need a whole node.
func (c *cluster) waiting() (id string) {
	c.t.Helper()
	id = c.submit("alice", "a", "")
	m := c.register("")
	big := func(priority, count int32) *pb.ResourceRequestProto {
		k := request(priority, "*", count)
		k.Capability = pb.FromResource(creel.NewResource(8192, 8))
		return k
	}
	answer, err := m.Allocate(c.t.Context(), &pb.AllocateRequestProto{
		ResponseId: new(int32(0)), Ask: []*pb.ResourceRequestProto{request(1, "*", 1), big(2, 3), big(3, 1)},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if n := len(answer.GetAllocatedContainers()); n < 1 || n > 2 {
		c.t.Fatalf("%d containers are granted", n)
	}
	return id
}

// nodeOf returns the id of the node that runs an application's AM.
func (c *cluster) nodeOf(id string) string {
	c.t.Helper()
	host := c.get(base+"/apps/"+id+"?user.name=root", "app", "amHostHttpAddress").(string)
	for _, n := range c.get(base+"/nodes", "nodes", "node").([]any) {
		if n := n.(map[string]any); n["nodeHTTPAddress"] == host {
			return n["id"].(string)
		}
	}
	c.t.Fatalf("no node has %s", host)
	return ""
}

func TestActivitiesOfANodeAreRecordedOnRequest(t *testing.T) {
	c := start(t, nil)
	id := c.waiting()
	node := c.nodeOf(id)
	path := base + "/scheduler/activities?nodeId=" + node
	first := c.get(path, "activities").(map[string]any)
	if first["diagnostic"] != "waiting for display" || first["nodeId"] != node || len(first) != 2 {
		t.Errorf("the first request: %v", first)
	}
	if d := c.get(base+"/scheduler/activities", "activities", "diagnostic"); d != "waiting for next allocation" {
		t.Errorf("the first request for any node: %v", d)
	}
	var doc map[string]any
	c.until("the node was considered", func() bool {
		doc = c.get(path, "activities").(map[string]any)
		return doc["allocations"] != nil
	})
	last := doc["allocations"].([]any)
	a := last[len(last)-1].(map[string]any)
	root := a["root"].(map[string]any)
	if doc["nodeId"] != node || doc["timestamp"] == nil || a["finalAllocationState"] == nil || root["name"] != "root" ||
		root["allocationState"] != "ACCEPTED" {
		t.Fatalf("recorded: %v", doc)
	}
	queues := root["children"].([]any)
	byName := map[string]map[string]any{}
	for _, q := range queues {
		byName[q.(map[string]any)["name"].(string)] = q.(map[string]any)
	}
	if q := byName["root.other"]; q["allocationState"] != "SKIPPED" ||
		q["diagnostic"] != "Queue does not need more resource" {
		t.Errorf("an idle queue: %v", q)
	}
	app := byName["root.default"]["children"].([]any)[0].(map[string]any)
	asks := app["children"].([]any)
	k := asks[0].(map[string]any)
	on := k["children"].([]any)[0].(map[string]any)
	if app["name"] != id || len(asks) != 2 || k["requestPriority"] != 2.0 || on["diagnostic"] == "" ||
		on["nodeId"] != node || on["allocationState"] == "ACCEPTED" {
		t.Errorf("the waiting application: %v", app)
	}
	grouped := c.get(path+"&groupBy=diagnostic", "activities", "allocations").([]any)
	text := fmt.Sprint(grouped)
	if !strings.Contains(text, "nodeIds:["+node+"]") || !strings.Contains(text, "count:1") {
		t.Errorf("grouped: %s", text)
	}
	for query, want := range map[string]string{
		"?groupBy=color":     "Got invalid groupBy: color, valid groupBy types: [DIAGNOSTIC]",
		"?nodeId=nowhere:17": "Cannot find node manager with given node id",
	} {
		if d := c.get(base+"/scheduler/activities"+query, "activities", "diagnostic"); d != want {
			t.Errorf("%s: %v", query, d)
		}
	}
	c.until("some node was considered", func() bool {
		return c.get(base+"/scheduler/activities", "activities", "allocations") != nil
	})
	if x := c.call("GET", path, "", "Accept", "application/xml"); !strings.Contains(x.body, "<activities><nodeId>"+node) ||
		!strings.Contains(x.body, "<root><name>root</name><allocationState>ACCEPTED</allocationState><children>") {
		t.Errorf("as XML: %s", x.body)
	}
}

func TestGrantsAreAmongRecordedActivities(t *testing.T) {
	c := start(t, nil)
	c.submit("alice", "a", "")
	m := c.register("")
	c.get(base + "/scheduler/bulk-activities?activitiesCount=1") // nothing is recorded after its end
	var nodes []string
	for _, n := range c.get(base+"/nodes", "nodes", "node").([]any) {
		nodes = append(nodes, base+"/scheduler/activities?nodeId="+n.(map[string]any)["id"].(string))
	}
	hasGrant := func(considered any) bool {
		for _, one := range considered.([]any) {
			text := fmt.Sprint(one)
			if strings.Contains(text, "finalAllocationState:ALLOCATED") && strings.Contains(text, "name:root.default") &&
				strings.Contains(text, "updatedContainerId:container_") && strings.Contains(text, "requestPriority:5") {
				return true
			}
		}
		return false
	}
	// A node's heartbeat can come between the requests and the grant, and end them. Then the next grant is looked for.
	calls, inBulk, ofNode := int32(0), false, false
	c.until("a grant is in a bulk answer and in a node's", func() bool {
		for _, path := range nodes {
			c.get(path, "activities")
		}
		done := make(chan reply, 1)
		go func() { done <- c.call("GET", base+"/scheduler/bulk-activities?activitiesCount=4", "") }()
		answer, err := m.Allocate(t.Context(), &pb.AllocateRequestProto{
			ResponseId: new(calls), Ask: []*pb.ResourceRequestProto{request(5, "*", 1)},
		})
		calls++
		if err != nil || len(answer.GetAllocatedContainers()) != 1 {
			t.Fatalf("%v: %v", err, answer)
		}
		bulk := <-done
		if bulk.status != http.StatusOK {
			t.Fatalf("bulk: %d %s", bulk.status, bulk.body)
		}
		all := at(t, bulk.body, "bulkActivities", "activities").([]any)
		if len(all) != 4 {
			t.Fatalf("%d considerations", len(all))
		}
		inBulk = inBulk || hasGrant(all)
		for _, path := range nodes {
			if a := c.get(path, "activities", "allocations"); a != nil {
				ofNode = ofNode || hasGrant(a)
			}
		}
		return inBulk && ofNode
	})
	for _, query := range []string{"?activitiesCount=0", "?activitiesCount=x", "?groupBy=color"} {
		if r := c.call("GET", base+"/scheduler/bulk-activities"+query, ""); r.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

func TestActivitiesOfAnApplicationAreRecordedOnRequest(t *testing.T) {
	c := start(t, nil)
	id := c.waiting()
	node := c.nodeOf(id)
	path := base + "/scheduler/app-activities/" + id
	get := func(query string) map[string]any { return c.get(path+query, "appActivities").(map[string]any) }
	if d := get("?actions=get"); d["allocations"] != nil || d["applicationId"] != id || d["diagnostic"] == "" {
		t.Errorf("before a request: %v", d)
	}
	get("?maxTime=60")
	c.until("both nodes were considered twice", func() bool {
		d := get("?actions=get")
		return d["allocations"] != nil && len(d["allocations"].([]any)) >= 4
	})
	d := get("?actions=get&limit=1")
	list := d["allocations"].([]any)
	a := list[0].(map[string]any)
	if len(list) != 1 || a["queueName"] != "root.default" || a["appPriority"] != 0.0 || a["nodeId"] == nil ||
		a["timestamp"] == nil || len(a["children"].([]any)) != 2 {
		t.Fatalf("the newest: %v", list)
	}
	k := a["children"].([]any)[0].(map[string]any)
	if k["requestPriority"] != 2.0 || k["allocationRequestId"] != -1.0 || k["children"] == nil || d["diagnostic"] == "" {
		t.Errorf("an ask: %v", k)
	}
	for query, want := range map[string]int{
		"&requestPriorities=3": 1, "&requestPriorities=2,3": 2, "&allocationRequestIds=-1": 2,
	} {
		list := get("?actions=get" + query)["allocations"].([]any)
		if n := len(list[0].(map[string]any)["children"].([]any)); n != want {
			t.Errorf("%s has %d asks", query, n)
		}
	}
	if d := get("?actions=get&requestPriorities=9"); d["allocations"] != nil {
		t.Errorf("an ask that is not there: %v", d)
	}
	sum := get("?actions=get&summarize=true&groupBy=diagnostic")["allocations"].([]any)
	text := fmt.Sprint(sum)
	if len(sum) != 1 || !strings.Contains(text, "count:") || !strings.Contains(text, node) {
		t.Errorf("summarized: %s", text)
	}
	for _, query := range []string{"?actions=stop", "?maxTime=x", "?limit=0", "?requestPriorities=a", "?groupBy=color"} {
		if d := get(query); d["allocations"] != nil || d["diagnostic"] == "" ||
			strings.Contains(d["diagnostic"].(string), "needs") {
			t.Errorf("%s: %v", query, d)
		}
	}
}
