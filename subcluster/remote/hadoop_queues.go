// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// HadoopQueues reads the usage and limits of queues of Hadoop's CapacityScheduler, and changes the limits, by
// maximum-capacity. Its methods must not be called concurrently.
type HadoopQueues struct {
	Web  *WebPort
	User string // user of the calls, "" for its static user
	// Linger is the time for which a cluster that has shrunk counts with its earlier size, because a percentage
	// yields more again when its nodes return.
	Linger time.Duration

	conf   map[string]string   // nil: calls cannot change it
	asked  time.Time           // time of the last request for it
	told   string              // host of an HA pair that answered; the configurations of the hosts may differ
	sizes  map[string][]sizeAt // recent sizes of the cluster's nodes, by label
	maxima map[subcluster.QueueOn]creel.Resource
}

type sizeAt struct {
	at   time.Time
	size creel.Resource
}

// QueueNow is a queue's present state.
type QueueNow struct {
	Uses, Needs creel.Resource
	// Most is its limit by its maximum, for the largest recent size of the cluster.
	Most creel.Resource
}

// forAM is the assumed need of an application that waits for its AM, if Hadoop reports no pending asks. Otherwise a
// queue whose maximum permits no AM would never get more. Reported pending asks already include waiting AMs.
var forAM = creel.NewResource(2048, 1)

// confEvery is the pause between requests for the configuration that calls can change.
const confEvery = 30 * time.Second

// Read returns the queues, and whether their maxima can be changed.
func (h *HadoopQueues) Read(ctx context.Context) (map[subcluster.QueueOn]QueueNow, bool, error) {
	body, err := h.Web.get(ctx, "/ws/v1/cluster/scheduler", 64<<20)
	if err != nil {
		return nil, false, err
	}
	loads, err := ParseScheduler(body)
	if err != nil {
		return nil, false, err
	}
	most, err := parseMaxima(body)
	if err != nil {
		return nil, false, err
	}
	out := map[subcluster.QueueOn]QueueNow{}
	h.maxima = map[subcluster.QueueOn]creel.Resource{}
	factors := map[string]float64{}
	for of, is := range most {
		if of.Queue == creel.RootQueue {
			factors[of.Label] = h.grow(time.Now(), of.Label, is)
		}
	}
	for i := range loads {
		q := &loads[i]
		of := subcluster.QueueOn{Queue: q.Queue, Label: q.Label}
		lately := times(most[of], max(1, factors[q.Label]))
		h.maxima[of] = creel.Resource{MemoryMB: lately.MemoryMB, VCores: lately.VCores, Others: most[of].Others}
		needs := q.Used.Add(q.Pending)
		if q.Pending.IsZero() {
			needs = needs.Add(forAM.Scale(q.AppsPending, 1))
		}
		out[of] = QueueNow{Uses: q.Used, Needs: needs, Most: lately}
	}
	if now := time.Now(); h.asked.IsZero() || now.Sub(h.asked) >= confEvery || h.told != h.Web.answered() {
		if h.conf, err = readConf(ctx, h.Web, h.User); err != nil {
			return nil, false, err
		}
		h.asked, h.told = now, h.Web.answered()
	}
	return out, h.conf != nil, nil
}

// grow stores the sizes, within Linger, of the nodes with a label, and returns the largest as a multiple of the
// current size.
func (h *HadoopQueues) grow(now time.Time, label string, size creel.Resource) (factor float64) {
	sizes := slices.DeleteFunc(h.sizes[label], func(s sizeAt) bool {
		return now.Sub(s.at) > h.Linger || s.size.MemoryMB <= size.MemoryMB
	})
	if h.sizes == nil {
		h.sizes = map[string][]sizeAt{}
	}
	h.sizes[label] = append(sizes, sizeAt{now, size})
	if size.MemoryMB == 0 {
		return 1
	}
	return float64(h.sizes[label][0].size.MemoryMB) / float64(size.MemoryMB)
}

func times(r creel.Resource, by float64) creel.Resource {
	return creel.NewResource(int64(math.Ceil(float64(r.MemoryMB)*by)), int64(math.Ceil(float64(r.VCores)*by)))
}

// readConf reads a ResourceManager's configuration as a user; nil if calls cannot change it.
func readConf(ctx context.Context, web *WebPort, user string) (map[string]string, error) {
	code, body, err := callConf(ctx, web, http.MethodGet, user, nil)
	if err != nil || code != http.StatusOK {
		return nil, err
	}
	return ParseSchedulerConf(body)
}

func callConf(ctx context.Context, web *WebPort, method, user string, body any) (int, []byte, error) {
	path := SchedulerConfPath
	if user != "" {
		path += "?" + url.Values{"user.name": {user}}.Encode()
	}
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	return web.call(ctx, method, path, http.Header{"Content-Type": {"application/json"}}, data)
}

// Limit restricts queues to these amounts, or to their guarantee if that is more. It returns an error if the
// ResourceManager did not confirm. With unclear there was no answer: the ResourceManager may have applied the change,
// or may do so later. Call Read before it.
func (h *HadoopQueues) Limit(ctx context.Context, to map[creel.QueuePath]creel.Resource) (unclear bool, err error) {
	paths := make([]creel.QueuePath, 0, len(to))
	for path := range to {
		paths = append(paths, path)
	}
	slices.Sort(paths) // a queue comes before its descendants
	var order SchedulerConfChange
	limits := map[creel.QueuePath]creel.Resource{} // the limits after the change
	for _, path := range paths {
		above, changed := limits[path.Parent()]
		if !changed {
			above = h.maxima[subcluster.QueueOn{Queue: path.Parent()}]
		}
		text, is := h.text(path, to[path], above)
		limits[path] = is
		key := "yarn.scheduler.capacity." + string(path) + ".maximum-capacity"
		if h.conf[key] == text {
			continue
		}
		order.Update = Set(order.Update, string(path), "maximum-capacity", text)
	}
	if len(order.Update) == 0 {
		return false, nil
	}
	h.asked = time.Time{} // the configuration has changed
	code, answer, err := callConf(ctx, h.Web, http.MethodPut, h.User, order)
	switch {
	case err != nil:
		return true, err
	case code != http.StatusOK:
		return false, fmt.Errorf("it refused to change its queues: %d %.300s", code, bytes.TrimSpace(answer))
	}
	return false, nil
}

// text returns a queue's limit in the unit of its capacity, rounded down, and the amount that it represents: its
// guarantee, if that is larger.
func (h *HadoopQueues) text(path creel.QueuePath, to, above creel.Resource) (text string, is creel.Resource) {
	key := "yarn.scheduler.capacity." + string(path) + ".capacity"
	capacity := strings.TrimSpace(h.conf[key])
	if amounts, ok := strings.CutPrefix(capacity, "["); ok {
		// The ResourceManager rejects a maximum above the parent's or below the guarantee. It treats zero memory as
		// no maximum, and a missing type as zero.
		least, _ := creel.ParseResource(strings.TrimSuffix(amounts, "]")) // zero in mixed units
		is = to.Min(above).Max(least)
		text = fmt.Sprintf("[memory=%d,vcores=%d", max(1, is.MemoryMB), is.VCores)
		for _, a := range h.maxima[subcluster.QueueOn{Queue: path}].Others {
			text += fmt.Sprintf(",%s=%d", a.Name, a.Value)
		}
		return text + "]", is
	}
	part := float64(to.MemoryMB) / float64(max(1, above.MemoryMB))
	if above.VCores > 0 {
		part = min(part, float64(to.VCores)/float64(above.VCores))
	}
	percent := min(100, math.Floor(part*100_000)/1000)
	// The ResourceManager rejects a maximum below the guarantee: the present one, and the one restored when a plan
	// ends.
	for _, text := range []string{capacity, subcluster.ConfiguredQueues(h.conf)[key]} {
		if least, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			percent = max(percent, least)
		}
	}
	return strconv.FormatFloat(percent, 'f', -1, 64), times(above, percent/100)
}

// parseMaxima parses each queue's maximum.
func parseMaxima(data []byte) (map[subcluster.QueueOn]creel.Resource, error) {
	var doc struct {
		Scheduler struct {
			SchedulerInfo struct {
				Type string
				capacityQueue
			}
		}
	}
	out := map[subcluster.QueueOn]creel.Resource{}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, unreadableDocument("scheduler", err)
	}
	if doc.Scheduler.SchedulerInfo.Type == "fairScheduler" {
		return fairMaxima(data)
	}
	var walk func(q *capacityQueue, parent string)
	walk = func(q *capacityQueue, parent string) {
		name := q.QueueName[strings.LastIndexByte(q.QueueName, '.')+1:]
		if parent != "" {
			name = parent + "." + name
		}
		for i := range q.Capacities.QueueCapacitiesByPartition {
			c := &q.Capacities.QueueCapacitiesByPartition[i]
			of := subcluster.QueueOn{Queue: creel.QueuePath(name), Label: c.PartitionName}
			out[of] = c.EffectiveMaxResource.resource()
		}
		if q.Queues != nil {
			for i := range q.Queues.Queue {
				walk(&q.Queues.Queue[i], name)
			}
		}
	}
	walk(&doc.Scheduler.SchedulerInfo.capacityQueue, "")
	return out, nil
}

func fairMaxima(data []byte) (map[subcluster.QueueOn]creel.Resource, error) {
	var doc struct {
		Scheduler struct {
			SchedulerInfo struct{ RootQueue *fairQueue }
		}
	}
	out := map[subcluster.QueueOn]creel.Resource{}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, unreadableDocument("scheduler", err)
	}
	var walk func(q *fairQueue)
	walk = func(q *fairQueue) {
		out[subcluster.QueueOn{Queue: creel.QueuePath(q.QueueName)}] = q.MaxResources.resource()
		if q.ChildQueues != nil {
			for i := range q.ChildQueues.Queue {
				walk(&q.ChildQueues.Queue[i])
			}
		}
	}
	if q := doc.Scheduler.SchedulerInfo.RootQueue; q != nil {
		walk(q)
	}
	return out, nil
}
