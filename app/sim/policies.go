// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/creelrm/creel"
)

// Policy is a policy document of a queue.
type Policy struct {
	Queue    creel.QueuePath
	Document string
}

// The possible splits of a run.
const (
	// HomeFirst is the product's default: home while it fits, then few others.
	HomeFirst = `{"policy":"balanced"}`
	// ByHeadroom divides every ask over all members with free resources.
	ByHeadroom = `{"policy":"locality","headroomAlpha":1}`
)

// DrawSplit draws the split of a seed's run with faults. Three of four divide every ask over all members: then UAMs
// are launched, attached and ended all the time, and most errors are possible in them.
func DrawSplit(seed uint64) string {
	if seed%4 == 0 {
		return HomeFirst
	}
	return ByHeadroom
}

// documents returns the configured policies, with one for root if there is none, each with the run's split unless it
// has a split.
func (c *Config) documents() ([]Policy, error) {
	out := slices.Clone(c.Policies)
	if !slices.ContainsFunc(out, func(p Policy) bool { return p.Queue == "root" }) {
		out = append([]Policy{{Queue: "root", Document: "{}"}}, out...)
	}
	for i := range out {
		keys := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(out[i].Document), &keys); err != nil {
			return nil, fmt.Errorf("sim: policy of %s: %w", out[i].Queue, err)
		}
		if _, own := keys["split"]; !own && c.Split != "" {
			keys["split"] = json.RawMessage(c.Split)
		}
		b, err := json.Marshal(keys)
		if err != nil {
			return nil, fmt.Errorf("sim: policy of %s: %w", out[i].Queue, err)
		}
		out[i].Document = string(b)
	}
	return out, nil
}
