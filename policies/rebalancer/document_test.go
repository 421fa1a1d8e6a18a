// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel"
)

func TestTreesThatPromiseTooMuchAreRefused(t *testing.T) {
	total := creel.NewResource(100<<10, 100)
	for _, c := range []struct{ why, doc string }{
		{"unknown field \"maximun\"", `{"queues":[{"queue":"root.a","maximun":"40%"}]}`},
		{"100", `{"queues":[{"queue":"root.a","maximum":"140%"}]}`},
		{"no part of the federation", `{"queues":[{"queue":"root.a","maximum":"40"}]}`},
		{"120% of the federation together", `{"queues":[{"queue":"root.a","guarantee":"70%"},{"queue":"root.b","guarantee":"50%"}]}`},
		{"the federation has", `{"queues":[{"queue":"root.a","guarantee":{"memory":90000}},{"queue":"root.b","guarantee":{"memory":90000}}]}`},
		{"below its guarantee", `{"queues":[{"queue":"root.a","guarantee":"50%","maximum":"40%"}]}`},
		{"above that of root.a", `{"queues":[{"queue":"root.a","maximum":"40%"},{"queue":"root.a.x","maximum":"50%"}]}`},
		{"and it is guaranteed", `{"queues":[{"queue":"root.a","guarantee":"40%"},{"queue":"root.a.x","guarantee":"50%"}]}`},
		{"the maximum of root.a", `{"queues":[{"queue":"root.a","maximum":"40%"},{"queue":"root.a.x","guarantee":"50%"}]}`},
		{"named twice", `{"queues":[{"queue":"root.a"},{"queue":"root.a"}]}`},
		{"full path", `{"queues":[{"queue":"a"}]}`},
	} {
		tree, err := ParseTree([]byte(c.doc), 1)
		if err == nil {
			tree.Resolve(total, 0)
			err = tree.Check(total)
		}
		if !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.doc, err, c.why)
		}
	}
}

// Percentages become amounts, follow the federation's size, and the document that is
// written reads as it was.
func TestPercentagesFollowTheFederation(t *testing.T) {
	tree, err := ParseTree([]byte(`{"queues":[{"queue":"root.a","guarantee":"20%","maximum":{"percent":40}},
		{"queue":"root.b","weight":2,"maximum":{"memory":1000},"optout":true}]}`), 3)
	if err != nil {
		t.Fatal(err)
	}
	if !tree.Resolve(creel.NewResource(1000, 100), 0.01) {
		t.Fatal("nothing was resolved")
	}
	if err := tree.Check(creel.NewResource(1000, 100)); err != nil {
		t.Fatal(err)
	}
	if q := tree.Find(
		"root.a",
	); !q.Maximum.Equal(creel.NewResource(400, 40)) ||
		!q.Guarantee.Equal(creel.NewResource(200, 20)) {
		t.Fatalf("%+v", q)
	}
	if tree.Resolve(creel.NewResource(1005, 100), 0.01) {
		t.Error("half a percent more changed the document")
	}
	if !tree.Resolve(creel.NewResource(2000, 100), 0.01) || tree.Find("root.a").Maximum.MemoryMB != 800 {
		t.Errorf("twice the federation: %+v", tree.Find("root.a"))
	}
	data, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTree(data, 3)
	if err != nil || !reflect.DeepEqual(again, tree) {
		t.Fatalf("%s reads as %+v, %v; it was %+v", data, again, err, tree)
	}
}
