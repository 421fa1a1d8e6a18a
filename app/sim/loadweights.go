// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"slices"

	"github.com/creelrm/creel/subcluster"
)

// These are Hadoop's defaults of yarn.federation.gpg.policy.generator.load-based. At most mostEdited members are
// edited. Members with at most pendingMin waiting applications have the weight 1, those with pendingMax the least
// weight.
const (
	mostEdited = 3
	pendingMin = 100
	pendingMax = 1000
	leastLoad  = 0.0
)

// loadWeights are the weights of Hadoop's LoadBasedGlobalPolicy with its default linear scaling: by the number of
// applications that wait in a member, in any queue.
func loadWeights(view *subcluster.View) map[string]float64 {
	type member struct {
		id      string
		pending int64
	}
	var all []member
	weights, sum := map[string]float64{}, 0.0
	for i := range view.Members {
		if m := &view.Members[i]; m.State == subcluster.StateActive {
			all = append(all, member{string(m.ID), m.Load.Metrics.AppsPending})
			weights[string(m.ID)] = 1
		}
	}
	slices.SortStableFunc(all, func(a, b member) int { return int(b.pending - a.pending) })
	for _, m := range all[:min(mostEdited, len(all))] {
		part := float64(m.pending-pendingMin) / (pendingMax - pendingMin)
		weights[m.id] = 1 - min(max(part, 0), 1)*(1-leastLoad)
	}
	for _, w := range weights {
		sum += w
	}
	for id, w := range weights {
		if weights[id] = w / max(sum, 1); sum == 0 {
			weights[id] = 1 // all are full: equal weights
		}
	}
	return weights
}

// weigh reads the members' reports, every planEvery.
func (p *planner) weigh() {
	w := p.w
	w.on(p.at, planEvery, p.weigh)
	call(w, p.at, w.storeAt, readTime, func(reply func(subcluster.Records, error)) {
		reply(atStore(w, false, func() (subcluster.Records, error) { return w.store.Records(w.storeClock()), nil }))
	}, func(r subcluster.Records, err error) {
		if err == nil {
			p.view = subcluster.Build(p.view, r, r.Now)
			p.followLoad(p.view)
		}
	})
}

// followLoad publishes weights by load for homes and splits of all queues, instead of a plan: Hadoop writes a
// weighted locality policy with a headroomAlpha of 0.
func (p *planner) followLoad(view *subcluster.View) {
	weights := loadWeights(view)
	if len(weights) == 0 {
		return
	}
	document, err := json.Marshal(map[string]any{
		"home":  map[string]any{"policy": "weighted", "weights": weights},
		"split": map[string]any{"policy": "locality", "weights": weights, "headroomAlpha": 0},
	})
	if err != nil {
		p.w.audit.breach("weights cannot be written: %v", err)
		return
	}
	call(p.w, p.at, p.w.storeAt, readTime, func(reply func(bool, error)) {
		reply(atStore(p.w, true, func() (bool, error) { return true, p.w.putRootPolicy(string(document)) }))
	}, func(bool, error) {}) // the next round repeats it
}
