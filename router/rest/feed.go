// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// The applications of all members form one list for all viewers. The router asks the members for it as itself. It
// gets all fields of each application, its viewers, and the changes since its last request. So views cause no calls
// to members. If any member publishes no changes, lists are fetched per viewer. That is so for members running
// Hadoop's ResourceManager, which are not asked, and for members that do not accept this router as a router.

// feed is the state of each member's list between two rounds.
type feed struct {
	server *server.Server
	user   string // the user of the router's calls
	allows bool   // the router can evaluate access lists

	mu      sync.Mutex
	members map[creel.SubclusterID]*memberApps
	without time.Time // last time when a member published no changes
}

// memberApps has the applications that a member reported.
type memberApps struct {
	at   string // the member's number of its last report
	rows map[string]*AppRow
	list []*AppRow // the rows as a list; rebuilt after changes
}

// unfed is the time for which lists are fetched per viewer before members are asked for changes again.
const unfed = time.Minute

// errNoChanges is the error for a member that publishes no changes.
var errNoChanges = errors.New("it publishes no changes of its applications")

// usable reports whether all members publish changes: none runs Hadoop's ResourceManager, and each published changes
// the last time.
func (f *feed) usable() bool {
	if f.user == "" || !f.allows || f.server.AsksHadoop() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.without) > unfed
}

// ask updates the list of each member.
func (f *feed) ask(ctx context.Context, _ string) []router.Part[[]*AppRow] {
	parts := server.Ask(ctx, f.server, f.member)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range parts {
		if errors.Is(p.Err, errNoChanges) {
			f.without = time.Now()
		}
	}
	here := map[creel.SubclusterID]bool{}
	for _, p := range parts {
		here[p.Member] = true
	}
	maps.DeleteFunc(f.members, func(id creel.SubclusterID, _ *memberApps) bool { return !here[id] })
	return parts
}

// member asks one member. The returned part stays valid after the next round, since rows are never modified.
func (f *feed) member(ctx context.Context, m *remote.Member) ([]*AppRow, error) {
	if m.ByAgent() {
		return nil, errNoChanges
	}
	f.mu.Lock()
	if f.members == nil {
		f.members = map[creel.SubclusterID]*memberApps{}
	}
	k := f.members[m.ID]
	if k == nil {
		k = &memberApps{rows: map[string]*AppRow{}}
		f.members[m.ID] = k
	}
	f.mu.Unlock()
	path := "/api/v1/apps/changes?" + url.Values{"user.name": {f.user}, "since": {k.at}}.Encode()
	text, _, err := m.Web(ctx, remote.List, http.MethodGet, path, "", http.Header{"Accept": {"application/json"}}, nil)
	var refused *remote.StatusError
	if errors.As(err, &refused) && refused.Code < http.StatusInternalServerError {
		return nil, errNoChanges
	}
	if err != nil {
		return nil, err
	}
	var doc subcluster.AppChanges
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s did not answer with a list of changes: %w", m.ID, err)
	}
	if doc.Whole {
		clear(k.rows)
	}
	for _, id := range doc.Gone {
		delete(k.rows, id)
	}
	for _, line := range doc.Apps {
		row := newRow(line, m.ID, doc.Now, time.Now())
		k.rows[row.ID] = row
	}
	if doc.Whole || len(doc.Gone)+len(doc.Apps) > 0 || k.list == nil {
		k.list = slices.AppendSeq(make([]*AppRow, 0, len(k.rows)), maps.Values(k.rows))
	}
	k.at = doc.At
	return k.list, nil
}

// newRow makes a row from a line that a member sent at its time sent, in ms, and that came at now. Strings common to
// many lines are stored once.
func newRow(line *subcluster.AppLine, from creel.SubclusterID, sent int64, now time.Time) *AppRow {
	a := &AppRow{AppLine: *line, Home: from, from: from}
	for _, text := range []*string{&a.User, &a.Queue, &a.Type, &a.State, &a.Outcome, &a.Waits, &a.WaitsIn, &a.Viewers} {
		*text = unique.Make(*text).Value()
	}
	a.viewers, a.Viewers = a.Viewers, ""
	a.hidden, a.Hidden = a.Hidden, false
	a.id, _ = creel.ParseApplicationID(a.ID) // without an id it is the zero id
	a.rank = rankOf(a)
	if a.WaitsSince > 0 {
		a.waits = now.Add(-time.Duration(min(max(sent-a.WaitsSince, 0), longestWait)) * time.Millisecond)
		a.WaitsSince = 0 // of another clock
	}
	return a
}

// longestWait limits the age of a wait, in ms: a member may report any number.
const longestWait = int64(10 * 365 * 24 * time.Hour / time.Millisecond)

// viewer is the user viewing a list with all fields of each application.
type viewer struct {
	user string
	may  func(acl string) bool
	told map[string]bool // by access list
}

// sees reports whether the viewer may view an application. For a nil viewer the list was already made for the user.
func (v *viewer) sees(a *AppRow) bool {
	if v == nil || v.user == a.User || a.viewers == "*" {
		return true
	}
	ok, known := v.told[a.viewers]
	if !known {
		ok = v.may(a.viewers)
		v.told[a.viewers] = ok
	}
	return ok
}

// lists reports whether an application is in the viewer's lists.
func (v *viewer) lists(a *AppRow) bool { return !a.hidden || v.sees(a) }

// guarded returns an application without the fields for permitted viewers only.
func guarded(a *AppRow) *AppRow {
	b := *a
	b.Started, b.Finished, b.Containers, b.MemoryMB, b.VCores, b.waits = 0, 0, 0, 0, 0, time.Time{}
	return &b
}

// applications returns the applications of all members, and the viewer.
func (h *Handler) applications(r *http.Request) ([]*AppRow, []listShare[*AppRow], *viewer, error) {
	if h.feed.usable() && !actsForAnother(r) {
		rows, parts, err := h.fedApps.list(r.Context(), "", wantsCurrent(r))
		if err == nil && h.feed.usable() {
			user := caller(r)
			if user == "" {
				user = h.conf.StaticUser
			}
			return rows, parts, &viewer{user, h.conf.Allows(user), map[string]bool{}}, nil
		}
	}
	rows, parts, err := h.shownApps.list(r.Context(), identity(r), wantsCurrent(r))
	return rows, parts, nil, err
}

// wantsCurrent reports whether a client wants no list from before its request (RFC 9111, section 5.2.1.4). Scripts
// rely on it: after `creel app wait` the list has the awaited state.
func wantsCurrent(r *http.Request) bool { return r.Header.Get("Cache-Control") == "no-cache" }

// actsForAnother reports whether the caller acts for another user, which only the members can allow.
func actsForAnother(r *http.Request) bool {
	for name := range r.URL.Query() {
		if strings.EqualFold(name, "doAs") {
			return true
		}
	}
	return false
}

// Intervals of updates of the list of applications, with and without viewers. It is updated without viewers so that
// it is ready for the first one.
const (
	fedWait   = 50 * time.Millisecond // wait for data newer than a second, if there is a list
	watched   = time.Second
	unwatched = 10 * time.Second
)

// Run updates the list of applications until ctx ends.
func (h *Handler) Run(ctx context.Context) error {
	tick := time.NewTicker(watched)
	defer tick.Stop()
	var last time.Time
	for {
		if h.feed.usable() && (h.fedApps.watchedSince(time.Now().Add(-sharedIdle)) || time.Since(last) > unwatched) {
			last = time.Now()
			h.fedApps.renew(ctx, "")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
