// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/history"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster"
)

// OverviewDoc is an overview of the federation.
type OverviewDoc struct {
	State    router.Health             `json:"state"`
	Sentence string                    `json:"sentence"` // the worst finding and its cause
	Remedy   string                    `json:"remedy,omitempty"`
	Holder   creel.QueuePath           `json:"holder,omitempty"` // queue that holds the room of the first one in Short
	Short    []ShortDoc                `json:"short"`            // queues below their guarantee, the worst first
	Apps     *apps.Counts              `json:"apps,omitempty"`   // omitted if no member sent its applications
	Members  map[string]int            `json:"members"`          // by state
	Sum      subcluster.ClusterMetrics `json:"sum"`
	Without  []LeftDoc                 `json:"without"` // members that are not in the sums
	Rates    []RateDoc                 `json:"rates"`   // of the last ten minutes, oldest first
	StepS    float64                   `json:"step_s"`
	Waiting  []apps.WaitGroup          `json:"waiting"` // reasons why applications wait, the most frequent first
	Missing  []missing                 `json:"missing"` // members whose applications are not in Apps and Waiting
	Events   []EventDoc                `json:"events"`  // observed by this router, newest first
}

// ShortDoc is a queue that has less than its guarantee while it asks for more. Percents are of the federation's
// dominant resource.
type ShortDoc struct {
	Queue      creel.QueuePath `json:"queue"`
	Used       float64         `json:"used_percent"`
	Guaranteed float64         `json:"guaranteed_percent"`
	ForSeconds float64         `json:"for_s"` // at most the uptime of this router
}

// LeftDoc is a member that is not in the sums.
type LeftDoc struct {
	Member     creel.SubclusterID `json:"member"`
	AgeSeconds float64            `json:"age_s"` // of its last heartbeat
}

// RateDoc has the means of a step of the history; -1 if unknown.
type RateDoc struct {
	At          time.Time `json:"at"`
	Containers  float64   `json:"containers_per_s"`
	Submissions float64   `json:"submissions_per_s"`
	GrantP50    float64   `json:"ask_to_grant_p50_s"`
	GrantP99    float64   `json:"ask_to_grant_p99_s"`
}

// rateTime is the time of the rates in an overview.
const rateTime = 10 * time.Minute

// rates are the federation's last steps, from the first known one.
func rates(h *Handler, now time.Time) []RateDoc {
	s, _, _ := h.server.History(now, history.Subject{}, history.Fine, rateTime)
	out := []RateDoc{}
	for i := range s.Length {
		at := func(m history.Measure, by float64) float64 {
			if v := s.Values[m]; v != nil && history.Known(v[i]) {
				return math.Round(1e6*float64(v[i])/by) / 1e6
			}
			return -1
		}
		step := s.Step()
		doc := RateDoc{
			At:          now.Add(-s.Age - time.Duration(s.Length-1-i)*step).UTC(),
			Containers:  at(history.Grants, step.Seconds()),
			Submissions: at(history.Submissions, step.Seconds()),
			GrantP50:    at(history.GrantP50, 1), GrantP99: at(history.GrantP99, 1),
		}
		if len(out) > 0 || doc.Containers >= 0 || doc.Submissions >= 0 {
			out = append(out, doc)
		}
	}
	return out
}

// EventDoc is an event of the federation.
type EventDoc struct {
	At     time.Time          `json:"at"`
	Kind   string             `json:"kind"`
	Member creel.SubclusterID `json:"member,omitempty"`
	Text   string             `json:"text"`
}

// maxWaits bounds the reasons in one answer.
const maxWaits = 10

// firstWait bounds the time for which an overview waits for the first view and the first list of applications.
const firstWait = 2 * time.Second

// firstApplications is appsAPI.read, bounded by firstWait while there is no list: a router that has just
// started must not report that nothing runs.
func firstApplications(h *Handler, r *http.Request) (*apps.View, error) {
	ctx, cancel := context.WithTimeout(r.Context(), firstWait)
	defer cancel()
	for h.server.View() == nil && ctx.Err() == nil {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return h.applications.read(r.WithContext(ctx))
}

// breaches returns the invariants that the rebalancer found broken. The overview does without them if the store does
// not answer.
func breaches(ctx context.Context, h *Handler) (out []router.Breach) {
	if h.conf.Operator == nil {
		return nil
	}
	all, err := h.conf.Operator.Breaches(ctx)
	if err != nil {
		h.conf.Log.Warn("failed to read the rebalancer's audit", "error", err)
	}
	for _, b := range all {
		out = append(out, router.Breach{Invariant: b.Invariant, Of: b.Of, Text: b.Breach})
	}
	return out
}

func (h *Handler) overview(w http.ResponseWriter, r *http.Request) {
	var tally router.Tally
	all, err := firstApplications(h, r)
	now := time.Now()
	var counts *apps.Counts
	var waits []apps.WaitGroup
	if err == nil && snapshot.Sent(all.Parts) {
		counts, waits = all.Count(now), all.Waits(maxWaits, now)
		tally = tallyOf(counts, waits)
	}
	s := h.server.Summary(tally, breaches(r.Context(), h)...)
	doc := OverviewDoc{
		State: s.State, Sentence: s.Sentence, Remedy: s.Remedy, Holder: s.Holder, Members: s.Members, Sum: s.Sum,
		Without: []LeftDoc{}, StepS: history.Step.Seconds(), Waiting: []apps.WaitGroup{}, Events: []EventDoc{},
		Missing: []missing{}, Short: []ShortDoc{},
	}
	for _, q := range h.server.Short() {
		doc.Short = append(doc.Short, ShortDoc{
			q.Queue, 100 * q.Used, 100 * q.Guaranteed, now.Sub(q.Since).Round(time.Second).Seconds(),
		})
	}
	for _, l := range s.Without {
		doc.Without = append(doc.Without, LeftDoc{l.Member, l.Age.Seconds()})
	}
	doc.Rates = rates(h, now)
	for _, e := range h.server.Events() {
		doc.Events = append(doc.Events, EventDoc{e.At.UTC(), e.Kind, e.Member, e.Text})
	}
	if err == nil {
		doc.Apps, doc.Missing = counts, missingOf(all.Parts, now)
		if waits != nil {
			doc.Waiting = waits
		}
	}
	answer(w, doc)
}

// SystemDoc is the state of this router: readiness, dependencies, settings.
type SystemDoc struct {
	Version   string           `json:"version"`
	Started   time.Time        `json:"started"`
	Store     string           `json:"store,omitempty"`    // the store's identity
	Problems  []string         `json:"problems,omitempty"` // records that the store could not read
	Readiness []ReadyLine      `json:"readiness"`
	Counts    map[string]int64 `json:"counts"`
	// Settings are sent only to administrators.
	Settings []SettingDoc `json:"settings,omitempty"`
}

// ReadyLine is a condition of readiness or a dependency.
type ReadyLine struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Warn bool   `json:"warn,omitempty"`
	Text string `json:"text,omitempty"`
}

// SettingDoc is a setting in force and its source; secrets are masked.
type SettingDoc struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Status string `json:"status,omitempty"`
}

func (h *Handler) system(w http.ResponseWriter, r *http.Request) {
	doc := SystemDoc{
		Version: h.conf.Version, Started: h.conf.Started.UTC(), Readiness: []ReadyLine{}, Counts: h.countsDoc(),
	}
	if view := h.server.View(); view != nil {
		doc.Store, doc.Problems = view.Store, view.Problems
	}
	if h.conf.Readiness != nil {
		doc.Readiness = h.conf.Readiness()
	}
	if h.conf.Settings != nil && h.conf.Operator != nil && h.conf.Operator.MayInspect(caller(r)) == nil {
		doc.Settings = h.conf.Settings()
	}
	answer(w, doc)
}
