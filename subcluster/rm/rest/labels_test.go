// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"encoding/xml"
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// Labels are made, given to nodes, read and taken away over REST, in the forms that
// clients of Hadoop know.
func TestLabelsOverREST(t *testing.T) {
	c := start(t, func(s *server.Config) {
		s.Machine.Labels = rm.LabelsByCall
		q := &s.Machine.Queues.Root
		q.Children[0].Labels = []string{"gpu"}
		q.Children[0].Shares = []queues.LabelShare{{Label: "gpu", Capacity: queues.PercentOf(100)}}
		q.Children[1].Labels = []string{}
	})
	c.until("both nodes are there", func() bool {
		return c.get(base+"/metrics", "clusterMetrics", "activeNodes").(float64) == 2
	})
	const root = "?user.name=root"
	id := c.get(base+"/nodes", "nodes", "node", 0, "id").(string)
	post := func(status int, path, body, says string) {
		t.Helper()
		if r := c.call("POST", base+path, body); r.status != status || !strings.Contains(r.body, says) ||
			status == 200 && r.body != "" {
			t.Errorf("POST %s %s: %d %s, want %d with %q", path, body, r.status, r.body, status, says)
		}
	}
	post(401, "/add-node-labels?user.name=eve", `{"nodeLabelInfo":[{"name":"gpu"}]}`, "User eve not authorized")
	post(200, "/add-node-labels"+root, `{"nodeLabelInfo":[{"name":"gpu","exclusivity":true}]}`, "")
	post(200, "/add-node-labels"+root,
		`<nodeLabelsInfo><nodeLabelInfo><name>ssd</name><exclusivity>false</exclusivity></nodeLabelInfo></nodeLabelsInfo>`, "")
	post(200, "/add-node-labels"+root, `{"nodeLabelInfo":{"name":"old","exclusivity":"true"}}`, "")
	post(400, "/add-node-labels"+root, `{"nodeLabelInfo":[{"name":"gpu","exclusivity":"false"}]}`,
		"java.io.IOException: Exclusivity cannot be modified")
	post(200, "/remove-node-labels"+root+"&labels=old", "", "")
	post(400, "/remove-node-labels"+root+"&labels=gpu", "", "queue=root.default is using this label")
	post(200, "/replace-node-to-labels"+root, `{"nodeToLabels":[{"nodeId":"`+id+`","labels":["gpu"]}]}`, "")
	post(200, "/nodes/elsewhere:0/replace-labels"+root+"&labels=ssd", "", "")
	post(400, "/nodes/"+id+"/replace-labels"+root+"&labels=gpu&labels=ssd", "", "2 labels specified on host")

	same := func(path, want string) {
		t.Helper()
		var got, wanted any
		r := c.call("GET", base+path, "")
		if json.Unmarshal([]byte(r.body), &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil ||
			!reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: %d %s, want %s", path, r.status, r.body, want)
		}
	}
	known := c.get(base+"/get-node-labels", "nodeLabelInfo").([]any)
	if len(known) != 2 {
		t.Fatalf("labels: %v", known)
	}
	for i, want := range []struct{ name, exclusive, memory string }{{"gpu", "true", "8192"}, {"ssd", "false", "0"}} {
		label := known[i].(map[string]any)
		has := label["partitionInfo"].(map[string]any)["resourceAvailable"].(map[string]any)
		if label["name"] != want.name || label["exclusivity"] != want.exclusive || has["memory"] != want.memory {
			t.Errorf("label %v, want %v", label, want)
		}
	}
	same("/nodes/"+id+"/get-labels", `{"nodeLabelInfo":{"name":"gpu","exclusivity":"true"}}`)
	if got := c.get(base+"/get-node-to-labels", "nodeToLabels", "entry"); len(got.([]any)) != 2 {
		t.Errorf("labels of nodes: %v", got)
	}
	if got := c.get(base+"/label-mappings?labels=gpu", "labelsToNodes", "entry", "value", "nodes"); got != id {
		t.Errorf("nodes of gpu: %v", got)
	}
	parts := c.get(base+"/get-rm-node-labels", "nodeLabelInfo").([]any)
	if len(parts) != 3 || parts[0].(map[string]any)["name"] != "<DEFAULT_PARTITION>" ||
		parts[0].(map[string]any)["activeNMs"] != "1" || parts[1].(map[string]any)["activeNMs"] != "1" {
		t.Errorf("partitions: %v", parts)
	}
	if got := c.get(base+"/nodes/"+id, "node", "nodeLabels"); !reflect.DeepEqual(got, []any{"gpu"}) {
		t.Errorf("labels in the node's document: %v", got)
	}
	queue := c.get(base+"/scheduler", "scheduler", "schedulerInfo", "queues", "queue", 0).(map[string]any)
	rows := queue["capacities"].(map[string]any)["queueCapacitiesByPartition"].([]any)
	if len(rows) != 2 || rows[1].(map[string]any)["partitionName"] != "gpu" ||
		rows[1].(map[string]any)["capacity"].(float64) != 100 || !reflect.DeepEqual(queue["nodeLabels"], []any{"gpu"}) {
		t.Errorf("rows of queue default: %v of labels %v", rows, queue["nodeLabels"])
	}
	total := c.get(base+"/metrics", "clusterMetrics", "totalClusterResourcesAcrossPartition", "memory").(float64)
	if one := c.get(base+"/metrics", "clusterMetrics", "totalMB").(float64); one*2 != total {
		t.Errorf("%v MB without a label of %v in all", one, total)
	}
	var doc struct {
		XMLName xml.Name `xml:"nodeLabelsInfo"`
		Labels  []struct {
			Name      string `xml:"name"`
			Exclusive bool   `xml:"exclusivity"`
		} `xml:"nodeLabelInfo"`
	}
	r := c.call("GET", base+"/get-node-labels", "", "Accept", "application/xml")
	if err := xml.Unmarshal([]byte(r.body), &doc); err != nil || len(doc.Labels) != 2 || doc.Labels[1].Name != "ssd" {
		t.Errorf("as XML: %v %s", err, r.body)
	}

	// An application's AM is placed by its label, and its report shows the label.
	app := c.submit("alice", "labelled", `,"queue":"default","am-container-node-label-expression":"gpu"`)
	<-c.ams
	c.until("the AM is on the node", func() bool {
		return c.get(base+"/apps/"+app, "app", "allocatedMB").(float64) == 256
	})
	if got := c.get(base+"/apps/"+app, "app", "amNodeLabelExpression"); got != "gpu" {
		t.Errorf("label of the AM: %v", got)
	}
	if got := c.get(base+"/nodes/"+id, "node", "numContainers").(float64); got != 1 {
		t.Errorf("%v containers on the labelled node", got)
	}
	for _, who := range []string{"other", "default"} {
		r := c.call("POST", base+"/apps?user.name=alice", `{"application-id":"`+
			at(t, c.call("POST", base+"/apps/new-application?user.name=alice", "").body, "application-id").(string)+
			`","queue":"`+who+`","app-node-label-expression":"ssd","resource":{"memory":256,"vCores":1},`+
			`"am-container-spec":{"commands":{"command":"x"}}}`)
		if r.status != 400 || !strings.Contains(r.body, "doesn't have permission to access all labels") {
			t.Errorf("label ssd in queue %s: %d %s", who, r.status, r.body)
		}
	}
}
