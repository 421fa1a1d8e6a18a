// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// appFilter is the query of a list of applications.
type appFilter struct {
	states                                               []creel.ApplicationState
	types, tags                                          []string
	final                                                *creel.FinalStatus
	user, queue, name                                    string
	limit                                                int
	startedBegin, startedEnd, finishedBegin, finishedEnd *int64
	deselect                                             map[string]bool
	routed                                               bool // the caller is a router
}

// routed reports whether the caller is a router.
func routed(r *http.Request) bool { return r.Header.Get(subcluster.RouterHeader) != "" }

func set(r *http.Request, name string) (out []string) {
	for _, list := range r.URL.Query()[name] {
		for v := range strings.SplitSeq(list, ",") {
			if v = strings.TrimSpace(v); v != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

func parseFilter(r *http.Request) (f appFilter, err error) {
	q := r.URL.Query()
	f.routed = routed(r)
	for _, s := range append(set(r, "states"), set(r, "state")...) {
		state, err := parseState(s)
		if err != nil {
			return f, err
		}
		f.states = append(f.states, state)
	}
	if s := q.Get("finalStatus"); s != "" {
		final, err := creel.ParseFinalStatus(s)
		if err != nil {
			return f, &refusal{
				http.StatusBadRequest,
				classIllegal,
				"No enum constant org.apache.hadoop.yarn.api.records.FinalApplicationStatus." + s,
			}
		}
		f.final = &final
	}
	f.user, f.queue, f.name = q.Get("user"), q.Get("queue"), q.Get("name")
	if s := q.Get("limit"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return f, badRequest(cause + "limit value must be a number!")
		}
		if n <= 0 {
			return f, badRequest(cause + "limit value must be greater then 0")
		}
		f.limit = int(min(n, 1<<31))
	}
	for _, p := range []struct {
		name, yarn string // in the query's spelling, and in that of YARN's errors
		to         **int64
	}{
		{"startedTimeBegin", "startedTimeBegin", &f.startedBegin},
		{"startedTimeEnd", "startedTimeEnd", &f.startedEnd},
		{"finishedTimeBegin", "finishTimeBegin", &f.finishedBegin},
		{"finishedTimeEnd", "finishTimeEnd", &f.finishedEnd},
	} {
		s := q.Get(p.name)
		if s == "" {
			continue
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return f, badRequest(cause + p.yarn + " value must be a number!")
		}
		if n < 0 {
			return f, badRequest(cause + p.yarn + " must be greater than 0")
		}
		*p.to = &n
	}
	if f.startedBegin != nil && f.startedEnd != nil && *f.startedBegin > *f.startedEnd {
		return f, badRequest(cause + "startedTimeEnd must be greater than startTimeBegin")
	}
	if f.finishedBegin != nil && f.finishedEnd != nil && *f.finishedBegin > *f.finishedEnd {
		return f, badRequest(cause + "finishTimeEnd must be greater than finishTimeBegin")
	}
	for _, t := range set(r, "applicationTypes") {
		f.types = append(f.types, strings.ToLower(t))
	}
	for _, t := range set(r, "applicationTags") {
		f.tags = append(f.tags, strings.ToLower(t))
	}
	fields, why := query.DeSelected(q)
	if why != "" {
		return f, badRequest(cause + why)
	}
	f.deselect = fields
	return f, nil
}

// most is the maximum number of applications in the list.
func (f *appFilter) most() int {
	if f.limit > 0 {
		return f.limit
	}
	return math.MaxInt
}

// keeps reports whether the list includes an application. Routers also list parts of other clusters' applications.
// Only the filter by user applies to those.
func (f *appFilter) keeps(a *rm.AppView, part bool) bool {
	if part {
		return f.user == "" || a.User == f.user
	}
	within := func(t time.Time, begin, end *int64) bool {
		ms := millis(t)
		return (begin == nil || ms >= *begin) && (end == nil || ms <= *end)
	}
	return (len(f.states) == 0 || slices.Contains(f.states, a.State)) &&
		(f.user == "" || a.User == f.user) && (f.name == "" || a.Name == f.name) &&
		(f.queue == "" || string(a.Queue) == f.queue || a.Queue.Leaf() == f.queue) &&
		(len(f.types) == 0 || slices.Contains(f.types, strings.ToLower(a.Type))) &&
		(len(f.tags) == 0 || slices.ContainsFunc(
			a.Tags,
			func(t string) bool { return slices.Contains(f.tags, strings.ToLower(t)) },
		)) &&
		within(a.Submitted, f.startedBegin, f.startedEnd) && within(a.Finished, f.finishedBegin, f.finishedEnd)
}

// appEntry is an application with the fields of its document that the view lacks.
type appEntry struct {
	app      rm.AppView
	attempt  rm.AttemptView
	asks     []explain.AskView
	viewable bool // whether the caller may see its guarded fields
}

func (h *appsAPI) show(m *rm.Machine, who server.Caller, a rm.AppView, deselect map[string]bool) appEntry {
	s := appEntry{app: a, viewable: h.s.MayView(m, who, &a)}
	if !a.Attempt.IsZero() {
		s.attempt, _ = m.Attempt(a.Attempt)
	}
	if (a.PendingCount > 0 || !a.InLine.IsZero()) && !deselect["resourceRequests"] {
		s.asks = m.Asks(a.ID)
	}
	return s
}

func (h *appsAPI) apps(w http.ResponseWriter, r *http.Request) {
	f, err := parseFilter(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var found []appEntry
	var at time.Time
	unknownQueue := false
	who := h.caller(r)
	err = h.read(r.Context(), func(m *rm.Machine, now time.Time) {
		at, found = now, nil
		if f.queue != "" && m.Spec().Scheduler == queues.CapacityScheduler {
			if _, ok := m.Queue(f.queue); !ok {
				unknownQueue = true
				return
			}
		}
		m.EachListed(f.most(), f.routed, func(a *rm.AppView, part bool) bool {
			if !f.keeps(a, part) {
				return false
			}
			listed, _ := h.s.Lists(m, who, a)
			if listed {
				found = append(found, h.show(m, who, *a, f.deselect))
			}
			return listed
		})
	})
	if err == nil && unknownQueue {
		err = badRequest(cause + "Unknown queue: " + f.queue)
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if f.final != nil {
		found = slices.DeleteFunc(found, func(s appEntry) bool {
			return s.app.Final != *f.final && !(f.routed && s.app.Joins())
		})
	}
	h.reply(w, r, http.StatusOK, "apps", rooted, func(w *writer) {
		w.List("app", len(found), func(w *writer, i int) { h.appFields(w, &found[i], at, f.deselect) })
	})
}

// appOf reads the application id of a path. Its errors use YARN's wording.
func appOf(r *http.Request) (creel.ApplicationID, error) {
	text := param(r, "appid")
	id, err := creel.ParseApplicationID(text)
	if err != nil {
		return id, badRequest("java.lang.IllegalArgumentException: Invalid ApplicationId: " + text)
	}
	return id, nil
}

func noApp(id creel.ApplicationID) error {
	return notFound("app with id: " + id.String() + " not found")
}

// view finds an application.
func (h *appsAPI) view(r *http.Request) (s appEntry, at time.Time, err error) {
	id, err := appOf(r)
	if err != nil {
		return s, at, err
	}
	found, who := false, h.caller(r)
	err = h.read(r.Context(), func(m *rm.Machine, now time.Time) {
		var a rm.AppView
		if a, found = m.App(id); found {
			s, at = h.show(m, who, a, nil), now
		}
	})
	if err == nil && !found {
		err = noApp(id)
	}
	return s, at, err
}

func (h *appsAPI) app(w http.ResponseWriter, r *http.Request) {
	f, err := parseFilter(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	s, at, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "app", rooted, func(w *writer) { h.appFields(w, &s, at, f.deselect) })
}

// appFields writes AppInfo.
func (h *appsAPI) appFields(w *writer, s *appEntry, now time.Time, deselect map[string]bool) {
	a := &s.app
	p := h.s.Cluster().Report(a, now, true)
	u := p.GetAppResource_Usage()
	w.Text("id", a.ID.String())
	w.Text("user", a.User)
	w.Text("name", a.Name)
	w.Text("queue", string(a.Queue))
	w.Text("state", a.State.String())
	w.Text("finalStatus", a.Final.String())
	progress := float64(a.Progress) * 100
	if a.State.Ended() && !a.Attempt.IsZero() {
		progress = 100
	}
	w.Float("progress", progress)
	ui, url := tracking(a, p)
	w.Text("trackingUI", ui)
	w.OptText("trackingUrl", url)
	w.Text("diagnostics", diagnosis(a, &s.attempt))
	w.Int("clusterId", h.s.Started().UnixMilli())
	w.OptText("rmClusterId", h.s.ClusterID())
	w.Text("applicationType", a.Type)
	w.Text("applicationTags", strings.Join(a.Tags, ","))
	w.Int("priority", int64(a.Priority))
	h.guarded(w, s, now)
	w.Int("memorySeconds", u.GetMemorySeconds())
	w.Int("vcoreSeconds", u.GetVcoreSeconds())
	w.Float("queueUsagePercentage", a.QueueShare)
	w.Float("clusterUsagePercentage", a.ClusterShare)
	h.seconds(w, "resourceSecondsMap", a.ResourceSeconds, !a.State.Ended())
	w.Int("preemptedResourceMB", a.Preempted.MemoryMB)
	w.Int("preemptedResourceVCores", a.Preempted.VCores)
	w.Int("numNonAMContainerPreempted", int64(a.PreemptedContainers))
	w.Int("numAMContainerPreempted", int64(a.PreemptedAMs))
	w.Int("preemptedMemorySeconds", u.GetPreemptedMemorySeconds())
	w.Int("preemptedVcoreSeconds", u.GetPreemptedVcoreSeconds())
	h.seconds(w, "preemptedResourceSecondsMap", a.PreemptedSeconds, false)
	if s.viewable && !deselect["resourceRequests"] {
		w.List("resourceRequests", len(s.asks), func(w *writer, i int) {
			k := &s.asks[i]
			w.Int("priority", int64(k.Priority))
			w.Int("allocationRequestId", k.AllocationRequestID)
			w.Text("resourceName", k.ResourceName)
			h.resource(w, "capability", k.Resource)
			w.Int("numContainers", int64(k.Count))
			w.Bool("relaxLocality", k.Relax)
			w.Text("nodeLabelExpression", k.Label)
			w.Object("executionTypeRequest", func(w *writer) {
				w.Text("executionType", k.ExecutionType.String())
				w.Bool("enforceExecutionType", false)
			})
		})
	}
	if s.viewable {
		w.Text("logAggregationStatus", a.Logs.String())
	}
	w.Bool("unmanagedApplication", a.Unmanaged)
	if a.LabelGiven {
		w.Text("appNodeLabelExpression", a.Label)
	}
	if !a.Unmanaged && !deselect["amNodeLabelExpression"] {
		w.Text("amNodeLabelExpression", a.AMLabel)
	}
	if a.Partitioned && !deselect["resourceInfo"] {
		w.Object("resourceInfo", func(w *writer) {
			uses := a.Partitions
			if len(uses) == 0 {
				uses = []explain.PartitionUse{
					{Used: a.Used, Reserved: a.ReservedRes, Pending: a.Pending, AMUsed: a.AMUsed},
				}
			}
			w.List("resourceUsagesByPartition", len(uses), func(w *writer, i int) {
				u := uses[i]
				if len(uses) == 1 || u.Label == a.AMLabel { // a waiting AM requests resources for itself too
					u.Pending = u.Pending.Add(a.InLine)
					u.AMUsed = u.AMUsed.Add(a.InLine)
				}
				w.Text("partitionName", u.Label)
				h.resource(w, "used", u.Used)
				h.resource(w, "reserved", u.Reserved)
				h.resource(w, "pending", u.Pending)
				h.resource(w, "amUsed", u.AMUsed)
				h.resource(w, "amLimit", creel.Resource{}) // only queues have limits
				h.resource(w, "userAmLimit", creel.Resource{})
			})
		})
	}
	if !deselect["timeouts"] {
		w.Object("timeouts", func(w *writer) {
			w.List("timeout", 1, func(w *writer, _ int) { timeoutFields(w, p) })
		})
	}
}

func timeoutFields(w *writer, p *yarnpb.ApplicationReportProto) {
	var t *yarnpb.ApplicationTimeoutProto
	if l := p.GetAppTimeouts(); len(l) > 0 {
		t = l[0].GetApplicationTimeout()
	}
	w.Text("type", "LIFETIME")
	w.Text("expiryTime", cmp.Or(t.GetExpireTime(), "UNLIMITED"))
	w.Int("remainingTimeInSeconds", t.GetRemainingTime())
}

// diagnosis returns YARN's text for an application whose AM is starting.
func diagnosis(a *rm.AppView, t *rm.AttemptView) string {
	if a.Diagnostics != "" || a.State != creel.AppAccepted {
		return a.Diagnostics
	}
	if text := onItsWay(t); text != "" {
		return text
	}
	return cmp.Or(a.Waits, t.Diagnostics)
}

func onItsWay(t *rm.AttemptView) string {
	switch t.State {
	case creel.AttemptAllocated:
		return "[" + t.Started.UTC().
			Format("Mon Jan 02 15:04:05 -0700 2006") +
			"] Scheduler has assigned a container for AM, waiting for AM container to be launched"
	case creel.AttemptLaunched:
		return "AM container is launched, waiting for AM container to Register with RM"
	}
	return ""
}

// tracking returns the address of the AM's page and its kind. The proxy does not serve an unmanaged AM's page.
func tracking(a *rm.AppView, p *yarnpb.ApplicationReportProto) (ui, url string) {
	if url = p.GetTrackingUrl(); a.Unmanaged && a.TrackingURL != "" {
		url = a.TrackingURL
	}
	switch {
	case a.State.Ended():
		return "History", url
	case a.TrackingURL == "" || a.State < creel.AppRunning:
		return "UNASSIGNED", ""
	}
	return "ApplicationMaster", url
}

// guarded writes the fields that only callers with view access receive.
func (h *appsAPI) guarded(w *writer, s *appEntry, now time.Time) {
	a, t := &s.app, &s.attempt
	if !s.viewable {
		for _, name := range []string{
			"startedTime",
			"launchTime",
			"finishedTime",
			"elapsedTime",
			"allocatedMB",
			"allocatedVCores",
			"reservedMB",
			"reservedVCores",
			"runningContainers",
		} {
			w.Int(name, 0)
		}
		return
	}
	launched := millis(a.Launched)
	if a.Unmanaged {
		launched = -1 // not launched by this ResourceManager
	}
	w.Int("startedTime", millis(a.Submitted))
	w.Int("launchTime", launched)
	w.Int("finishedTime", millis(a.Finished))
	end := now
	if !a.Finished.IsZero() {
		end = a.Finished
	}
	w.Int("elapsedTime", max(end.Sub(a.Submitted).Milliseconds(), -1))
	node := ""
	if !t.AM.IsZero() {
		w.Text("amContainerLogs", logsOf(h.Handler, t.AMHTTP, t.AM, a.User))
		w.OptText("amHostHttpAddress", t.AMHTTP)
		node = t.AMNode.String()
	}
	if a.Host != "" && a.Port >= 0 {
		w.Text("amRPCAddress", a.Host+":"+strconv.Itoa(int(a.Port)))
	}
	w.Text("masterNodeId", node)
	mb, cores, containers := a.Used.MemoryMB, a.Used.VCores, int64(a.Containers)
	reserved, reservedCores := a.ReservedRes.MemoryMB, a.ReservedRes.VCores
	if !a.InScheduler {
		none := int64(-1)
		if a.Attempt.IsZero() {
			none = 0
		}
		mb, cores, reserved, reservedCores, containers = none, none, none, none, none
	}
	w.Int("allocatedMB", mb)
	w.Int("allocatedVCores", cores)
	w.Int("reservedMB", reserved)
	w.Int("reservedVCores", reservedCores)
	w.Int("runningContainers", containers)
}

// seconds writes a map of resource-seconds; of a running application it writes memory and vcores even if they are 0.
// Two or more entries are one list under one key, because parsers of repeated keys lose all but the last.
func (h *appsAPI) seconds(w *writer, name string, list []rm.TypeAmount, zeros bool) {
	kept := make([]rm.TypeAmount, 0, len(list)+2)
	for i, name := range []string{creel.MemoryName, creel.VCoresName} {
		if zeros && (len(list) <= i || list[i].Type != name) {
			kept = append(kept, rm.TypeAmount{Type: name})
		}
	}
	for _, t := range list {
		if zeros || t.Value != 0 {
			kept = append(kept, t)
		}
	}
	w.Map(name, len(kept), func(i int) (string, string) {
		return kept[i].Type, strconv.FormatInt(h.inUnit(kept[i].Type, kept[i].Value), 10)
	})
}

// statistics counts applications by state, of one type or of all.
func (h *appsAPI) statistics(w http.ResponseWriter, r *http.Request) {
	types := set(r, "applicationTypes")
	if len(types) > 1 {
		h.refuse(
			w,
			r,
			badRequest(
				cause+"# of applicationTypes = "+strconv.Itoa(
					len(types),
				)+", we temporarily support at most one applicationType",
			),
		)
		return
	}
	var states []creel.ApplicationState
	for _, s := range set(r, "states") {
		state, err := parseState(s)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		if !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	if len(states) == 0 {
		for s := creel.AppNew; s <= creel.AppKilled; s++ {
			states = append(states, s)
		}
	}
	kind := "*"
	if len(types) == 1 {
		kind = strings.ToLower(types[0])
	}
	counts := map[creel.ApplicationState]int64{}
	err := h.read(r.Context(), func(m *rm.Machine, _ time.Time) {
		for a := range m.Apps {
			if (kind == "*" || strings.EqualFold(a.Type, kind)) && !(routed(r) && a.UAM()) {
				counts[a.State]++
			}
		}
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "appStatInfo", rooted, func(w *writer) {
		w.List("statItem", len(states), func(w *writer, i int) {
			w.Text("state", states[i].String())
			w.Text("type", kind)
			w.Int("count", counts[states[i]])
		})
	})
}

func parseState(s string) (creel.ApplicationState, error) {
	state, err := creel.ParseApplicationState(s)
	if err != nil {
		return state, badRequest(
			cause + "Invalid application-state " + s + " specified. It should be one of [NEW, NEW_SAVING, SUBMITTED, ACCEPTED, RUNNING, FINISHED, FAILED, KILLED]",
		)
	}
	return state, nil
}
