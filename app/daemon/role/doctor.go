// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/network"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/signed"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// Finding is the result of one check of an examination.
type Finding struct {
	Subject string // "settings", "ticket", "store", "member sc-1"
	Text    string // the result; of a failure the reason
	Try     string // of a failure: the remedy, if one is known
	Failed  bool
}

// doctorTime bounds each part of an examination: the login, the store, and all calls to one member.
const doctorTime = 20 * time.Second

// Examine does as a daemon of a role what its start and its first calls do, apart from serving: it reads its files,
// logs in at the KDC, reads the state store, and calls each peer with its login. It binds no port and claims nothing.
// Parts that need one that failed are left out.
func Examine(ctx context.Context, s *settings.Settings, role settings.Role) []Finding {
	e := &examination{s: s, role: role}
	if err := Check(s, role); err != nil {
		e.fail("settings", err)
		return e.found
	}
	e.pass("settings", "the files and settings of its start can be read")
	as, ok := e.ticket(ctx)
	e.place(ctx)
	view := e.store(ctx)
	if !ok {
		return e.found
	}
	dial, err := dialTLS(s)
	if err != nil {
		e.fail("settings", err)
		return e.found
	}
	calls := memberCalls(s, as, dial)
	calls.Trips = 1 << 30 // each call is tried
	pool := remote.NewPool(calls)
	defer pool.Close()
	e.peers(ctx, view, pool, as)
	return e.found
}

// examination collects findings.
type examination struct {
	s    *settings.Settings
	role settings.Role

	mu    sync.Mutex
	found []Finding
}

func (e *examination) add(f Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found = append(e.found, f)
}

func (e *examination) pass(subject, text string, args ...any) {
	e.add(Finding{Subject: subject, Text: fmt.Sprintf(text, args...)})
}

func (e *examination) fail(subject string, err error) {
	e.add(Finding{Subject: subject, Text: network.InWords(err).Error(), Failed: true})
}

// ticket logs in at the KDC as the role's principal. ok is false if calls with this login cannot succeed.
func (e *examination) ticket(ctx context.Context) (as daemonLogin, ok bool) {
	user := e.s.String("creel.router.proxy-user")
	if _, logsIn := accounts[e.role]; !logsIn || !secure(e.s) {
		as.User = user
		return as, true
	}
	as, err := loginOf(e.s, e.role, user)
	if err != nil {
		e.fail("ticket", err)
		return as, false
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	// A service may get a ticket for itself: the KDC answers, and knows this key.
	if _, err := as.Ticket.Keytab.Ticket(ctx, as.secure.self); err != nil {
		e.fail("ticket", err)
		return as, false
	}
	e.pass("ticket", "%s logs in by its keytab", as.secure.self)
	return as, true
}

// place reaches the place of a ResourceManager's shared state, without becoming its holder.
func (e *examination) place(ctx context.Context) {
	if e.role != settings.RM {
		return
	}
	shared, err := sharedStateOf(e.s, stateName(e.s), slog.New(slog.DiscardHandler))
	if err != nil {
		e.fail("state", err)
	}
	if shared == nil || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	switch holder, err := shared.inUse(ctx); {
	case err != nil:
		e.fail("state", err)
	case holder == "":
		e.pass("state", "%s answers; no ResourceManager has the state now", shared.place())
	default:
		e.pass("state", "%s answers; %s has the state", shared.place(), holder)
	}
}

// store reads the state store, and returns its members that this daemon would believe; nil: none are known.
func (e *examination) store(ctx context.Context) *subcluster.View {
	if e.role == settings.NM || !Member(e.s) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	store, closeStore, err := OpenStore(ctx, e.s)
	if err != nil {
		e.fail("store", err)
		return nil
	}
	defer closeStore()
	if h, ok := store.(healthChecker); ok {
		found, err := h.Health(ctx)
		if err != nil {
			e.fail("store", err)
			return nil
		}
		for _, f := range found {
			e.add(Finding{Subject: "store", Text: f.What, Try: f.Try, Failed: f.Stop})
		}
	}
	signer, err := signerOf(e.s.String(clusterSecretFile))
	if err != nil {
		e.fail("store", err)
		return nil
	}
	source, refused := store.Records, func() int64 { return 0 }
	if signer != nil {
		reader := signed.New(store, signer, slog.New(slog.DiscardHandler))
		source, refused = reader.Records, reader.Refused
	}
	records, err := source(ctx)
	if err != nil {
		e.fail("store", err)
		return nil
	}
	e.pass("store", "%s answers; it has %d members", shownStore(e.s), len(records.Members))
	if n := refused(); n > 0 {
		e.add(Finding{
			Subject: "store", Failed: true,
			Text: fmt.Sprintf("%d members are not signed under the secret of this configuration", n),
			Try:  "give each daemon the same creel.cluster.secret-file",
		})
	}
	for _, p := range records.Problems {
		e.add(Finding{Subject: "store", Text: p, Failed: true})
	}
	return subcluster.Build(nil, records, records.Now)
}

// peers calls the ResourceManagers that the role calls, all at once.
func (e *examination) peers(ctx context.Context, view *subcluster.View, pool *remote.Pool, as daemonLogin) {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	var list []subcluster.Status
	call := e.reports
	switch e.role {
	case settings.Agent:
		c, err := AgentSettings(e.s)
		if err != nil {
			e.fail("settings", err)
			return
		}
		list = []subcluster.Status{{Member: c.Member, State: subcluster.StateActive}}
	case settings.Router, settings.Proxy:
		if view != nil {
			list = view.Members
		}
		if e.role == settings.Router {
			call = e.tries
		}
	}
	var all sync.WaitGroup
	for i := range list {
		m := &list[i]
		if !m.State.Alive() {
			e.add(Finding{
				Subject: "member " + string(m.ID), Text: m.State.String() + ": " + m.Reason, Failed: true,
				Try: "start it, or remove it: creel subcluster remove " + string(m.ID),
			})
			continue
		}
		all.Go(func() { call(ctx, m, pool, as) })
	}
	all.Wait()
	slices.SortStableFunc(e.found, func(a, b Finding) int {
		if !strings.HasPrefix(a.Subject, "member ") || !strings.HasPrefix(b.Subject, "member ") {
			return 0
		}
		return strings.Compare(a.Subject, b.Subject)
	})
}

// tries makes a router's trial of a member: calls by RPC and REST in the name of another user.
func (e *examination) tries(ctx context.Context, m *subcluster.Status, pool *remote.Pool, as daemonLogin) {
	t := &trials{pool: pool, login: as.User, user: e.s.String("creel.router.trial-user")}
	if t.user == "" {
		t.user = as.User
	}
	subject := "member " + string(m.ID)
	found := t.probe(ctx, m, trial{silent: []string{"kill", "refresh", "kill_by_rest"}}).found
	for _, r := range found {
		e.add(Finding{Subject: subject, Text: "it " + r.Text, Try: r.Try, Failed: true})
	}
	if len(found) == 0 {
		e.pass(subject, "it serves calls of %s by RPC and REST, at %s and %s",
			t.user, m.Addresses.Client, m.Addresses.Web)
	}
}

// reports asks a member for its figures, as this daemon.
func (e *examination) reports(ctx context.Context, m *subcluster.Status, pool *remote.Pool, as daemonLogin) {
	subject := "member " + string(m.ID)
	_, err := pool.Member(m).Client(ctx, remote.Read, as.User, "getClusterMetrics", nil)
	var silent *remote.Unavailable
	switch {
	case errors.As(err, &silent):
		e.add(Finding{
			Subject: subject, Text: network.InWords(err).Error(), Failed: true,
			Try: "start it, or open the path to " + m.Addresses.Client,
		})
	case err != nil:
		e.fail(subject, err)
	default:
		e.pass(subject, "it answers by RPC at %s", m.Addresses.Client)
	}
}
