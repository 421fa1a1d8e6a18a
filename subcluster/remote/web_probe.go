// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/failover"
)

// queuesEvery is how often a Hadoop ResourceManager is asked which release it is, and for its
// scheduler's document, which costs it more than its metrics.
const queuesEvery = 5 * time.Second

// WebMember reads any ResourceManager by its REST server: the data that creel's ResourceManager would report by
// itself. Its methods must not be called concurrently.
type WebMember struct {
	Web *WebPort
	// Nodes, if given, is the digest of its nodes as they are published.
	Nodes func() string
	// Preempted, if set, returns the amounts it took back in intervals of preemption budgets.
	Preempted func() []subcluster.PreemptionSpent
	// Configured, if given, is the parts of its nodes, of each label, that are configured for
	// its queues while others, by the federation's plan, are in force; nil while they are.
	Configured func() map[subcluster.QueueOn]float64
	Log        *slog.Logger // nil: silent

	queues  []subcluster.QueueLoad
	makes   []creel.QueuePath
	labels  subcluster.Labels
	release string    // of Hadoop; "" while it is not known
	asked   time.Time // for the three; zero: at the next Probe
	trouble string
}

// WebPort is the REST server of a ResourceManager, or of a pair of them. It is safe for
// any number of callers.
type WebPort struct {
	hosts []string
	pair  failover.Pair
}

// NewWebPort calls a REST server at host:port, or at those of a pair with commas between.
func NewWebPort(addresses string) *WebPort { return &WebPort{hosts: failover.Hosts(addresses)} }

var webClient = &http.Client{
	Transport: &http.Transport{Proxy: nil, MaxIdleConns: 4},
	CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if to.Response.StatusCode == http.StatusTemporaryRedirect || len(via) > 5 { // 307 is a standby's
			return http.ErrUseLastResponse
		}
		return nil
	},
}

// call makes one call as a client that reads JSON; a call that changes something is not repeated where it may have
// been served.
func (w *WebPort) call(
	ctx context.Context,
	method, path string,
	header http.Header,
	body []byte,
) (code int, answer []byte, err error) {
	head := http.Header{"Accept": {"application/json"}}
	maps.Copy(head, header)
	err = eachWeb(ctx, &w.pair, w.hosts, method == http.MethodGet, func(address string) (err error) {
		code, _, answer, err = callWeb(ctx, webClient, address, method, path, head, body)
		return err
	})
	return code, answer, err
}

// answered is the host that answered last.
func (w *WebPort) answered() string { return w.pair.First(w.hosts) }

func (w *WebPort) get(ctx context.Context, path string, most int) ([]byte, error) {
	code, body, err := w.call(ctx, http.MethodGet, path, nil, nil)
	switch {
	case err != nil:
		return nil, err
	case code != http.StatusOK:
		return nil, fmt.Errorf("%s answers %d %s", path, code, http.StatusText(code))
	case len(body) > most:
		return nil, fmt.Errorf("%s answers more than %d bytes", path, most)
	}
	return body, nil
}

// Version is the Version of its member, as the last Probe found it.
func (w *WebMember) Version() string { return subcluster.VersionOfHadoop(w.release) }

// Probe is a Probe: its cluster metrics, and its release and queues, at most a few seconds old; current ones after an
// outage. A scheduler whose document is not understood has no queues; that is logged once.
func (w *WebMember) Probe(ctx context.Context) ([]byte, error) {
	metrics, err := w.Web.get(ctx, "/ws/v1/cluster/metrics", 4<<20)
	if err != nil {
		w.asked = time.Time{} // another host may answer next
		return nil, err
	}
	load, err := subcluster.ParseLoad(metrics)
	if err != nil {
		return nil, err
	}
	if now := time.Now(); now.Sub(w.asked) >= queuesEvery {
		w.asked = now
		w.tell(errors.Join(w.readRelease(ctx), w.readScheduler(ctx)))
	}
	load.Queues, load.Labels, load.Makes = slices.Clone(w.queues), w.labels, w.makes
	for i := range load.Queues {
		free := load.Metrics.Available().Max(creel.Resource{})
		if p := load.Labels.Find(load.Queues[i].Label); p != nil {
			free = p.Free()
		}
		q := &load.Queues[i].Free
		q.MemoryMB, q.VCores = min(q.MemoryMB, free.MemoryMB), min(q.VCores, free.VCores)
	}
	if w.Configured != nil {
		asConfigured(load.Queues, w.Configured())
	}
	if w.Preempted != nil {
		load.Preempted = w.Preempted()
	}
	if w.Nodes != nil {
		load.Nodes = w.Nodes()
	}
	return load.JSON()
}

// asConfigured makes loads report the configured capacity as capacity, and the one in force as planned, so that no
// plan is derived from a plan.
func asConfigured(queues []subcluster.QueueLoad, shares map[subcluster.QueueOn]float64) {
	all := map[string]creel.Resource{} // by label
	for i := range queues {
		if q := &queues[i]; q.Queue == creel.RootQueue {
			all[q.Label] = q.Capacity
		}
	}
	for i := range queues {
		q := &queues[i]
		if share, ok := shares[subcluster.QueueOn{Queue: q.Queue, Label: q.Label}]; ok {
			planned := q.Capacity
			q.Planned, q.Capacity = &planned, times(all[q.Label], share)
		}
	}
}

func (w *WebMember) tell(err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	if now != "" && now != w.trouble && w.Log != nil {
		w.Log.Warn("failed to refresh the ResourceManager's release, queues or labels", "error", now)
	}
	w.trouble = now
}

// readRelease reads which release of Hadoop it is. A standby's own answer is ignored: in a pair that is being
// upgraded it may run another release.
func (w *WebMember) readRelease(ctx context.Context) error {
	body, err := w.Web.get(ctx, "/ws/v1/cluster/info", 1<<20)
	if err != nil {
		return err
	}
	var doc struct {
		ClusterInfo struct{ HAState, ResourceManagerVersion string }
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return unreadableDocument("info document", err)
	}
	if doc.ClusterInfo.HAState != "STANDBY" {
		w.release = doc.ClusterInfo.ResourceManagerVersion
	}
	return nil
}

// readScheduler reads its queues and labels. Unreadable ones stay unchanged.
func (w *WebMember) readScheduler(ctx context.Context) error {
	scheduler, err := w.Web.get(ctx, "/ws/v1/cluster/scheduler", 64<<20)
	if err != nil {
		return err
	}
	queues, err := ParseScheduler(scheduler)
	if err != nil {
		return err
	}
	w.queues, w.makes = queues, ParseMakes(scheduler)
	list, err := w.Web.get(ctx, "/ws/v1/cluster/get-node-labels", 4<<20)
	if err != nil {
		return err
	}
	labels, err := ParseLabels(scheduler, list)
	if err == nil {
		w.labels = labels
	}
	return err
}

// goneStates are those of nodes that do not come back by themselves.
var goneStates = map[string]bool{"DECOMMISSIONED": true, "SHUTDOWN": true, "LOST": true}

// Racks are its hosts by rack.
func (w *WebMember) Racks(ctx context.Context) (map[string]string, error) {
	body, err := w.Web.get(ctx, "/ws/v1/cluster/nodes", 256<<20)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Nodes *struct {
			Node list[struct {
				Rack, State, NodeHostName string
			}]
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, unreadableDocument("nodes", err)
	}
	racks := map[string]string{}
	if doc.Nodes == nil {
		return racks, nil
	}
	for _, n := range doc.Nodes.Node {
		if !goneStates[n.State] {
			racks[n.NodeHostName] = n.Rack
		}
	}
	return racks, nil
}

func unreadableDocument(which string, err error) error {
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: "the ResourceManager's " + which + " cannot be read",
		Why:  err.Error(),
		Try:  "check that its web address is a ResourceManager's",
	}
}

// list reads values that Hadoop writes as an array, or, where there is one element, as that element alone.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' || string(data) == "null" {
		return json.Unmarshal(data, (*[]T)(l))
	}
	var one T
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*l = list[T]{one}
	return nil
}
