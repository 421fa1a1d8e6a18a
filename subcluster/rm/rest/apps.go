// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/go-chi/chi/v5"
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
}

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
	for _, s := range append(set(r, "states"), set(r, "state")...) {
		state, err := creel.ParseApplicationState(s)
		if err != nil {
			return f, badRequest("java.lang.Exception: Invalid application-state " + s + " specified. It should be one of [NEW, NEW_SAVING, SUBMITTED, ACCEPTED, RUNNING, FINISHED, FAILED, KILLED]")
		}
		f.states = append(f.states, state)
	}
	if s := q.Get("finalStatus"); s != "" {
		final, err := creel.ParseFinalStatus(s)
		if err != nil {
			return f, &refusal{http.StatusBadRequest, classIllegal, "No enum constant org.apache.hadoop.yarn.api.records.FinalApplicationStatus." + s}
		}
		f.final = &final
	}
	f.user, f.queue, f.name = q.Get("user"), q.Get("queue"), q.Get("name")
	if s := q.Get("limit"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 {
			return f, badRequest("java.lang.Exception: limit value must be greater then 0")
		}
		f.limit = int(min(n, 1<<31))
	}
	for _, p := range []struct {
		name string
		to   **int64
	}{{"startedTimeBegin", &f.startedBegin}, {"startedTimeEnd", &f.startedEnd}, {"finishedTimeBegin", &f.finishedBegin}, {"finishedTimeEnd", &f.finishedEnd}} {
		s := q.Get(p.name)
		if s == "" {
			continue
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return f, badRequest("java.lang.Exception: " + p.name + " must be greater than 0")
		}
		*p.to = &n
	}
	for _, p := range [][2]*int64{{f.startedBegin, f.startedEnd}, {f.finishedBegin, f.finishedEnd}} {
		if p[0] != nil && p[1] != nil && *p[0] > *p[1] {
			return f, badRequest("java.lang.Exception: a time's end must be greater than its begin")
		}
	}
	for _, t := range set(r, "applicationTypes") {
		f.types = append(f.types, strings.ToLower(t))
	}
	for _, t := range set(r, "applicationTags") {
		f.tags = append(f.tags, strings.ToLower(t))
	}
	f.deselect = map[string]bool{}
	for _, d := range set(r, "deSelects") {
		switch d {
		case "resourceRequests", "timeouts", "appNodeLabelExpression", "amNodeLabelExpression", "resourceInfo":
			f.deselect[d] = true
		default:
			return f, badRequest("java.lang.Exception: Invalid deSelects string " + d + " specified. It should be one of [resourceRequests, appNodeLabelExpression, amNodeLabelExpression, timeouts, resourceInfo]")
		}
	}
	return f, nil
}

func (f *appFilter) keeps(a *rm.AppView) bool {
	within := func(t time.Time, begin, end *int64) bool {
		ms := millis(t)
		return (begin == nil || ms >= *begin) && (end == nil || ms <= *end)
	}
	return (len(f.states) == 0 || slices.Contains(f.states, a.State)) &&
		(f.user == "" || a.User == f.user) && (f.name == "" || a.Name == f.name) &&
		(f.queue == "" || string(a.Queue) == f.queue || a.Queue.Leaf() == f.queue) &&
		(len(f.types) == 0 || slices.Contains(f.types, strings.ToLower(a.Type))) &&
		(len(f.tags) == 0 || slices.ContainsFunc(a.Tags, func(t string) bool { return slices.Contains(f.tags, strings.ToLower(t)) })) &&
		within(a.Submitted, f.startedBegin, f.startedEnd) && within(a.Finished, f.finishedBegin, f.finishedEnd)
}

// shown is an application with what its document needs beside the view.
type shown struct {
	app     rm.AppView
	attempt rm.AttemptView
	asks    []rm.AskView
}

func show(m *rm.Machine, a rm.AppView, deselect map[string]bool) shown {
	s := shown{app: a}
	if !a.Attempt.IsZero() {
		s.attempt, _ = m.Attempt(a.Attempt)
	}
	if a.PendingCount > 0 && !deselect["resourceRequests"] {
		s.asks = m.Asks(a.ID)
	}
	return s
}

func (o *Door) apps(w http.ResponseWriter, r *http.Request) {
	f, err := parseFilter(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	var found []shown
	var at time.Time
	unknownQueue := false
	err = o.read(r.Context(), func(m *rm.Machine, now time.Time) {
		at = now
		if f.queue != "" && m.Spec().Scheduler == rm.Capacity {
			if _, ok := m.Queue(f.queue); !ok {
				unknownQueue = true
				return
			}
		}
		for a := range m.Apps {
			if f.limit > 0 && len(found) == f.limit {
				break
			}
			if f.keeps(&a) {
				found = append(found, show(m, a, f.deselect))
			}
		}
	})
	if err == nil && unknownQueue {
		err = badRequest("java.lang.Exception: Unknown queue: " + f.queue)
	}
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	if f.final != nil {
		found = slices.DeleteFunc(found, func(s shown) bool { return s.app.Final != *f.final })
	}
	o.reply(w, r, http.StatusOK, "apps", false, func(w *writer) {
		w.List("app", len(found), func(w *writer, i int) { o.appFields(w, &found[i], at, f.deselect) })
	})
}

// appOf reads the application of a path, as YARN words what is wrong with it.
func appOf(r *http.Request) (creel.ApplicationID, error) {
	text := strings.TrimSpace(chi.URLParam(r, "appid"))
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
func (o *Door) view(r *http.Request) (s shown, at time.Time, err error) {
	id, err := appOf(r)
	if err != nil {
		return s, at, err
	}
	found := false
	err = o.read(r.Context(), func(m *rm.Machine, now time.Time) {
		var a rm.AppView
		if a, found = m.App(id); found {
			s, at = show(m, a, nil), now
		}
	})
	if err == nil && !found {
		err = noApp(id)
	}
	return s, at, err
}

func (o *Door) app(w http.ResponseWriter, r *http.Request) {
	f, err := parseFilter(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	s, at, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.reply(w, r, http.StatusOK, "app", false, func(w *writer) { o.appFields(w, &s, at, f.deselect) })
}

// appFields writes AppInfo.
func (o *Door) appFields(w *writer, s *shown, now time.Time, deselect map[string]bool) {
	a, t := &s.app, &s.attempt
	p := o.d.Report(a, now, true)
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
	ui := "UNASSIGNED"
	if url := p.GetTrackingUrl(); url != "" && url != "N/A" {
		ui = "ApplicationMaster"
		if a.State.Ended() {
			ui = "History"
		}
		w.Text("trackingUI", ui)
		w.Text("trackingUrl", url)
	} else {
		w.Text("trackingUI", ui)
	}
	w.Text("diagnostics", a.Diagnostics)
	w.Int("clusterId", o.d.Started().UnixMilli())
	w.OptText("rmClusterId", o.d.ClusterID())
	w.Text("applicationType", a.Type)
	w.Text("applicationTags", strings.Join(a.Tags, ","))
	w.Int("priority", int64(a.Priority))
	w.Int("startedTime", millis(a.Submitted))
	w.Int("launchTime", millis(a.Launched))
	w.Int("finishedTime", millis(a.Finished))
	end := now
	if !a.Finished.IsZero() {
		end = a.Finished
	}
	w.Int("elapsedTime", max(end.Sub(a.Submitted).Milliseconds(), -1))
	if !t.Master.IsZero() {
		w.Text("amContainerLogs", "http://"+t.MasterHTTP+"/node/containerlogs/"+t.Master.String()+"/"+a.User)
		w.OptText("amHostHttpAddress", t.MasterHTTP)
	}
	if a.Host != "" && a.Port >= 0 {
		w.Text("amRPCAddress", a.Host+":"+strconv.Itoa(int(a.Port)))
	}
	node := ""
	if !t.MasterNode.IsZero() {
		node = t.MasterNode.String()
	}
	w.Text("masterNodeId", node)
	if a.InScheduler {
		w.Int("allocatedMB", a.Used.MemoryMB)
		w.Int("allocatedVCores", a.Used.VCores)
		w.Int("reservedMB", a.ReservedRes.MemoryMB)
		w.Int("reservedVCores", a.ReservedRes.VCores)
		w.Int("runningContainers", int64(a.Containers))
	} else {
		none := int64(-1)
		if a.Attempt.IsZero() {
			none = 0
		}
		for _, name := range []string{"allocatedMB", "allocatedVCores", "reservedMB", "reservedVCores", "runningContainers"} {
			w.Int(name, none)
		}
	}
	w.Int("memorySeconds", u.GetMemorySeconds())
	w.Int("vcoreSeconds", u.GetVcoreSeconds())
	w.Float("queueUsagePercentage", a.QueueShare)
	w.Float("clusterUsagePercentage", a.ClusterShare)
	seconds(w, "resourceSecondsMap", a.ResourceSeconds)
	w.Int("preemptedResourceMB", 0)
	w.Int("preemptedResourceVCores", 0)
	w.Int("numNonAMContainerPreempted", 0)
	w.Int("numAMContainerPreempted", 0)
	w.Int("preemptedMemorySeconds", u.GetPreemptedMemorySeconds())
	w.Int("preemptedVcoreSeconds", u.GetPreemptedVcoreSeconds())
	seconds(w, "preemptedResourceSecondsMap", a.PreemptedSeconds)
	if !deselect["resourceRequests"] {
		w.List("resourceRequests", len(s.asks), func(w *writer, i int) {
			k := &s.asks[i]
			w.Int("priority", int64(k.Priority))
			w.Int("allocationRequestId", k.AllocationRequestID)
			w.Text("resourceName", k.ResourceName)
			o.resource(w, "capability", k.Resource)
			w.Int("numContainers", int64(k.Count))
			w.Bool("relaxLocality", k.Relax)
			w.Text("nodeLabelExpression", "")
			w.Object("executionTypeRequest", func(w *writer) {
				w.Text("executionType", k.ExecutionType.String())
				w.Bool("enforceExecutionType", false)
			})
		})
	}
	w.Text("logAggregationStatus", "DISABLED")
	w.Bool("unmanagedApplication", a.Unmanaged)
	if e := p.GetAppNodeLabelExpression(); e != "" {
		w.Text("appNodeLabelExpression", e)
	}
	if e := p.GetAmNodeLabelExpression(); e != "" && !deselect["amNodeLabelExpression"] {
		w.Text("amNodeLabelExpression", e)
	}
	if a.InScheduler && !deselect["resourceInfo"] {
		w.Object("resourceInfo", func(w *writer) {
			w.List("resourceUsagesByPartition", 1, func(w *writer, _ int) {
				w.Text("partitionName", "")
				o.resource(w, "used", a.Used)
				o.resource(w, "reserved", a.ReservedRes)
				o.resource(w, "pending", a.Pending)
				o.resource(w, "amUsed", a.AMUsed)
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

// seconds writes a map of resource-seconds. Two entries or more are told under
// one key as a list, which keeps parsers from losing all but the last.
func seconds(w *writer, name string, list []rm.TypeAmount) {
	w.Object(name, func(w *writer) {
		w.List("entry", len(list), func(w *writer, i int) {
			w.Text("key", list[i].Type)
			w.Text("value", strconv.FormatInt(list[i].Value, 10))
		})
	})
}

func (o *Door) stateReply(w http.ResponseWriter, r *http.Request, status int, a *rm.AppView) {
	o.reply(w, r, status, "appstate", true, func(w *writer) {
		w.Text("state", a.State.String())
		w.Text("diagnostics", a.Diagnostics)
	})
}

func (o *Door) state(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.stateReply(w, r, http.StatusOK, &s.app)
}

func (o *Door) setState(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	var doc struct {
		State       string `json:"state" xml:"state"`
		Diagnostics string `json:"diagnostics" xml:"diagnostics"`
	}
	if err := o.decode(w, r, &doc); err != nil {
		o.refuse(w, r, err)
		return
	}
	if doc.State == s.app.State.String() {
		o.stateReply(w, r, http.StatusOK, &s.app)
		return
	}
	if doc.State != "KILLED" {
		o.refuse(w, r, badRequest("java.lang.Exception: Only 'KILLED' is allowed as a target state."))
		return
	}
	done, err := o.d.KillApplication(r.Context(), o.caller(r), s.app.ID, doc.Diagnostics)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	after, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if !done && !after.app.State.Ended() {
		status = http.StatusAccepted
		w.Header().Set("Location", "http://"+r.Host+r.URL.Path)
	}
	o.stateReply(w, r, status, &after.app)
}
