// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"errors"
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/nodelogs"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// openapi describes the native API; a test compares it with the served paths.
//
//go:embed openapi.json
var openapi []byte

// native mounts creel's API.
func (h *Handler) native(r chi.Router) {
	r.Route("/api/v1", func(r chi.Router) {
		r.Use(secure, identified, h.login(problemLogin), h.audit, h.patient, middleware.GetHead)
		r.Get("/subclusters", h.subclusters)
		r.Get("/overview", h.overview)
		r.Get("/system", h.system)
		packed := r.With(middleware.Compress(5, "application/json"))
		packed.Get("/apps", h.applications.serve)
		packed.Get("/nodes", h.listNodes)
		packed.Get("/nodes/{node}/containers", nodeContainersAPI{h}.serve)
		logs := nodeLogsAPI{nodeContainersAPI{h}, nodelogs.New(h.conf.DialTLS)}
		r.Get("/nodes/{node}/containers/{container}/logs", logs.list)
		packed.Get("/nodes/{node}/containers/{container}/logs/{file}", logs.read)
		packed.Get("/scheduler", h.scheduler.serve)
		packed.Get("/daemons", h.daemons.serve)
		packed.Get("/history", showHistory(h.server))
		r.With(middleware.Compress(1, copyType)).Get("/history/copy", copyHistory(h.server))
		if h.conf.Operator != nil {
			h.operate(r)
			if h.conf.Events != nil {
				r.Get("/events", (&eventsAPI{h.conf.Events, h.conf.Operator, h.Patient, h.conf.Stop}).serve)
			}
		}
		r.Get("/view", h.view)
		r.Get("/apps/{appid}/why", h.why)
		r.Get("/counts", h.counts)
		r.Get("/fit", fit(h))
		r.Get("/openapi.json", constant("application/json", openapi))
		r.Get("/schemas/policy.json", constant("application/schema+json", []byte(policies.Schema)))
		r.Get("/schemas/queues.json", constant("application/schema+json", []byte(rebalancer.Schema)))
		r.NotFound(func(w http.ResponseWriter, r *http.Request) {
			problem(w, noSuchPath, "see /api/v1/openapi.json")
		})
		r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
			problem(w, noSuchMethod, r.Method+" is not a method of "+r.URL.Path+"; see /api/v1/openapi.json")
		})
	})
}

// constant returns a handler with a constant answer.
func constant(contentType string, text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Write(text) // an error means that the client has gone
	}
}

// operate mounts the changes that administrators make.
func (h *Handler) operate(r chi.Router) {
	members := membersAPI{h.conf.Operator}
	r.Put("/subclusters/{id}/drain", members.drain)
	r.Delete("/subclusters/{id}/drain", members.undrain)
	r.Post("/subclusters/{id}/deregister", members.deregister)
	r.Delete("/subclusters/{id}", members.remove)
	r.Get("/drains", h.drains.list)
	r.Get("/drains/{host}", h.drains.host)
	r.Put("/drains/{host}", h.drains.drain)
	r.Delete("/drains/{host}", h.drains.undrain)
	policies := policiesAPI{h.conf.Operator, h.server}
	r.Get("/policies", policies.list)
	r.Get("/policies/{queue}", policies.get)
	r.Put("/policies/{queue}", policies.put)
	r.Get("/policies/{queue}/history", policies.history)
	r.Get("/policies/{queue}/submissions", policies.submissions)
	r.Post("/policies/{queue}/preview", policies.preview)
	queues := queueTreeAPI{h.conf.Operator, &h.applications}
	r.Get("/queues", queues.get)
	r.Put("/queues", queues.put)
	r.Get("/queues/history", queues.history)
	r.Get("/queues/mends", queues.mends)
	r.Post("/queues/mends", queues.mend)
	balance := rebalancerAPI{h.conf.Operator}
	r.Get("/rebalancer", balance.state)
	r.Put("/rebalancer/paused", balance.pause)
	r.Get("/moves", balance.moves)
	r.Post("/moves/undo", balance.undoMoves)
}

// SubclusterDoc is a member in the answer of /api/v1/subclusters.
type SubclusterDoc struct {
	ID         creel.SubclusterID        `json:"id"`
	State      string                    `json:"state"`
	Reason     string                    `json:"reason"`
	AgeSeconds float64                   `json:"age_s"`
	Epoch      int64                     `json:"epoch"`
	Version    string                    `json:"version,omitempty"`
	Draining   string                    `json:"draining,omitempty"`
	Drain      *operator.DrainProgress   `json:"drain,omitempty"`
	Addresses  subcluster.Addresses      `json:"addresses"`
	Metrics    subcluster.ClusterMetrics `json:"metrics"`
	Apps       apps.Counts               `json:"apps"`              // applications with this home
	CutOff     []string                  `json:"cut_off,omitempty"` // kinds of call with an open breaker
	Refuses    []router.Refusal          `json:"refuses,omitempty"` // at its last trial by this router
}

// SubclustersDoc is this router's view of the federation.
type SubclustersDoc struct {
	Serial      int64           `json:"serial"`
	At          time.Time       `json:"at"`
	Frozen      string          `json:"frozen,omitempty"`
	Subclusters []SubclusterDoc `json:"subclusters"`
}

func (h *Handler) subclusters(w http.ResponseWriter, r *http.Request) {
	view := h.server.View()
	if view == nil {
		problem(w, noView, "the router has not read the state store")
		return
	}
	doc := SubclustersDoc{Serial: view.Serial, At: view.At, Subclusters: []SubclusterDoc{}}
	if view.Freeze != nil {
		doc.Frozen = view.Freeze.Reason
	}
	now := time.Now()
	all, err := h.applications.counted(r)
	byHome := apps.CountsBy[creel.SubclusterID]{}
	if err == nil {
		for _, a := range all.Rows {
			byHome.Add(a.Home, a, now)
		}
	}
	for i := range view.Members {
		m := &view.Members[i]
		sub := SubclusterDoc{
			ID:         m.ID,
			State:      m.State.String(),
			Reason:     m.Reason,
			AgeSeconds: m.Age.Seconds(),
			Epoch:      m.Epoch,
			Version:    m.Version,
			Draining:   m.Draining,
			Drain:      operator.DrainOf(view, m),
			Addresses:  m.Addresses,
			Metrics:    m.Load.Metrics,
			CutOff:     h.server.CutOff(m.ID),
			Refuses:    h.server.Refusals(m.ID),
		}
		sub.Apps = byHome.Of(m.ID)
		if err != nil { // its report, in which running applications do not wait
			all := &m.Load.Metrics
			sub.Apps.Waiting, sub.Apps.Running = m.Load.UAMs.TakenFrom(all.AppsPending, all.AppsRunning)
		}
		doc.Subclusters = append(doc.Subclusters, sub)
	}
	answer(w, doc)
}

// WhyDoc explains the choice of an application's home, and the reason why it waits now.
type WhyDoc struct {
	Application creel.ApplicationID `json:"application"`
	Home        creel.SubclusterID  `json:"home"`
	State       string              `json:"state,omitempty"` // at its home, by YARN's names
	Submission  string              `json:"submission,omitempty"`
	// Cause is the greatest obstacle to the containers that it asks for, Remedy a change that helps; "" if nothing
	// waits.
	Cause  string          `json:"cause,omitempty"`
	Remedy string          `json:"remedy,omitempty"`
	Waits  []MemberWait    `json:"waits"` // home first, then the members with its unmanaged AMs
	Queue  creel.QueuePath `json:"queue,omitempty"`
	// Received and Claimed are the times when a router got the submission and requested the claim, by that router's
	// clock.
	Received   time.Time       `json:"received,omitzero"`
	Claimed    time.Time       `json:"claimed,omitzero"`
	Tries      []TryDoc        `json:"tries"`
	Rebalancer *RebalancerWord `json:"rebalancer,omitempty"`
	// Moving is its move under way. Moved has the finished ones, newest first.
	Moving *operator.MoveUnder `json:"moving,omitempty"`
	Moved  []operator.MoveDone `json:"moved,omitempty"`
	Asked  []AskedDoc          `json:"asked,omitempty"` // users' changes that wait for a member, or were rejected
	Last   *LastSeen           `json:"last,omitempty"`  // set if its home does not answer
	Note   string              `json:"note,omitempty"`
}

// LastSeen is the last report of an application whose home does not answer now.
type LastSeen struct {
	User       string          `json:"user"`
	Queue      creel.QueuePath `json:"queue"`
	State      string          `json:"state"`
	AgeSeconds float64         `json:"age_s"` // -1 if unknown
}

// RebalancerWord is the rebalancer's plan for an application's queue. Shares are parts of the federation, or of its
// nodes of Label, from 0 to 1.
type RebalancerWord struct {
	Plan     int64           `json:"plan"` // version
	Queue    creel.QueuePath `json:"queue"`
	Label    string          `json:"label,omitempty"`
	Wants    float64         `json:"wants"`
	Uses     float64         `json:"uses"`
	Entitled float64         `json:"entitled"`
	Reason   string          `json:"reason,omitempty"`
	Followed bool            `json:"followed"` // by homes and splits
	AtHome   float64         `json:"at_home"`  // its entitlement in the home
	Weight   float64         `json:"weight"`   // of the home among the members, from 0 to 1
}

// AskedDoc is a user's change that waits for an unavailable member.
type AskedDoc struct {
	User   string             `json:"user"`
	Verb   string             `json:"verb"`             // kill, move, priority, timeouts, fail, signal
	What   string             `json:"what"`             // as text
	Member creel.SubclusterID `json:"member,omitempty"` // empty: home
	// Doubted is the error of a member that may not have the container yet, and is asked again.
	Doubted    string  `json:"doubted,omitempty"`
	Refused    string  `json:"refused,omitempty"`
	AgeSeconds float64 `json:"age_s"` // since the request, the first doubt, or the rejection
}

// TryDoc is the forwarding of a submission to one member.
type TryDoc struct {
	Member  creel.SubclusterID `json:"member"`
	Verdict string             `json:"verdict"`
	Claimed bool               `json:"claimed_before,omitempty"`
	Until   time.Time          `json:"waits_until,omitzero"` // earliest time when an unclear home may be left
	Error   string             `json:"error,omitempty"`
	Reason  *policies.Reason   `json:"reason,omitempty"`
}

// mayView reports whether the caller may view an application. Its user may. So may users to whom home, which has its
// ACLs, shows the guarded fields. If no member has the application any more, only its user may.
func (h *Handler) mayView(r *http.Request, app creel.ApplicationID, user string) (bool, error) {
	if who := caller(r); who != "" && who == user {
		return true, nil
	}
	q := &request{
		method: http.MethodGet, path: base + "/apps/" + app.String(), user: caller(r),
		head: forwardHeaders(r, "application/json"),
	}
	if r.URL.RawQuery != "" {
		q.path += "?" + r.URL.RawQuery // the query identifies the caller
	}
	shown, _, err := server.AtHome(r.Context(), h.server, app, q.at)
	var refused *remote.StatusError
	if errors.Is(err, creel.ErrApplicationNotFound) || errors.As(err, &refused) && refused.Code < 500 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return rawjson.Whole(rawjson.Get(rawjson.Get(shown.body, "app"), "startedTime")) > 0, nil
}

func (h *Handler) counts(w http.ResponseWriter, _ *http.Request) { answer(w, h.countsDoc()) }

func (h *Handler) countsDoc() map[string]int64 {
	c := h.server.Counts()
	return map[string]int64{
		"submitted": c.Submitted.Load(), "accepted": c.Accepted.Load(), "failed": c.Failed.Load(),
		"moved": c.Moved.Load(), "partial": c.Partial.Load(), "killed": c.Killed.Load(),
		"unlisted_fields": c.Unlisted.Load(),
	}
}
