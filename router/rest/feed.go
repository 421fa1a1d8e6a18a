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

// The applications of all members are one list for all viewers. The router asks the members for it in its own name.
// It gets all fields of each application, its viewers, and the changes since its last request. So a view costs
// members nothing. If any member publishes no changes (one that runs Hadoop's ResourceManager,
// which is not asked, or one that does not accept this router as a router), lists are fetched per viewer.

// feed is the state of each member's list between two rounds.
type feed struct {
	server *server.Server
	user   string // the user as whom the router asks
	allows bool   // whether the router can decide which users may view an application

	mu      sync.Mutex
	members map[creel.SubclusterID]*memberApps
	without time.Time // when a member last published no changes
}

// memberApps is the applications of a member as it reported them.
type memberApps struct {
	at   string // its number of the last report
	rows map[string]*AppRow
	list []*AppRow // the same; rebuilt when one changes
}

// unfed is how long a federation is listed viewer by viewer before its members are asked for changes again.
const unfed = time.Minute

// errNoChanges: the member publishes no changes.
var errNoChanges = errors.New("it publishes no changes of its applications")

// usable reports whether all members publish changes: none runs Hadoop's ResourceManager, and each published them the
// last time.
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

// member asks one. Its part is its own until the next round: rows are never written to.
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
		row := newRow(line, m.ID)
		k.rows[row.ID] = row
	}
	if doc.Whole || len(doc.Gone)+len(doc.Apps) > 0 || k.list == nil {
		k.list = slices.AppendSeq(make([]*AppRow, 0, len(k.rows)), maps.Values(k.rows))
	}
	k.at = doc.At
	return k.list, nil
}

// newRow makes a row of a line from a member. Strings that many lines have in common are stored once.
func newRow(line *subcluster.AppLine, from creel.SubclusterID) *AppRow {
	a := &AppRow{AppLine: *line, Home: from, from: from}
	for _, text := range []*string{&a.User, &a.Queue, &a.Type, &a.State, &a.Outcome, &a.Waits, &a.WaitsIn, &a.Viewers} {
		*text = unique.Make(*text).Value()
	}
	a.viewers, a.Viewers = a.Viewers, ""
	a.hidden, a.Hidden = a.Hidden, false
	a.id, _ = creel.ParseApplicationID(a.ID) // a member that names no id yields the zero one
	a.rank = rankOf(a.State)
	return a
}

// viewer is the viewer of a list that has all fields of each application.
type viewer struct {
	user string
	may  func(acl string) bool
	told map[string]bool // by access list
}

// sees reports whether the viewer may view an application. A nil viewer is shown a list
// that was made for it.
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

// guarded returns an application without the fields that only permitted viewers see.
func guarded(a *AppRow) *AppRow {
	b := *a
	b.Started, b.Finished, b.Containers, b.MemoryMB, b.VCores = 0, 0, 0, 0, 0
	return &b
}

// applications returns the applications of all members, and the viewer.
func (h *Handler) applications(r *http.Request) ([]*AppRow, []listShare[*AppRow], *viewer, error) {
	if h.feed.usable() && !actsForAnother(r) {
		rows, parts, err := h.fedApps.get(r.Context(), "")
		if err == nil && h.feed.usable() {
			user := caller(r)
			if user == "" {
				user = h.conf.StaticUser
			}
			return rows, parts, &viewer{user, h.conf.Allows(user), map[string]bool{}}, nil
		}
	}
	rows, parts, err := h.shownApps.get(r.Context(), identity(r))
	return rows, parts, nil, err
}

// actsForAnother reports whether the members must decide if that is allowed.
func actsForAnother(r *http.Request) bool {
	for name := range r.URL.Query() {
		if strings.EqualFold(name, "doAs") {
			return true
		}
	}
	return false
}

// How often the list of applications is updated while it has viewers, and while it has none: so that it is ready for
// the first viewer.
const (
	fedWait   = 50 * time.Millisecond // for data newer than a second, if there is a list
	watched   = time.Second
	unwatched = 10 * time.Second
)

// Run keeps the list of applications up to date until ctx ends.
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
