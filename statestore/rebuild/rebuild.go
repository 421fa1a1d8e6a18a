// SPDX-License-Identifier: Apache-2.0

// Package rebuild is the loop that gives a state store which came back empty
// its homes again, from what all ResourceManagers say they run. Until it is
// done no new claim is served, so that no running application gets a second
// home.
//
// Every router runs it; a lease lets one at a time work. A member that was in
// the federation when the store was last whole and has not deregistered must
// answer, whatever its state was: a list that lacks one member is no evidence.
// To give a member up for good that will never answer, start all routers anew
// on the empty store.
//
// Where two members claim an application the rule of statestore.Rebuild
// decides, an audit line is written, and the application is ended at the
// others. Policies that the view still has and the store lacks are put back.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Store is a state store that can lose what it had while processes go on.
type Store interface {
	// Lost tells whether it came back empty, in part or in whole.
	Lost(ctx context.Context) (bool, error)
	// Reopen stops all claims, writes the homes that collect gives, and serves
	// claims again; it may be repeated until it returns no error.
	Reopen(ctx context.Context, collect func(context.Context) ([]statestore.Home, error)) ([]statestore.Conflict, error)

	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error)
	Release(ctx context.Context, l statestore.Lease) error
	PutPolicy(ctx context.Context, w statestore.PolicyWrite) (subcluster.Policy, error)
}

// Config of a Rebuilder. View, Ask and End are required.
type Config struct {
	View func() *subcluster.View // as the store tells it; nil at first
	// Ask has a member list its applications, ended ones too.
	Ask func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error)
	// End kills an application at a member that is not its home; that it is
	// not there, or has ended, is success.
	End func(ctx context.Context, m *subcluster.Status, app creel.ApplicationID) error

	Name    string        // of this process, as holder of the lease
	Every   time.Duration // between looks at the store, 1s
	Timeout time.Duration // of one rebuilding, 1m
	Log     *slog.Logger  // nil: silent
}

// Rebuilder is the loop. Make one with New, run it with Run.
type Rebuilder struct {
	cfg    Config
	store  Store
	before *subcluster.View // the last view of a store that was whole
}

// New makes a Rebuilder.
func New(store Store, cfg Config) *Rebuilder {
	if cfg.Every <= 0 {
		cfg.Every = time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Rebuilder{cfg: cfg, store: store}
}

// Run looks after the store until ctx ends, then returns nil.
func (r *Rebuilder) Run(ctx context.Context) error {
	tick := time.NewTicker(r.cfg.Every)
	defer tick.Stop()
	reported := ""
	for {
		if trouble := r.look(ctx); trouble == nil {
			reported = ""
		} else if text := trouble.Error(); text != reported && ctx.Err() == nil {
			reported = text
			r.cfg.Log.Warn("state store not rebuilt", "error", text)
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
	view := r.cfg.View() // before the store is asked: if it is whole then, so was the view's
	asked, end := context.WithTimeout(ctx, 2*r.cfg.Every)
	lost, err := r.store.Lost(asked)
	end()
	if err != nil {
		return nil // it is ill, which others tell; there is nothing to rebuild yet
	}
	if !lost {
		if view != nil && view.Freeze == nil {
			r.before = view
		}
		return nil
	}
	lease, err := r.store.Acquire(ctx, "rebuild", r.cfg.Name, r.cfg.Timeout)
	if errors.Is(err, creel.ErrConflict) {
		return nil // another process does it
	}
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Every)
		defer cancel()
		_ = r.store.Release(bye, lease) // it runs out by itself otherwise
	}()
	return r.rebuild(statestore.Under(ctx, lease))
}

// rebuild does it once.
func (r *Rebuilder) rebuild(ctx context.Context) error {
	members := r.members()
	r.cfg.Log.Warn("state store came back empty, asking the ResourceManagers what they run", "members", len(members))
	var resolved []statestore.Conflict
	found := 0
	overruled, err := r.store.Reopen(ctx, func(ctx context.Context) ([]statestore.Home, error) {
		reports, err := r.collect(ctx, members)
		if err != nil {
			return nil, err
		}
		var homes []statestore.Home
		homes, resolved = statestore.Rebuild(reports)
		found = len(homes)
		return homes, nil
	})
	if err != nil {
		return err
	}
	r.cfg.Log.Warn("state store rebuilt", "applications", found, "conflicts", len(resolved)+len(overruled))
	for _, c := range slices.Concat(resolved, overruled) {
		r.cfg.Log.Warn(
			"audit",
			"action",
			"rebuild",
			"application",
			c.Application.String(),
			"home",
			c.Home,
			"others",
			c.Others,
			"rule",
			c.Rule,
		)
		for _, id := range c.Others {
			r.end(ctx, members, id, c.Application)
		}
	}
	r.putBack(ctx)
	return nil
}

// members are all that must answer.
func (r *Rebuilder) members() []*subcluster.Status {
	var out []*subcluster.Status
	for _, v := range []*subcluster.View{r.cfg.View(), r.before} { // newer addresses first
		if v == nil {
			continue
		}
		for i := range v.Members {
			m := &v.Members[i]
			if m.State != subcluster.StateDeregistered &&
				!slices.ContainsFunc(out, func(o *subcluster.Status) bool { return o.ID == m.ID }) {
				out = append(out, m)
			}
		}
	}
	return out
}

// collect asks all members at once; all must answer.
func (r *Rebuilder) collect(ctx context.Context, members []*subcluster.Status) ([]statestore.Report, error) {
	if len(members) == 0 {
		return nil, errors.New("no member is known yet that could be asked")
	}
	reports, errs := make([]statestore.Report, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			apps, err := r.cfg.Ask(ctx, m)
			if err != nil {
				errs[i] = fmt.Errorf("%s must say what it runs: %w", m.ID, err)
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
		return // a claim of somebody that is no member
	}
	if err := r.cfg.End(ctx, members[i], app); err != nil {
		r.cfg.Log.Error("audit", "action", "end", "application", app.String(), "subcluster", id, "error", err)
		return
	}
	r.cfg.Log.Warn("audit", "action", "end", "application", app.String(), "subcluster", id, "result", "success")
}

// putBack writes the policies that were there, unless somebody wrote new ones.
func (r *Rebuilder) putBack(ctx context.Context) {
	if r.before == nil {
		return
	}
	for _, p := range r.before.Policies.All() {
		_, err := r.store.PutPolicy(ctx, statestore.PolicyWrite{
			Queue:    p.Queue,
			Document: p.Document,
			Author:   p.Author,
			Comment: strings.TrimSpace(
				p.Comment + fmt.Sprintf(" (version %d, put back after the store was lost)", p.Version),
			),
		})
		if err != nil && !errors.Is(err, creel.ErrConflict) {
			r.cfg.Log.Error("policy not put back", "queue", p.Queue, "error", err)
		}
	}
}
