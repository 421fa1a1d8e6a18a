// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"reflect"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// A node's document has the attributes of its host in Hadoop's form, and an empty object
// where there is none.
func TestAttributesOfNodesOverREST(t *testing.T) {
	c := start(t, nil)
	c.until("both nodes are there", func() bool {
		return c.get(base+"/metrics", "clusterMetrics", "activeNodes").(float64) == 2
	})
	id := c.get(base+"/nodes", "nodes", "node", 0, "id").(string)
	if got := c.get(base+"/nodes/"+id, "node", "nodeAttributesInfo"); len(got.(map[string]any)) != 0 {
		t.Errorf("without attributes: %v", got)
	}
	node, err := creel.ParseNodeID(id)
	if err != nil {
		t.Fatal(err)
	}
	os := rm.Attribute{AttributeKey: rm.AttributeKey{Prefix: rm.AttributesByCall, Name: "os"}, Value: "bsd"}
	err = c.s.MapAttributes(t.Context(), rm.AddAttributes,
		[]rm.HostAttributes{{Host: node.Host, Attributes: []rm.Attribute{os}}}, true)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"nodeAttributeInfo": []any{
		map[string]any{"prefix": "rm.yarn.io", "name": "os", "type": "STRING", "value": "bsd"},
	}}
	if got := c.get(base+"/nodes/"+id, "node", "nodeAttributesInfo"); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
