// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
)

// MemberWait is the state of an application in one member.
type MemberWait struct {
	Member creel.SubclusterID `json:"member"`
	Home   bool               `json:"home,omitempty"`
	// AppWait.Application is its id there: a UAM started again at Hadoop's ResourceManager has another id.
	subcluster.AppWait
	Error string `json:"error,omitempty"` // reason why the member did not answer
}

func (h *Handler) why(w http.ResponseWriter, r *http.Request) {
	app, err := creel.ParseApplicationID(chi.URLParam(r, "appid"))
	if err != nil {
		problem(w, invalidRequest, err.Error())
		return
	}
	out, known := h.server.Decision(app)
	home, err := h.server.Home(r.Context(), app)
	if err != nil && !known {
		problemOf(w, err)
		return
	}
	doc := WhyDoc{Application: app, Home: out.Home, Tries: []TryDoc{}, Waits: []MemberWait{}}
	var notes []string
	lacks := func(err error, part string) {
		if p := statestore.PatienceOf(r.Context()); p != nil && errors.Is(err, creel.ErrUnavailable) {
			p.Lacks(part)
			return
		}
		notes = append(notes, part+": unknown now: "+err.Error())
	}
	if home != nil {
		doc.Home = home.ID
	}
	asked, err := h.server.IntentsOf(r.Context(), app)
	if err != nil {
		lacks(err, "queued changes")
	}
	for _, i := range asked {
		doc.Asked = append(doc.Asked, AskedDoc{User: i.User, Verb: string(i.Verb), What: i.String(), Member: i.Member,
			Doubted: i.Doubted, Refused: i.Refused, AgeSeconds: i.Age.Seconds()})
	}
	if home != nil {
		doc.Waits, err = h.waits(r, app, home)
		if len(doc.Waits) > 0 {
			doc.State, doc.Queue = doc.Waits[0].State, doc.Waits[0].Queue
			doc.Home = doc.Waits[0].Member // the remembered home may be a former one
		}
		if err != nil {
			notes = append(notes, "the reason for its wait is unknown: its home does not answer: "+err.Error())
			doc.Last = h.applications.lastSeen(app, time.Now())
		}
	}
	placed, kept, err := h.server.Placement(r.Context(), app)
	if kept && home != nil && placed.Home() != doc.Home {
		kept = false // the outcome is of an earlier home
	}
	switch {
	case err != nil:
		lacks(err, "the choice of its home")
	case !kept && !known:
		notes = append(notes, "the choice of its home is unknown: it was found at its home "+
			"after the state store had come back empty")
	}
	if kept || known {
		user := out.User
		if kept {
			user = placed.User
		}
		switch may, err := h.mayView(r, app, user); {
		case err != nil:
			notes = append(notes, "the choice is shown only to users who may view the application, and its home, "+
				"which knows them, does not answer now: "+err.Error())
		case !may:
			problem(w, notPermitted,
				"the choice of a home is shown only to the application's user and to users who may view it")
			return
		case kept:
			doc.place(placed, out)
		default:
			doc.Queue, doc.Tries, doc.Received = cmp.Or(doc.Queue, out.Queue), tries(out), out.Received.UTC()
			if n := len(doc.Tries); n > 0 {
				doc.Submission = doc.Tries[n-1].Verdict
			}
		}
	}
	doc.Rebalancer = rebalancerWord(h.server.View(), doc.Queue, doc.label(), doc.Home)
	if h.conf.Operator != nil {
		if doc.Moving, doc.Moved, err = h.conf.Operator.MovesOf(r.Context(), app); err != nil {
			lacks(err, "its moves")
		}
	}
	if text := lacking(r.Context()); text != "" {
		notes = append(notes, text)
	}
	doc.Explain(h.server.Holder)
	doc.Note = strings.Join(notes, "; ")
	answer(w, doc)
}

// place sets the choice of the home from the placement stored with the claim. If home has the application, the last
// try was accepted. Otherwise its outcome is this router's own, if any.
func (d *WhyDoc) place(p router.Placement, seen router.Outcome) {
	d.Queue = cmp.Or(d.Queue, p.Queue)
	d.Received, d.Claimed = p.Received.UTC(), p.Claimed.UTC()
	d.Tries = make([]TryDoc, len(p.Tries))
	for i := range p.Tries {
		t := &p.Tries[i]
		d.Tries[i] = TryDoc{Member: t.Member, Verdict: t.Verdict, Error: t.Err, Claimed: t.Claimed}
		if t.Reason.Policy != "" {
			d.Tries[i].Reason = &t.Reason
		}
	}
	n := len(d.Tries)
	if n == 0 {
		return
	}
	last := &d.Tries[n-1]
	last.Verdict = "claimed" // only home knows whether the submission arrived
	if len(d.Waits) > 0 && d.Waits[0].Error == "" {
		last.Verdict = router.Accepted.String()
	} else if local := tries(seen); len(local) > 0 && local[len(local)-1].Member == last.Member {
		last.Verdict, last.Error = local[len(local)-1].Verdict, local[len(local)-1].Error
		last.Until = local[len(local)-1].Until
	}
	d.Submission = last.Verdict
}

// label returns the label of the nodes in the choice of the home, "" for none or if unknown.
func (d *WhyDoc) label() string {
	if n := len(d.Tries); n > 0 && d.Tries[n-1].Reason != nil {
		r := d.Tries[n-1].Reason
		for i := range r.Candidates {
			if r.Candidates[i].Member == r.Chosen {
				return r.Candidates[i].Numbers.Label
			}
		}
	}
	return ""
}

// rebalancerWord returns the plan in force for a queue on the nodes of a label; nil if there is no plan, or it does
// not cover the queue.
func rebalancerWord(
	view *subcluster.View, queue creel.QueuePath, label string, home creel.SubclusterID,
) *RebalancerWord {
	if view == nil || view.Plan == nil {
		return nil
	}
	q := view.Plan.In(label).Queue(queue)
	if q == nil {
		return nil
	}
	word := &RebalancerWord{
		Plan: view.Plan.Version, Queue: q.Queue, Label: label, Wants: q.Wants, Uses: q.Uses, Entitled: q.Entitled,
		Reason: q.Reason, Followed: !q.Optout && len(q.Members) > 0,
	}
	for _, m := range q.Members {
		if m.Member == home {
			word.AtHome, word.Weight = m.Given, m.Weight
		}
	}
	return word
}

// waitsTime bounds the calls about an application's state: the explanation of a wait must not wait for a paused
// member.
const waitsTime = 2 * time.Second

// waits asks home for the application's state. If its AM runs, it also asks every other member, since these may have
// containers of the application.
func (h *Handler) waits(r *http.Request, app creel.ApplicationID, home *remote.Member) ([]MemberWait, error) {
	ctx, cancel := context.WithTimeout(r.Context(), waitsTime)
	defer cancel()
	ask := func(ctx context.Context, m *remote.Member) (*subcluster.AppWait, error) {
		return standing(ctx, r, app, m)
	}
	at, m, err := server.AtHome(ctx, h.server, app, ask)
	if m != nil {
		home = m
	}
	if err != nil {
		return []MemberWait{{Member: home.ID, Home: true, Error: err.Error(),
			AppWait: subcluster.AppWait{Application: app}}}, err
	}
	out := []MemberWait{{Member: home.ID, Home: true, AppWait: *at}}
	if at.State != creel.AppRunning.String() {
		return out, nil
	}
	idAt := h.server.IDs(ctx, app)
	elsewhere := func(ctx context.Context, m *remote.Member) (*subcluster.AppWait, error) {
		if m.ID == home.ID {
			return nil, nil
		}
		at, err := standing(ctx, r, idAt(m.ID), m)
		if notFound(err) {
			return nil, nil // the member has no part of it
		}
		return at, err
	}
	for _, p := range server.Ask(ctx, h.server, elsewhere) {
		switch {
		case p.Err != nil:
			out = append(out, MemberWait{Member: p.Member, Error: p.Err.Error(),
				AppWait: subcluster.AppWait{Application: app}})
		case p.Value != nil:
			out = append(out, MemberWait{Member: p.Member, AppWait: *p.Value})
		}
	}
	return out, nil
}

// standing asks one member for creel's document about the wait. Hadoop's ResourceManagers do not have it and are
// asked for the application's report: its diagnostics have the reason of the wait.
func standing(
	ctx context.Context,
	r *http.Request,
	app creel.ApplicationID,
	m *remote.Member,
) (*subcluster.AppWait, error) {
	get := func(path string) (reply, error) {
		q := &request{method: http.MethodGet, path: path, user: caller(r), head: forwardHeaders(r, "application/json")}
		if r.URL.RawQuery != "" {
			q.path += "?" + r.URL.RawQuery // the query identifies the caller
		}
		return q.at(ctx, m)
	}
	if !m.ByAgent() {
		if at, err := ownStanding(app, get); at != nil || err != nil {
			return at, err
		}
	}
	said, err := get(base + "/apps/" + app.String())
	if err != nil {
		return nil, err
	}
	var doc struct {
		App struct {
			State, Queue, User, Diagnostics string
			Containers                      int32 `json:"runningContainers"`
			Unmanaged                       bool  `json:"unmanagedApplication"`
		} `json:"app"`
	}
	if err := json.Unmarshal(said.body, &doc); err != nil {
		return nil, fmt.Errorf("%s did not answer with a report: %w", m.ID, err)
	}
	a := doc.App
	at := &subcluster.AppWait{
		Application: app, State: a.State, Queue: creel.QueuePath(a.Queue), User: a.User, Unmanaged: a.Unmanaged,
		Containers: max(a.Containers, 0), Diagnostics: a.Diagnostics,
	}
	if a.State == creel.AppAccepted.String() && a.Diagnostics != "" {
		at.Wait = &subcluster.Wait{Code: subcluster.CodeDiagnostics, Queue: at.Queue, Text: a.Diagnostics}
	}
	return at, nil
}

// ownStanding returns creel's document, nil if the member does not have it.
func ownStanding(app creel.ApplicationID, get func(path string) (reply, error)) (*subcluster.AppWait, error) {
	said, err := get("/api/v1/apps/" + app.String() + "/why")
	switch {
	case notFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var at subcluster.AppWait
	if err := json.Unmarshal(said.body, &at); err != nil || at.Application != app {
		return nil, nil
	}
	return &at, nil
}

func tries(out router.Outcome) []TryDoc {
	docs := []TryDoc{}
	for _, t := range out.Tries {
		doc := TryDoc{Member: t.Member, Verdict: t.Verdict.String(), Claimed: t.Claimed, Until: t.Until.UTC()}
		if t.Err != nil {
			doc.Error = t.Err.Error()
		}
		if t.Reason.Policy != "" {
			doc.Reason = &t.Reason
		}
		docs = append(docs, doc)
	}
	return slices.Clip(docs)
}
