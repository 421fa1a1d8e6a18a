// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// HadoopPreemption reads the amount that Hadoop's CapacityScheduler has preempted, and limits one round. Its methods
// must not be called concurrently.
type HadoopPreemption struct {
	Web  *WebPort
	User string // user of the calls, "" for its static user

	conf  map[string]string // nil: calls cannot change it
	total creel.Resource    // of the cluster, including labelled nodes
}

// PreemptionNow is the present state of preemption.
type PreemptionNow struct {
	Queues []subcluster.QueueLoad
	Taken  creel.Resource // since the ResourceManager's start
	Change bool           // calls may change the limit of one round
	Bound  bool           // Bind has set the limit
}

const (
	perRound = "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round"
	// perRoundBefore is set together with it, so that the administrator's value survives the agent.
	perRoundBefore = "creel.preemption.total_preemption_per_round.before"
	notSet         = "-" // value of perRoundBefore if the property was not set
)

// rootMetrics is the bean of the root queue.
const rootMetrics = "/jmx?qry=Hadoop:service=ResourceManager,name=QueueMetrics,q0=root"

// Read reads the state. For FairScheduler, Hadoop counts nothing.
func (h *HadoopPreemption) Read(ctx context.Context) (now PreemptionNow, err error) {
	body, err := h.Web.get(ctx, "/ws/v1/cluster/scheduler", 64<<20)
	if err != nil {
		return now, err
	}
	if now.Queues, err = ParseScheduler(body); err != nil {
		return now, err
	}
	h.total = creel.Resource{}
	for i := range now.Queues {
		if now.Queues[i].Queue == creel.RootQueue {
			h.total = h.total.Add(now.Queues[i].Capacity)
		}
	}
	if body, err = h.Web.get(ctx, rootMetrics, 1<<20); err != nil {
		return now, err
	}
	if now.Taken, err = parseTaken(body); err != nil {
		return now, err
	}
	if h.conf, err = readConf(ctx, h.Web, h.User); err != nil {
		return now, err
	}
	now.Change = h.conf != nil
	_, now.Bound = h.conf[perRoundBefore]
	return now, nil
}

// parseTaken parses the preempted amount from the root queue's bean.
func parseTaken(data []byte) (creel.Resource, error) {
	var doc struct {
		Beans []struct{ AggregateMemoryMBPreempted, AggregateVcoresPreempted *int64 }
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return creel.Resource{}, unreadableDocument("metrics", err)
	}
	for _, b := range doc.Beans {
		if b.AggregateMemoryMBPreempted != nil && b.AggregateVcoresPreempted != nil {
			return creel.NewResource(*b.AggregateMemoryMBPreempted, *b.AggregateVcoresPreempted), nil
		}
	}
	return creel.Resource{}, unreadableDocument("metrics", errors.New("they lack the preempted resources"))
}

// Bind limits the amount that one round may preempt. Call Read before it.
func (h *HadoopPreemption) Bind(ctx context.Context, most creel.Resource) error {
	part := 0.0
	if m := h.total; m.MemoryMB > 0 && m.VCores > 0 && most.MemoryMB > 0 && most.VCores > 0 {
		// Add half a unit, because Hadoop truncates the product to whole units.
		part = min(1, (float64(most.MemoryMB)+0.5)/float64(m.MemoryMB), (float64(most.VCores)+0.5)/float64(m.VCores))
	}
	text := strconv.FormatFloat(part, 'f', 9, 64)
	before, bound := h.conf[perRoundBefore]
	if !bound {
		var set bool
		if before, set = h.conf[perRound]; !set {
			before = notSet
		}
	}
	if bound && h.conf[perRound] == text {
		return nil
	}
	return h.change(ctx, QueueParam{perRound, text}, QueueParam{perRoundBefore, before})
}

// Restore sets the value that Bind replaced. Call Read before it.
func (h *HadoopPreemption) Restore(ctx context.Context) error {
	before := h.conf[perRoundBefore]
	if before == notSet {
		before = ""
	}
	return h.change(ctx, QueueParam{perRound, before}, QueueParam{perRoundBefore, ""})
}

func (h *HadoopPreemption) change(ctx context.Context, to ...QueueParam) error {
	code, answer, err := callConf(ctx, h.Web, http.MethodPut, h.User, SchedulerConfChange{Global: &Params{to}})
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("it refused to change %s: %d %.300s", perRound, code, bytes.TrimSpace(answer))
	}
	return err
}
