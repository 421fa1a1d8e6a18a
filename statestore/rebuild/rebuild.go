// SPDX-License-Identifier: Apache-2.0

// Package rebuild is the loop that restores the homes of a state store which came back empty or in an earlier state,
// from the reports of all ResourceManagers. No new claim is served before it is done, so that no running application
// gets a second home.
//
// Every router runs the loop; a lease lets one at a time work. A member must report if it was in the federation when
// the store was last complete, whatever its state was. Members that have deregistered or were removed need not. A
// list that lacks one member is no evidence. A router that started on the empty store knows only members that have
// registered again. So ResourceManagers, proxies and other routers run a Witness, which reports their known members
// to the store, and the router waits for them (Config.Settle). A new federation is an empty store too, and is treated
// the same. AcceptMissing excludes a member that will never report (creel store rebuild --accept-missing).
//
// If two members report an application, statestore.Rebuild chooses the home, an audit line is logged, and the
// application is ended at the others. Policies and drains of the view are restored if the store lacks them or has an
// earlier state.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Store is a state store that can lose its data while processes are running.
type Store interface {
	// Lost reports whether all or part of the store came back empty or in an earlier state.
	Lost(ctx context.Context) (bool, error)
	// Reopen stops all claims, writes the homes that collect returns, and serves claims again. Repeat it until it
	// returns no error.
	Reopen(
		ctx context.Context, collect func(context.Context) ([]statestore.ApplicationHome, error),
	) ([]statestore.Conflict, error)

	// Remember reports members that must be asked to the rebuilding process. Remembered returns the reported members,
	// and the excluded ones.
	Remember(ctx context.Context, members []subcluster.Member) error
	Remembered(ctx context.Context) (members []subcluster.Member, missing []creel.SubclusterID, err error)

	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error)
	Release(ctx context.Context, l statestore.Lease) error
	Records(ctx context.Context) (subcluster.Records, error)
	PutPolicy(ctx context.Context, w statestore.PolicyWrite) (subcluster.Policy, error)
	Drain(ctx context.Context, id creel.SubclusterID, reason string) error
}

// Config of a Rebuilder. View, Ask and End are required.
type Config struct {
	View func() *subcluster.View // from the store; nil at first
	// Ask returns a member's applications, including ended ones.
	Ask func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error)
	// End kills an application at a member that is not its home; it is success if the application
	// is missing or ended.
	End func(ctx context.Context, m *subcluster.Status, app creel.ApplicationID) error

	Name  string        // of this process, as holder of the lease
	Every time.Duration // between checks of the store, 1s
	// Settle is the time for which a process that never saw the complete store waits for those that
	// did; default: five times Every.
	Settle  time.Duration
	Timeout time.Duration // of one rebuild, 1m
	// Clock measures Settle: this process's pauses do not count. Its owner runs it; nil: time.Now.
	Clock *pauseclock.Clock
	Log   *slog.Logger // nil: silent
}

// Rebuilder is the loop. Make one with New, run it with Run.
type Rebuilder struct {
	cfg    Config
	store  Store
	before *subcluster.View              // the last view of a complete store
	since  time.Time                     // when the store was first found lost; zero while it is whole
	told   int                           // one more than the number of members to ask, as last logged; 0: not logged
	drains map[creel.SubclusterID]string // restored once their members have registered

	trouble atomic.Pointer[string] // why the store serves no homes; nil while it serves them
}

// Witness returns a loop that rebuilds nothing: while the store is lost, it reports the members that this process knew.
// Processes other than routers run it.
func Witness(store Store, view func() *subcluster.View, every time.Duration) *Rebuilder {
	return New(store, Config{View: view, Every: every})
}

// Trouble returns why the store serves no homes, "" while it serves them. It may be called at any time.
func (r *Rebuilder) Trouble() string {
	if t := r.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// New makes a Rebuilder.
func New(store Store, cfg Config) *Rebuilder {
	if cfg.Every <= 0 {
		cfg.Every = time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Settle <= 0 {
		cfg.Settle = 5 * cfg.Every
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Rebuilder{cfg: cfg, store: store}
}

// Run checks the store until ctx ends, then returns nil.
func (r *Rebuilder) Run(ctx context.Context) error {
	tick := time.NewTicker(r.cfg.Every)
	defer tick.Stop()
	reported := ""
	for {
		trouble := r.look(ctx)
		r.tell(trouble)
		if trouble == nil {
			reported = ""
		} else if text := trouble.Error(); text != reported && ctx.Err() == nil {
			reported = text
			r.cfg.Log.Warn("failed to rebuild the state store", "error", text)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look rebuilds the store if it is lost.
func (r *Rebuilder) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	view := r.cfg.View() // before the store is checked: if the store is whole then, so is the view's
	asked, end := context.WithTimeout(ctx, 2*r.cfg.Every)
	lost, err := r.store.Lost(asked)
	end()
	if err != nil {
		return nil // the store is in trouble, as others report: nothing to rebuild yet
	}
	if !lost {
		r.since, r.told = time.Time{}, 0
		r.drain(ctx)
		if view != nil && view.Freeze == nil {
			r.before = view
		}
		return nil
	}
	if r.since.IsZero() {
		r.since = r.cfg.Clock.Now()
	}
	if r.before != nil {
		if err := r.remember(ctx); err != nil {
			return err
		}
	}
	if r.cfg.Ask == nil {
		return nil // a witness
	}
	if r.before == nil && r.cfg.Clock.Now().Sub(r.since) < r.cfg.Settle {
		return nil // processes that knew the store may report until then
	}
	lease, err := r.store.Acquire(ctx, "rebuild", r.cfg.Name, r.cfg.Timeout)
	if errors.Is(err, creel.ErrConflict) {
		return nil // another process rebuilds
	}
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Every)
		defer cancel()
		_ = r.store.Release(bye, lease) // else the lease expires
	}()
	// Another process may have rebuilt the store between the check and the lease: a complete store must not be closed.
	if lost, err = r.store.Lost(ctx); err != nil || !lost {
		return nil // an error: others report it; not lost: the next check finds it
	}
	return r.rebuild(statestore.Under(ctx, lease))
}

// tell stores why the store serves no homes, for the readiness check.
func (r *Rebuilder) tell(trouble error) {
	if r.since.IsZero() {
		r.trouble.Store(nil)
		return
	}
	text := "the store came back empty or in an earlier state; its homes are being rebuilt"
	if r.before == nil { // this process has seen no complete store
		text = "the store is new or came back empty; its homes are being rebuilt"
	}
	if trouble != nil {
		text += ": " + trouble.Error()
	}
	r.trouble.Store(&text)
}

// remember reports the known members to the store, once a rebuild has begun.
func (r *Rebuilder) remember(ctx context.Context) error {
	var known []subcluster.Member
	for _, m := range r.members() {
		known = append(known, m.Member)
	}
	err := r.store.Remember(ctx, known)
	if errors.Is(err, creel.ErrConflict) {
		return nil // no rebuild has begun
	}
	return err
}

// asked returns the members that must report: the known ones, and the ones reported by other processes. known is
// whether any process saw the complete store.
func (r *Rebuilder) asked(ctx context.Context) (members []*subcluster.Status, known bool, err error) {
	told, missing, err := r.store.Remembered(ctx)
	if err != nil {
		return nil, false, err
	}
	out := r.members()
	for _, m := range told {
		if !slices.ContainsFunc(out, func(o *subcluster.Status) bool { return o.ID == m.ID }) &&
			!r.deregistered(m.ID) {
			out = append(out, &subcluster.Status{Member: m})
		}
	}
	out = slices.DeleteFunc(out, func(m *subcluster.Status) bool { return slices.Contains(missing, m.ID) })
	return out, r.before != nil || len(told) > 0, nil
}

// deregistered reports whether a member that others reported has left since.
func (r *Rebuilder) deregistered(id creel.SubclusterID) bool {
	m, ok := r.cfg.View().Member(id)
	return ok && m.State == subcluster.StateDeregistered
}

// rebuild makes one rebuild.
func (r *Rebuilder) rebuild(ctx context.Context) error {
	members, known, err := r.asked(ctx)
	if err != nil {
		return err
	}
	if r.told != len(members)+1 {
		r.told = len(members) + 1
		r.cfg.Log.Info("state store lost its data, reading applications from the ResourceManagers",
			"members", len(members))
	}
	var resolved []statestore.Conflict
	found := 0
	overruled, err := r.store.Reopen(ctx, func(ctx context.Context) ([]statestore.ApplicationHome, error) {
		members, known, err = r.asked(ctx) // claims are stopped, and the other processes have reported
		if err != nil {
			return nil, err
		}
		reports, err := r.collect(ctx, members)
		if err != nil {
			return nil, err
		}
		var homes []statestore.ApplicationHome
		homes, resolved = statestore.Rebuild(reports)
		found = len(homes)
		return homes, nil
	})
	if err != nil {
		return err
	}
	if !known && found == 0 {
		r.cfg.Log.Info("state store is new: no process saw an earlier one, and no member has applications")
		return nil
	}
	r.cfg.Log.Warn("state store rebuilt", "applications", found, "conflicts", len(resolved)+len(overruled),
		"try", "find out why the store lost its data; make it persistent (docs/operations/redis.md)")
	for _, c := range slices.Concat(resolved, overruled) {
		line := audit.Line{Operation: "rebuild", Target: c.Application.String(), Result: audit.Success}
		line.Log(r.cfg.Log, slog.Any("home", c.Home), slog.Any("others", c.Others), slog.String("rule", c.Rule))
		for _, id := range c.Others {
			r.end(ctx, members, id, c.Application)
		}
	}
	r.putBack(ctx)
	return nil
}

// members returns all known members that must report. A member that the complete store lacked had been removed.
func (r *Rebuilder) members() []*subcluster.Status {
	var out []*subcluster.Status
	for _, v := range []*subcluster.View{r.cfg.View(), r.before} { // newer addresses first
		if v == nil {
			continue
		}
		for i := range v.Members {
			m := &v.Members[i]
			if was, ok := r.before.Member(m.ID); ok && was.Forgotten && m.Forgotten || r.deregistered(m.ID) {
				continue
			}
			if m.State != subcluster.StateDeregistered &&
				!slices.ContainsFunc(out, func(o *subcluster.Status) bool { return o.ID == m.ID }) {
				out = append(out, m)
			}
		}
	}
	return out
}

// collect asks all members in parallel; all must answer.
func (r *Rebuilder) collect(ctx context.Context, members []*subcluster.Status) ([]statestore.Report, error) {
	if len(members) == 0 {
		return nil, errors.New("no member is known yet")
	}
	reports, errs := make([]statestore.Report, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			apps, err := r.cfg.Ask(ctx, m)
			if err != nil {
				errs[i] = fmt.Errorf(
					"%s must report its applications, or be excluded (creel store rebuild --accept-missing %s): %w",
					m.ID,
					m.ID,
					err,
				)
			}
			reports[i] = statestore.Report{Member: m.ID, Applications: apps}
		})
	}
	wg.Wait()
	return reports, errors.Join(errs...)
}

func (r *Rebuilder) end(
	ctx context.Context,
	members []*subcluster.Status,
	id creel.SubclusterID,
	app creel.ApplicationID,
) {
	i := slices.IndexFunc(members, func(m *subcluster.Status) bool { return m.ID == id })
	if i < 0 {
		return // a claim by a non-member
	}
	line := audit.Line{Operation: "end", Target: app.String()}
	line.Result, line.Error = audit.Of(r.cfg.End(ctx, members[i], app))
	line.Log(r.cfg.Log, slog.String("subcluster", string(id)))
}

// drain restores the drains of members that have registered again.
func (r *Rebuilder) drain(ctx context.Context) {
	for id, reason := range r.drains {
		switch err := r.store.Drain(ctx, id, reason); {
		case errors.Is(err, creel.ErrUnavailable), errors.Is(err, creel.ErrInvalidRequest):
			continue // not yet
		case err != nil:
			r.cfg.Log.Error("failed to restore a drain", "subcluster", id, "error", err)
		}
		delete(r.drains, id)
	}
}

// putBack restores policies and drains that the store lacks or has in an earlier state. Later ones are unchanged.
func (r *Rebuilder) putBack(ctx context.Context) {
	if r.before == nil {
		return
	}
	now, err := r.store.Records(ctx)
	if err != nil {
		r.cfg.Log.Error("failed to restore policies and drains", "error", err)
		return
	}
	writes, drains := statestore.PutBack(r.before, now)
	r.drains = drains
	for _, w := range writes {
		if _, err := r.store.PutPolicy(ctx, w); err != nil && !errors.Is(err, creel.ErrConflict) {
			r.cfg.Log.Error("failed to restore a policy", "queue", w.Queue, "error", err)
		}
	}
}
