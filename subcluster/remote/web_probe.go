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
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/failover"
	"github.com/creelrm/creel/subcluster/login"
)

// queuesEvery is the pause between requests for a Hadoop ResourceManager's release and scheduler document, which cost
// it more than its metrics.
const queuesEvery = 5 * time.Second

// WebMember reads any ResourceManager by its REST server: the data that creel's ResourceManager would report itself.
// Its methods must not be called concurrently.
type WebMember struct {
	Web *WebPort
	// Nodes, if set, is the digest of the member's published nodes.
	Nodes func() string
	// Preempted, if set, returns the amounts that the member preempted in intervals of preemption budgets.
	Preempted func() []subcluster.PreemptionSpent
	// Configured, if set, returns the queues' configured shares of the nodes of each label while a plan's shares
	// replace them; nil while the configured ones are in force.
	Configured func() map[subcluster.QueueOn]float64
	Log        *slog.Logger // nil: silent

	queues  []subcluster.QueueLoad
	makes   []creel.QueuePath
	labels  subcluster.Labels
	release string    // of Hadoop; "" while unknown
	asked   time.Time // time of the last request for these three; zero: request at the next Probe
	trouble string
}

// WebPort is the REST server of a ResourceManager, or of an HA pair. It is safe for any number of callers.
type WebPort struct {
	scheme string
	hosts  []string
	pair   failover.Pair
	client *http.Client
}

// NewWebPort makes the WebPort of a ResourceManager, or of a pair, at its addresses. dialTLS is as in Config.
func NewWebPort(at subcluster.Addresses, as login.Login, dialTLS DialTLS) *WebPort {
	transport, jar := as.Web(&http.Transport{Proxy: nil, MaxIdleConns: 4, DialTLSContext: dialTLS})
	return &WebPort{scheme: at.Scheme(), hosts: failover.Hosts(at.Web), client: &http.Client{
		Transport: transport,
		Jar:       jar,
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if to.Response.StatusCode == http.StatusTemporaryRedirect || len(via) > 5 { // 307 comes from a standby
				return http.ErrUseLastResponse
			}
			return nil
		},
	}}
}

// call makes one call for a JSON answer; a call that changes something is not repeated if it may have been served.
func (w *WebPort) call(
	ctx context.Context,
	method, path string,
	header http.Header,
	body []byte,
) (code int, answer []byte, err error) {
	head := http.Header{"Accept": {"application/json"}}
	maps.Copy(head, header)
	err = eachWeb(ctx, &w.pair, w.hosts, method == http.MethodGet, func(address string) (err error) {
		code, _, answer, err = callWeb(ctx, w.client, w.scheme+"://"+address, method, path, head, body)
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

// Version is the member's Version, as found by the last Probe.
func (w *WebMember) Version() string { return subcluster.VersionOfHadoop(w.release) }

// Probe is a Probe: it returns the cluster metrics, with release and queues that are at most a few seconds old, and
// current after an outage. A scheduler with an unknown document has no queues; that is logged once.
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

// asConfigured makes loads report the configured capacity as capacity, and the capacity in force as planned, so that
// no plan is computed from a plan.
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

// readRelease reads the release of Hadoop. It ignores a standby's answer: in a pair during an upgrade, the standby
// may run another release.
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

// readScheduler reads the queues and labels. Unreadable ones stay unchanged.
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

// goneStates are the states of nodes that do not return by themselves.
var goneStates = map[string]bool{"DECOMMISSIONED": true, "SHUTDOWN": true, "LOST": true}

// Racks returns the rack of each host.
func (w *WebMember) Racks(ctx context.Context) (map[string]string, error) {
	body, err := w.Web.get(ctx, "/ws/v1/cluster/nodes", 256<<20)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Nodes *struct {
			Node webdoc.Many[struct {
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
