// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/history"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
)

// HistoryDoc has the figures of one subject at equal steps, oldest first. A measure without a known figure is omitted;
// null is an unknown figure.
type HistoryDoc struct {
	Subject string    `json:"subject"` // federation, member/ID, queue/PATH
	From    time.Time `json:"from"`    // start of the first step, by this router's clock
	StepS   float64   `json:"step_s"`
	Steps   int       `json:"steps"`
	Use     Figures   `json:"use,omitempty"` // part of the dominant resource, from 0 to 1
	// Entitlement is in the unit of Use. The federation and members have the sum of their leaf queues.
	Entitlement Figures `json:"entitlement,omitempty"`
	Waiting     Figures `json:"waiting,omitempty"` // applications
	Grants      Figures `json:"grants,omitempty"`  // containers granted in the step
	GrantP50    Figures `json:"ask_to_grant_p50_s,omitempty"`
	GrantP99    Figures `json:"ask_to_grant_p99_s,omitempty"`
	Submissions Figures `json:"submissions,omitempty"` // through this router in the step
	// LeftOut is the number of members and queues for which this router has no room.
	LeftOut int `json:"left_out,omitempty"`
}

// Figures are numbers, and nil for unknown ones.
type Figures []*float32

// figures converts figures of a history.
func figures(values []float32) Figures {
	if values == nil {
		return nil
	}
	out := make(Figures, len(values))
	for i, v := range values {
		if history.Known(v) {
			out[i] = &values[i]
		}
	}
	return out
}

// historyDoc converts the figures of a subject.
func historyDoc(now time.Time, subject history.Subject, s *history.Series) HistoryDoc {
	step := s.Step()
	v := &s.Values
	return HistoryDoc{
		Subject:     subject.String(),
		From:        now.Add(-s.Age - time.Duration(s.Length)*step).UTC().Round(time.Millisecond),
		StepS:       step.Seconds(),
		Steps:       s.Length,
		Use:         figures(v[history.Use]),
		Entitlement: figures(v[history.Entitlement]),
		Waiting:     figures(v[history.Waiting]),
		Grants:      figures(v[history.Grants]),
		GrantP50:    figures(v[history.GrantP50]),
		GrantP99:    figures(v[history.GrantP99]),
		Submissions: figures(v[history.Submissions]),
	}
}

// historyQuery reads the subject, the time and the step of a call. The default is the federation's last hour.
func historyQuery(r *http.Request) (subject history.Subject, res history.Resolution, last time.Duration, err error) {
	text := r.URL.Query().Get("subject")
	subject, ok := history.ParseSubject(text)
	if !ok && text != "" {
		err = invalid("the subject is invalid", "give federation, member/ID or queue/PATH")
	}
	rng, err2 := number(r, "range_s", int64(time.Hour/time.Second))
	if err2 == nil && (rng < 1 || rng > 86400) {
		err2 = invalid("range_s is not a number from 1 to 86400", "")
	}
	last = time.Duration(rng) * time.Second
	if last > time.Hour {
		res = history.Coarse
	}
	step, err3 := number(r, "step_s", int64(res.Step()/time.Second))
	switch step {
	case 5:
		res, last = history.Fine, min(last, time.Hour)
	case 60:
		res = history.Coarse
	default:
		err3 = errors.Join(err3, invalid("step_s is neither 5 nor 60", ""))
	}
	return subject, res, last, errors.Join(err, err2, err3)
}

// showHistory serves the figures of a subject.
func showHistory(from *server.Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		subject, res, last, err := historyQuery(r)
		if err != nil {
			problemOf(w, err)
			return
		}
		now := time.Now()
		series, leftOut, ok := from.History(now, subject, res, last)
		if !ok && !exists(from.View(), subject) {
			problemOf(w, noHistory(subject))
			return
		}
		series.Resolution = res
		doc := historyDoc(now, subject, &series)
		doc.LeftOut = leftOut
		answer(w, doc)
	}
}

// copyType is the type of a copy of the history.
const copyType = "application/octet-stream"

// copyHistory serves the whole history to another router, one copy at a time: a copy may have 60 MB.
func copyHistory(from *server.Server) http.HandlerFunc {
	var busy atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if !busy.CompareAndSwap(false, true) {
			problemOf(w, &creel.Error{
				Kind: creel.ErrUnavailable, What: "the history is not copied now", Why: "another router copies it",
				Try: "repeat the call", RetryAfter: time.Second,
			})
			return
		}
		defer busy.Store(false)
		out := http.NewResponseController(w)
		_ = out.SetWriteDeadline(time.Now().Add(copyTime)) // a reader that stalls must not keep others out
		w.Header().Set("Content-Type", copyType)
		_ = server.CopyHistory(from, time.Now(), w) // an error means that the client has gone
		_ = out.SetWriteDeadline(time.Time{})
	}
}

// copyTime bounds a copy of the history.
const copyTime = 20 * time.Second

// exists reports whether a subject is in a view. Then its history is empty at first, and not missing.
func exists(view *subcluster.View, subject history.Subject) bool {
	if subject.Kind == history.Federation || view == nil {
		return subject.Kind == history.Federation
	}
	if subject.Kind == history.Member {
		_, ok := view.Member(creel.SubclusterID(subject.Name))
		return ok
	}
	return slices.ContainsFunc(view.Members, func(m subcluster.Status) bool {
		return slices.ContainsFunc(m.Load.Queues, func(q subcluster.QueueLoad) bool {
			return string(q.Queue) == subject.Name
		})
	})
}

// noHistory is the error for a member or a queue without figures.
func noHistory(subject history.Subject) error {
	kind := creel.ErrSubclusterNotFound
	if subject.Kind == history.Queue {
		kind = creel.ErrQueueNotFound
	}
	return &creel.Error{
		Kind: kind, What: "no history of " + subject.String(), Why: "this router has not observed it within a day",
	}
}
