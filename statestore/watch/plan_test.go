// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// A reader's sequence: when the plan is due, and the state after each read.
func TestThePlanIsReadWhenItIsDue(t *testing.T) {
	data, err := json.Marshal(&subcluster.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	plan := func(version int64) statestore.Document {
		return statestore.Document{Version: version, Time: now, Data: data}
	}
	bad := statestore.Document{Version: 3, Data: []byte("{")}
	a, ab, abc := []string{"a"}, []string{"a", "b"}, []string{"a", "b", "c"}
	var r PlanReader
	for _, step := range []struct {
		after   time.Duration
		heard   bool
		queues  []string
		due     bool
		gives   statestore.Document
		err     error
		told    bool  // an error
		version int64 // of the plan after it
	}{
		{0, false, a, true, plan(1), nil, false, 1},
		{time.Second, false, a, false, plan(0), nil, false, 1},
		{time.Second, true, a, true, plan(0), errors.New("away"), false, 1},
		{time.Second, false, a, true, plan(2), nil, false, 2}, // for the last read failed
		{time.Second, false, ab, true, plan(2), nil, false, 2},
		{time.Second, false, a, false, plan(0), nil, false, 2},
		{Unheard, false, ab, true, plan(2), nil, false, 2},
		{time.Second, true, ab, true, bad, nil, true, 2},
		{time.Second, true, ab, true, bad, nil, false, 2}, // reported once
		{time.Second, false, abc, true, bad, nil, false, 2},
		{time.Second, false, abc, false, bad, nil, false, 2}, // and not looked for again
		{time.Second, true, abc, true, plan(4), nil, false, 4},
		{time.Second, true, abc, true, plan(0), nil, false, 0}, // the store came back without one
	} {
		now = now.Add(step.after)
		if due := r.Due(step.heard, step.queues, now); due != step.due {
			t.Fatalf("%+v: due %v", step, due)
		}
		if step.due {
			if err := r.Read(step.gives, step.err, step.queues, now); (err != nil) != step.told {
				t.Errorf("%+v: it says %v", step, err)
			}
		}
		is := int64(0)
		if p := r.Plan(); p != nil {
			is = p.Version
		}
		if is != step.version {
			t.Errorf("%+v: version %d", step, is)
		}
	}
}
