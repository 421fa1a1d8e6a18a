// SPDX-License-Identifier: Apache-2.0

package subcluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

func TestStoreReadOutcomes(t *testing.T) {
	refuse := func(_ creel.QueuePath, document []byte) error {
		if string(document) == "bad" {
			return errors.New("it is bad")
		}
		return nil
	}
	read := func(version int64, document string) subcluster.Records {
		p := subcluster.Policy{Queue: "root.a", Version: version, Document: []byte(document)}
		return subcluster.Records{Now: time.Unix(1000, 0), Policies: []subcluster.Policy{p}}
	}
	o := subcluster.Observer{Validate: refuse}
	silent := errors.New("no answer")
	if v := o.Observe(nil, subcluster.Records{}, silent); v != nil {
		t.Errorf("a view of nothing: %+v", v)
	}
	v := o.Observe(nil, read(1, "good"), nil)
	if p, ok := v.Policies.At("root.a"); !ok || p.Version != 1 {
		t.Fatalf("the first policy: %+v, %v", p, ok)
	}
	shared := read(2, "bad")
	v = o.Observe(v, shared, nil)
	if p, _ := v.Policies.At("root.a"); p.Version != 1 || len(v.Problems) != 1 ||
		!strings.Contains(v.Problems[0], "version 2") {
		t.Errorf("a document that is refused: version %d holds, problems %q", p.Version, v.Problems)
	}
	if shared.Policies[0].Version != 2 {
		t.Error("the store's own slice was written")
	}
	v = o.Observe(v, subcluster.Records{}, silent)
	if p, ok := v.Policies.At("root.a"); !ok || p.Version != 1 || v.Freeze == nil {
		t.Errorf("a silent store: %+v, frozen %v", p, v.Freeze)
	}
	if v = o.Observe(nil, read(2, "bad"), nil); len(v.Problems) != 1 {
		t.Errorf("a first document that is refused: %q", v.Problems)
	}
}
