// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"

	"github.com/creelrm/creel/internal/webdoc"
)

// SchedulerConfPath is the path for reading and changing the configuration of a CapacityScheduler's queues, if
// yarn.scheduler.configuration.store.class permits it.
const SchedulerConfPath = "/ws/v1/cluster/scheduler-conf"

// ParseSchedulerConf parses its answer: properties by name. The error is an *creel.Error of kind
// creel.ErrInvalidRequest.
func ParseSchedulerConf(data []byte) (map[string]string, error) {
	type properties struct {
		Property webdoc.Many[struct{ Name, Value string }]
	}
	var doc struct {
		properties
		Configuration *properties
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, unreadableDocument("scheduler configuration", err)
	}
	all := doc.properties
	if doc.Configuration != nil {
		all = *doc.Configuration
	}
	out := make(map[string]string, len(all.Property))
	for _, p := range all.Property {
		out[p.Name] = p.Value
	}
	return out, nil
}

// SchedulerConfChange is a requested change: queues by path, with settings by the last parts of their keys. An empty
// value removes a setting.
type SchedulerConfChange struct {
	Remove []string      `json:"remove-queue,omitempty"`
	Add    []QueueParams `json:"add-queue,omitempty"`
	Update []QueueParams `json:"update-queue,omitempty"`
	Global *Params       `json:"global-updates,omitempty"` // by full name
}

// QueueParams are settings of one queue.
type QueueParams struct {
	Queue  string `json:"queue-name"`
	Params Params `json:"params"`
}

// Params are settings.
type Params struct {
	Entry []QueueParam `json:"entry"`
}

// QueueParam is one setting.
type QueueParam struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// Set adds a setting of a queue to a list, after the queue's earlier settings.
func Set(to []QueueParams, queue, key, value string) []QueueParams {
	for i := range to {
		if to[i].Queue == queue {
			to[i].Params.Entry = append(to[i].Params.Entry, QueueParam{key, value})
			return to
		}
	}
	q := QueueParams{Queue: queue}
	q.Params.Entry = []QueueParam{{key, value}}
	return append(to, q)
}
