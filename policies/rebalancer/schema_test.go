// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A field that ParseTree reads and the schema does not name would be rejected by editors.
func TestSchemaMatchesParseTree(t *testing.T) {
	var schema struct {
		Properties struct {
			Queues struct {
				Items struct{ Properties map[string]any }
			}
		}
	}
	if err := json.Unmarshal([]byte(Schema), &schema); err != nil {
		t.Fatal(err)
	}
	named := slices.Sorted(maps.Keys(schema.Properties.Queues.Items.Properties))
	var read []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[queueJSON]()) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		read = append(read, name)
	}
	slices.Sort(read)
	if !slices.Equal(named, read) {
		t.Errorf("the schema names %q, ParseTree reads %q", named, read)
	}
}
