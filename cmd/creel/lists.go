// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

// nodeDoc is YARN's node document.
type nodeDoc struct {
	ID           string `json:"id"`
	State        string `json:"state"`
	Rack         string `json:"rack"`
	Subcluster   string `json:"subClusterId"`
	HTTP         string `json:"nodeHTTPAddress"`
	Containers   int64  `json:"numContainers"`
	UsedMB       int64  `json:"usedMemoryMB"`
	AvailMB      int64  `json:"availMemoryMB"`
	UsedCores    int64  `json:"usedVirtualCores"`
	AvailCores   int64  `json:"availableVirtualCores"`
	HealthReport string `json:"healthReport"`
	// Opportunistic containers run on resources that guaranteed containers do not use, or are queued.
	Queued        int64 `json:"numQueuedContainers"`
	Opportunistic int64 `json:"numRunningOpportContainers"`
	LentGB        int64 `json:"usedMemoryOpportGB"`
	LentCores     int64 `json:"usedVirtualCoresOpport"`
	Measured      struct {
		MB     int64   `json:"aggregatedContainersPhysicalMemoryMB"`
		VCores float64 `json:"containersCPUUsage"`
	} `json:"resourceUtilization"`
	Lends struct {
		Memory          float64 `json:"memoryThreshold"`
		CPU             float64 `json:"cpuThreshold"`
		PredictedMB     int64   `json:"predictedMemoryMB"`
		PredictedVCores float64 `json:"predictedCPUUsage"`
	} `json:"overallocation"`
	raw json.RawMessage
}

func (n *nodeDoc) UnmarshalJSON(b []byte) error {
	type plain nodeDoc
	if err := json.Unmarshal(b, (*plain)(n)); err != nil {
		return err
	}
	n.raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON returns the document as the server wrote it.
func (n nodeDoc) MarshalJSON() ([]byte, error) { return n.raw, nil }

var nodeColumns = []column[nodeDoc]{
	{"ID", false, func(n nodeDoc) string { return n.ID }},
	{"SUBCLUSTER", false, func(n nodeDoc) string { return n.Subcluster }},
	{"STATE", false, func(n nodeDoc) string { return n.State }},
	{"RACK", false, func(n nodeDoc) string { return n.Rack }},
	{"CONTAINERS", false, func(n nodeDoc) string { return strconv.FormatInt(n.Containers, 10) }},
	{"USED-MEMORY", false, func(n nodeDoc) string { return units.Memory(n.UsedMB) }},
	{"FREE-MEMORY", false, func(n nodeDoc) string { return units.Memory(n.AvailMB) }},
	{"QUEUED", false, func(n nodeDoc) string { return strconv.FormatInt(n.Queued, 10) }},
	{"OPPORTUNISTIC", false, func(n nodeDoc) string { return strconv.FormatInt(n.Opportunistic, 10) }},
	{"LENT-MEMORY", true, func(n nodeDoc) string { return units.Memory(n.LentGB << 10) }},
	{"LENT-VCORES", true, func(n nodeDoc) string { return strconv.FormatInt(n.LentCores, 10) }},
	{"USED-VCORES", true, func(n nodeDoc) string { return strconv.FormatInt(n.UsedCores, 10) }},
	{"FREE-VCORES", true, func(n nodeDoc) string { return strconv.FormatInt(n.AvailCores, 10) }},
	{"MEASURED-MEMORY", true, func(n nodeDoc) string { return units.Memory(n.Measured.MB) }},
	{"MEASURED-VCORES", true, func(n nodeDoc) string { return strconv.FormatFloat(n.Measured.VCores, 'f', 1, 64) }},
	{"LENDS-UP-TO", true, lendsUpTo},
	{"WEB", true, func(n nodeDoc) string { return n.HTTP }},
	{"HEALTH", true, func(n nodeDoc) string { return n.HealthReport }},
}

// lendsUpTo returns the thresholds of a node that lends and the peak that it predicts, "-" if it lends nothing.
func lendsUpTo(n nodeDoc) string {
	o := n.Lends
	if o.Memory == 0 && o.CPU == 0 {
		return "-"
	}
	text := fmt.Sprintf("%.0f%% of memory, %.0f%% of vcores", 100*o.Memory, 100*o.CPU)
	if o.PredictedMB > 0 || o.PredictedVCores > 0 {
		text += fmt.Sprintf(", predicted peak %s and %.1f vcores", units.Memory(o.PredictedMB), o.PredictedVCores)
	}
	return text
}

func nodeCommand() *cobra.Command {
	return daily("node", "list, show, label, drain and decommission nodes", nodeList(), nodeShow(), nodeContainers(),
		nodeDrain(), nodeDecommission(), nodeRecommission(), nodeDrains(), nodeLabels())
}

// nodeQuery selects nodes.
type nodeQuery struct {
	states              []string
	member, name, order string
}

// nodeList reads the nodes from the snapshot that a router's viewers share, or YARN's list of a server without one (a
// ResourceManager). The header lists missing members.
func (f *clientFlags) nodeList(ctx context.Context, by nodeQuery) ([]nodeDoc, http.Header, error) {
	var list []nodeDoc
	page := url.Values{"limit": {"1000"}}
	for name, v := range map[string]string{"subcluster": by.member, "q": by.name, "sort": by.order} {
		if v != "" {
			page.Set(name, v)
		}
	}
	for {
		var doc rest.NodesDoc
		head, err := f.call(ctx, http.MethodGet, "/api/v1/nodes", page, nil, &doc)
		if hasNoSuch(err) {
			return f.yarnNodes(ctx, by)
		}
		if err != nil {
			return nil, head, err
		}
		for _, n := range doc.Nodes {
			if len(by.states) > 0 && !slices.Contains(by.states, n.State) {
				continue
			}
			raw, err := json.Marshal(n)
			if err != nil {
				return nil, head, err
			}
			one := nodeDoc{
				ID: n.ID, State: n.State, Rack: n.Rack, Subcluster: string(n.Member), HTTP: n.Web,
				Containers: n.Containers, UsedMB: n.UsedMB, AvailMB: n.FreeMB, UsedCores: n.UsedVCores,
				AvailCores: n.FreeVCores, HealthReport: n.Health, raw: raw,
				Queued: n.Queued, Opportunistic: n.Opportunistic, LentGB: n.LentMB >> 10, LentCores: n.LentVCores,
			}
			one.Measured.MB, one.Measured.VCores = n.MeasuredMB, n.MeasuredVCores
			one.Lends.Memory, one.Lends.CPU = n.Overallocation.Memory, n.Overallocation.CPU
			one.Lends.PredictedMB = n.Overallocation.PredictedMB
			one.Lends.PredictedVCores = n.Overallocation.PredictedVCores
			list = append(list, one)
		}
		for _, m := range doc.Missing {
			head.Set("X-Partial-Result", "true")
			if page.Get("cursor") == "" {
				head.Add("X-Missing-SubClusters", string(m.Member))
			}
		}
		if doc.Next == "" {
			return list, head, nil
		}
		page.Set("cursor", doc.Next)
	}
}

// yarnNodes reads YARN's list of nodes.
func (f *clientFlags) yarnNodes(ctx context.Context, by nodeQuery) ([]nodeDoc, http.Header, error) {
	if by.member+by.name+by.order != "" {
		return nil, nil, usage(errors.New("a ResourceManager has no --subcluster, --name and --sort: ask a router"))
	}
	q := url.Values{}
	if len(by.states) > 0 {
		q.Set("states", strings.Join(by.states, ","))
	}
	var doc struct {
		Nodes struct {
			Node []nodeDoc `json:"node"`
		} `json:"nodes"`
	}
	head, err := f.call(ctx, http.MethodGet, "/ws/v1/cluster/nodes", q, nil, &doc)
	return doc.Nodes.Node, head, err
}

func nodeList() *cobra.Command {
	var f clientFlags
	var q nodeQuery
	var watch bool
	c := &cobra.Command{Use: "list", Short: "list the nodes of all subclusters", Args: noArguments}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := parseStates(q.states, creel.ParseNodeState); err != nil {
			return err
		}
		return repeat(c, watch, func(out io.Writer) error {
			list, missing, err := f.nodeList(c.Context(), q)
			if err == nil && len(list) == 0 && q.member != "" {
				_, err = f.member(c.Context(), creel.SubclusterID(q.member))
			}
			if err != nil {
				return err
			}
			if err := printList(out, f.printer, list, nodeColumns); err != nil {
				return err
			}
			return partialExit(c, missing)
		})
	}
	f.register(c)
	c.Flags().StringSliceVar(&q.states, "state", nil, "only these `STATES`, by YARN's names")
	c.Flags().StringVar(&q.member, "subcluster", "", "only nodes of the member `ID`")
	c.Flags().StringVar(&q.name, "name", "", "only those with this `TEXT` in their name or rack")
	c.Flags().StringVar(&q.order, "sort", "", "`ORDER`: "+strings.Join(rest.NodeOrders(), ", ")+"; with a - before it, reversed")
	c.Flags().BoolVar(&watch, "watch", false, watchUsage)
	return c
}

// queueDoc is one queue of YARN's scheduler document, of either scheduler.
type queueDoc struct {
	Path        string  `json:"path"`
	State       string  `json:"state,omitempty"`
	Capacity    float64 `json:"absolute_capacity"`     // percent of the federation
	MaxCapacity float64 `json:"absolute_max_capacity"` // percent of the federation
	Used        float64 `json:"absolute_used"`         // percent of the federation
	UsedMB      float64 `json:"used_mb"`
	UsedVCores  float64 `json:"used_vcores"`
	Apps        float64 `json:"applications"`
	Containers  float64 `json:"containers"` // guaranteed ones

	Opportunistic       float64 `json:"opportunistic_containers"`
	OpportunisticMB     float64 `json:"opportunistic_mb"`
	OpportunisticVCores float64 `json:"opportunistic_vcores"`

	MostOpportunistic *float64 `json:"max_opportunistic_containers,omitempty"`
}

// flatten lists a scheduler document's queues, parents before children.
func flatten(path string, q map[string]any, out []queueDoc) []queueDoc {
	num := func(names ...string) float64 {
		for _, n := range names {
			if v, ok := q[n].(float64); ok {
				return v
			}
		}
		return 0
	}
	name, _ := q["queueName"].(string)
	if full, ok := q["queuePath"].(string); ok && full != "" {
		path = full
	} else if path == "" || strings.HasPrefix(name, "root") {
		path = name
	} else {
		path += "." + name
	}
	d := queueDoc{
		Path:        path,
		Capacity:    num("absoluteCapacity", "capacity"),
		MaxCapacity: num("absoluteMaxCapacity", "maxCapacity"),
		Used: num(
			"absoluteUsedCapacity",
			"usedCapacity",
		),
		Apps:       num("numApplications", "numActiveApps"),
		Containers: num("numContainers", "allocatedContainers"),

		Opportunistic:       num("opportunisticContainers"),
		OpportunisticMB:     num("opportunisticMemoryMB"),
		OpportunisticVCores: num("opportunisticVCores"),
	}
	d.State, _ = q["state"].(string)
	if most, ok := q["maxOpportunisticContainers"].(float64); ok {
		d.MostOpportunistic = &most
	}
	if used, ok := q["resourcesUsed"].(map[string]any); ok {
		d.UsedMB, _ = used["memory"].(float64)
		d.UsedVCores, _ = used["vCores"].(float64)
	} else if used, ok := q["usedResources"].(map[string]any); ok {
		d.UsedMB, _ = used["memory"].(float64)
		d.UsedVCores, _ = used["vCores"].(float64)
	}
	at := len(out)
	out = append(out, d)
	for _, key := range []string{"queues", "childQueues", "rootQueue"} {
		switch inner := q[key].(type) {
		case map[string]any:
			if list, ok := inner["queue"].([]any); ok {
				for _, c := range list {
					if m, ok := c.(map[string]any); ok {
						out = flatten(path, m, out)
					}
				}
			} else if inner["queueName"] != nil {
				out = flatten("", inner, out)
			}
		case []any:
			for _, c := range inner {
				if m, ok := c.(map[string]any); ok {
					out = flatten(path, m, out)
				}
			}
		}
	}
	if _, ok := q["resourcesUsed"]; !ok {
		out[at].sum(out[at+1:])
	}
	return out
}

func percentOf(v func(queueDoc) float64) func(queueDoc) string {
	return func(d queueDoc) string { return strconv.FormatFloat(v(d), 'f', 1, 64) + "%" }
}

func wholeOf(v func(queueDoc) float64) func(queueDoc) string {
	return func(d queueDoc) string { return strconv.FormatFloat(v(d), 'f', 0, 64) }
}

func memoryOf(mb func(queueDoc) float64) func(queueDoc) string {
	return func(d queueDoc) string { return units.Memory(int64(mb(d))) }
}

var queueColumns = []column[queueDoc]{
	{"QUEUE", false, func(q queueDoc) string { return q.Path }},
	{"STATE", false, func(q queueDoc) string { return q.State }},
	{"GUARANTEED", false, percentOf(func(q queueDoc) float64 { return q.Capacity })},
	{"MAX", false, percentOf(func(q queueDoc) float64 { return q.MaxCapacity })},
	{"USED", false, percentOf(func(q queueDoc) float64 { return q.Used })},
	{"USED-MEMORY", true, memoryOf(func(q queueDoc) float64 { return q.UsedMB })},
	{"USED-VCORES", true, wholeOf(func(q queueDoc) float64 { return q.UsedVCores })},
	{"APPS", false, wholeOf(func(q queueDoc) float64 { return q.Apps })},
	{"CONTAINERS", false, wholeOf(func(q queueDoc) float64 { return q.Containers })},
	{"OPPORTUNISTIC", false, wholeOf(func(q queueDoc) float64 { return q.Opportunistic })},
	{"OPPORTUNISTIC-MAX", true, func(q queueDoc) string {
		if q.MostOpportunistic == nil {
			return "-"
		}
		return strconv.FormatFloat(*q.MostOpportunistic, 'f', 0, 64)
	}},
	{"OPPORTUNISTIC-MEMORY", true, memoryOf(func(q queueDoc) float64 { return q.OpportunisticMB })},
	{"OPPORTUNISTIC-VCORES", true, wholeOf(func(q queueDoc) float64 { return q.OpportunisticVCores })},
}

func queueCommand() *cobra.Command {
	return daily("queue", "list, show, stop and start queues, and change their federation-wide settings",
		queueList(), queueShow(), queueTree(), queueACL(),
		queueState("stop", "STOPPED"), queueState("start", "RUNNING"),
		queuePreempt(), queueApply(), queueDiff(), queueHistory(), queueRollback(),
		queueMend(), schemaCommand("print the JSON Schema of the federation's queue tree, for editors", rebalancer.Schema))
}

// queueList reads all queues, parents before children.
func (f *clientFlags) queueList(ctx context.Context) ([]queueDoc, http.Header, error) {
	var doc struct {
		Scheduler struct {
			Info map[string]any `json:"schedulerInfo"`
		} `json:"scheduler"`
	}
	head, err := f.call(ctx, http.MethodGet, "/ws/v1/cluster/scheduler", nil, nil, &doc)
	if err != nil {
		return nil, head, err
	}
	return flattened(doc.Scheduler.Info), head, nil
}

// sum fills what the document does not have of a queue, as of Hadoop's root, with the sums of its children.
func (q *queueDoc) sum(below []queueDoc) {
	var all queueDoc
	for _, child := range below {
		if rest, ok := strings.CutPrefix(child.Path, q.Path+"."); !ok || strings.Contains(rest, ".") {
			continue
		}
		all.UsedMB, all.UsedVCores = all.UsedMB+child.UsedMB, all.UsedVCores+child.UsedVCores
		all.Apps, all.Containers = all.Apps+child.Apps, all.Containers+child.Containers
		all.Opportunistic += child.Opportunistic
		all.OpportunisticMB += child.OpportunisticMB
		all.OpportunisticVCores += child.OpportunisticVCores
	}
	for value, sum := range map[*float64]float64{
		&q.UsedMB: all.UsedMB, &q.UsedVCores: all.UsedVCores, &q.Apps: all.Apps, &q.Containers: all.Containers,
		&q.Opportunistic: all.Opportunistic, &q.OpportunisticMB: all.OpportunisticMB,
		&q.OpportunisticVCores: all.OpportunisticVCores,
	} {
		*value = cmp.Or(*value, sum)
	}
}

func flattened(info map[string]any) []queueDoc {
	if root, ok := info["rootQueue"].(map[string]any); ok {
		info = root
	}
	return flatten("", info, nil)
}

// queueSnapshot is queueList from the snapshot that a router's viewers share, at most one second old. Without a
// snapshot it is queueList.
func (f *clientFlags) queueSnapshot(ctx context.Context) ([]queueDoc, http.Header, error) {
	var doc struct {
		Scheduler struct {
			Info map[string]any `json:"schedulerInfo"`
		} `json:"scheduler"`
		Missing []struct {
			Member string `json:"member"`
		} `json:"missing"`
	}
	head, err := f.call(ctx, http.MethodGet, "/api/v1/scheduler", nil, nil, &doc)
	switch {
	case hasNoSuch(err):
		return f.queueList(ctx)
	case err != nil:
		return nil, head, err
	}
	for _, m := range doc.Missing {
		head.Set("X-Partial-Result", "true")
		head.Add("X-Missing-SubClusters", m.Member)
	}
	return flattened(doc.Scheduler.Info), head, nil
}

func queueList() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{Use: "list", Short: "list queues with their use over all subclusters", Args: noArguments}
	c.RunE = func(c *cobra.Command, _ []string) error {
		list, head, err := f.queueSnapshot(c.Context())
		if err != nil {
			return err
		}
		f.headline(c.Context(), c.OutOrStdout())
		if err := printList(c.OutOrStdout(), f.printer, list, queueColumns); err != nil {
			return err
		}
		return partialExit(c, head)
	}
	f.register(c)
	return c
}

// parseStates brings states to YARN's names. An unknown one is a usage error.
func parseStates[T any](states []string, parse func(string) (T, error)) error {
	for i, s := range states {
		states[i] = strings.ToUpper(s)
		if _, err := parse(states[i]); err != nil {
			return usage(fmt.Errorf("--state %s: %w", s, err))
		}
	}
	return nil
}
