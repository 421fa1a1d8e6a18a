// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// A member is tried when it joins and when it starts again; after a refusal every trialSoon, else every trialEvery,
// since its rules may be reloaded. One silence may be a lost call: the next trial decides.
const (
	trialSoon  = 10 * time.Second
	trialEvery = 10 * time.Minute
	trialTime  = 5 * time.Second // of one trial
)

// absent is an application that no ResourceManager has: ids contain the time of its start, in ms.
var absent = creel.ApplicationID{ClusterTimestamp: 1, ID: 1}

// trials try whether members serve this router's calls in the name of others.
type trials struct {
	view        func() *subcluster.View
	pool        *remote.Pool
	server      *server.Server
	login, user string // this router's user, and the user of the trial
	log         *slog.Logger

	mu   sync.Mutex
	last map[creel.SubclusterID]trial
}

// trial is the last trial of a member.
type trial struct {
	of     subcluster.Member // its record at that time
	at     time.Time
	silent []string // kinds of the probes without an answer
	found  []router.Refusal
}

// due reports whether a member needs a trial.
func (t *trial) due(m *subcluster.Status, now time.Time) bool {
	switch age := now.Sub(t.at); {
	case t.of.Addresses != m.Addresses || t.of.Epoch != m.Epoch || t.of.Version != m.Version:
		return true
	case len(t.silent)+len(t.found) > 0:
		return age >= trialSoon
	default:
		return age >= trialEvery
	}
}

// addTrials adds the task that tries members, its metrics, and its line of readiness.
func (r *Router) addTrials(c RouterConfig, pool *remote.Pool) {
	if c.TrialUser == "" {
		return
	}
	t := &trials{
		view: r.Watcher.View, pool: pool, server: r.Server, login: c.Remote.User, user: c.TrialUser, log: c.Log,
		last: map[creel.SubclusterID]trial{},
	}
	r.Add("trials of members", t.run)
	r.Health.Register(trialFigures{t.figures})
	r.Health.Depend("trials of members", t.state)
}

func (t *trials) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		t.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round tries all members that are due, at the same time: a hanging one delays no other.
func (t *trials) round(ctx context.Context) {
	view := t.view()
	if view == nil || view.Freeze != nil {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	for i := range view.Members {
		m := &view.Members[i]
		t.mu.Lock()
		last := t.last[m.ID]
		t.mu.Unlock()
		if m.State.Alive() && last.due(m, time.Now()) {
			all.Go(func() { t.try(ctx, m, last) })
		}
	}
	t.forget(view)
}

// forget drops members that were removed.
func (t *trials) forget(view *subcluster.View) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.last {
		if _, known := view.Member(id); !known {
			delete(t.last, id)
			t.server.Refused(id, nil)
		}
	}
}

// probe makes one trial of a member. The first silence after an answer is no finding.
func (t *trials) probe(ctx context.Context, m *subcluster.Status, last trial) trial {
	now, member := trial{of: m.Member, at: time.Now()}, t.pool.Member(m)
	for _, probe := range []struct {
		kind string
		call func(ctx context.Context) ([]router.Refusal, error)
	}{
		{"kill", func(ctx context.Context) ([]router.Refusal, error) {
			return client.TryKill(ctx, member, t.login, t.user, absent)
		}},
		{"refresh", func(ctx context.Context) ([]router.Refusal, error) {
			return client.TryRefresh(ctx, member, t.user)
		}},
		{"kill_by_rest", func(ctx context.Context) ([]router.Refusal, error) {
			return client.TryKillByREST(ctx, member, t.user, absent)
		}},
	} {
		limited, cancel := context.WithTimeout(ctx, trialTime)
		found, err := probe.call(limited)
		cancel()
		if err != nil {
			now.silent = append(now.silent, probe.kind)
			found = last.silence(probe.kind, err)
		}
		now.found = append(now.found, found...)
	}
	if why := remote.UnknownRelease(m.HadoopRelease()); why != "" {
		now.found = append(now.found, router.Refusal{
			Kind: "release", Text: fmt.Sprintf("runs Hadoop %s, %s", m.HadoopRelease(), why),
			Try: "run a release of docs/reference/versions.md there",
		})
	}
	return now
}

// try makes one trial, and logs the findings that are new.
func (t *trials) try(ctx context.Context, m *subcluster.Status, last trial) {
	now := t.probe(ctx, m, last)
	if ctx.Err() != nil {
		return
	}
	for _, r := range now.found {
		if !slices.ContainsFunc(last.found, func(was router.Refusal) bool { return was.Kind == r.Kind }) {
			t.log.Warn("member failed its trial", "subcluster", m.ID, "found", r.Text, "try", r.Try)
		}
	}
	if len(last.found) > 0 && len(now.found) == 0 {
		t.log.Info("member passed its trial", "subcluster", m.ID)
	}
	t.mu.Lock()
	t.last[m.ID] = now
	t.mu.Unlock()
	t.server.Refused(m.ID, now.found)
}

// silence returns the findings of a probe without an answer. The first silence changes nothing.
func (t *trial) silence(kind string, err error) (found []router.Refusal) {
	if slices.Contains(t.silent, kind) {
		return []router.Refusal{{
			Kind: kind, Text: "does not answer " + probeNames[kind] + ": " + err.Error(),
			Try: "open the path from routers to the member's ports, or correct its addresses",
		}}
	}
	for _, r := range t.found {
		if r.Kind == kind {
			found = append(found, r)
		}
	}
	return found
}

var probeNames = map[string]string{"kill": "kills", "kill_by_rest": "kills by REST", "refresh": "refreshes"}

// state is the line of readiness.
func (t *trials) state() health.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	var texts []string
	view, passed := t.view(), 0
	for id, last := range t.last {
		if m, ok := view.Member(id); !ok || !m.State.Alive() {
			continue
		}
		if len(last.found) == 0 {
			passed++
		}
		for _, r := range last.found {
			texts = append(texts, fmt.Sprintf("%s %s; %s", id, r.Text, r.Try))
		}
	}
	if len(texts) > 0 {
		slices.Sort(texts)
		return health.State{Warn: true, Text: strings.Join(texts, " | ")}
	}
	return health.State{Text: fmt.Sprintf("%d passed", passed)}
}

var memberRefuses = figure("member_refuses",
	"1 for each service that a live member refuses to this router: impersonation, kill, kill_by_rest, refresh, clock, "+
		"release.", "subcluster", "service")

// trialFigures exports the refusals of live members.
type trialFigures struct {
	each func(yield func(id creel.SubclusterID, service string, refuses float64))
}

// Describe implements prometheus.Collector.
func (trialFigures) Describe(out chan<- *prometheus.Desc) { out <- memberRefuses }

// Collect implements prometheus.Collector. A member that is not alive has no samples.
func (f trialFigures) Collect(out chan<- prometheus.Metric) {
	f.each(func(id creel.SubclusterID, service string, refuses float64) {
		out <- prometheus.MustNewConstMetric(memberRefuses, prometheus.GaugeValue, refuses, string(id), service)
	})
}

func (t *trials) figures(yield func(id creel.SubclusterID, service string, refuses float64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	view := t.view()
	for id, last := range t.last {
		if m, ok := view.Member(id); !ok || !m.State.Alive() {
			continue
		}
		for _, kind := range router.RefusalKinds {
			refuses := 0.0
			if slices.ContainsFunc(last.found, func(r router.Refusal) bool { return r.Kind == kind }) {
				refuses = 1
			}
			yield(id, kind, refuses)
		}
	}
}
