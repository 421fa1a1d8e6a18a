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

// The ways to split asks that a run may have.
const (
	// HomeFirst is the product's default: home while it fits, then few others.
	HomeFirst = `{"policy":"balanced"}`
	// ByHeadroom shares every ask over all members with room.
	ByHeadroom = `{"policy":"locality","headroomAlpha":1}`
)

// DrawSplit is the split of a seed's run with faults. Three of four share every
// ask over all members: there UAMs are launched, attached and ended all the time,
// and it is in them that most can go wrong.
func DrawSplit(seed uint64) string {
	if seed%4 == 0 {
		return HomeFirst
	}
	return ByHeadroom
}

// documents are the configured policies, and one of root's if there is none, each with
// the run's split unless it has its own.
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
