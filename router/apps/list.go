// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// Member is a member that is asked.
type Member struct {
	ID creel.SubclusterID
	// Get fetches a document as JSON. A rejection is a *remote.StatusError.
	Get func(ctx context.Context, path string) ([]byte, error)
}

// Config configures a List.
type Config struct {
	// Ask calls the members that asked selects, at the same time, and returns an answer or an error for each. asked is
	// called for every member of the federation before the first call.
	Ask func(
		ctx context.Context,
		asked func(creel.SubclusterID) bool,
		call func(ctx context.Context, m Member) ([]*Row, error),
	) []router.Part[[]*Row]
	// RunsHadoop reports whether a member runs Hadoop's ResourceManager.
	RunsHadoop func(id creel.SubclusterID) bool
	// Home returns the remembered home of an application.
	Home func(app creel.ApplicationID) (creel.SubclusterID, bool)
	// User is the user of calls for all viewers, and Allows reports whether an access list in Hadoop's form allows a
	// user. Without either, every member is asked as each viewer.
	User   string
	Allows func(user string) func(acl string) bool
	// Changed counts the changes of applications by this router.
	Changed func() int64
}

// List is the list of all members' applications. It is safe for concurrent use.
type List struct {
	conf Config
	feed feed
	// shared has the applications of the members that publish changes, for all viewers. own has those of the others.
	shared *snapshot.Lists[struct{}, *Row, []*Row]
	own    *snapshot.Lists[ownKey, *Row, *ownRows]
}

// ownKey identifies a viewer's own lists.
type ownKey struct {
	identity string // see Reader
	apart    string // the members asked, each followed by a space; allMembers
}

// allMembers as members asked: no list is shared.
const allMembers = "*"

// ownRows are a viewer's own rows, and the whole list that was last made of them.
type ownRows struct {
	parts []Part

	mu   sync.Mutex
	with []Part // the shared parts in rows
	rows []*Row
}

// fedWait is the wait for data newer than a second, if there is a list.
const fedWait = 50 * time.Millisecond

// New makes an empty list. It starts nothing.
func New(c Config) *List {
	l := &List{conf: c}
	l.feed.conf = &l.conf
	l.shared = snapshot.New(snapshot.Config[struct{}, *Row, []*Row]{
		Ask:     func(ctx context.Context, _ struct{}) []router.Part[[]*Row] { return l.feed.ask(ctx) },
		Merge:   func(parts []Part) []*Row { return merge(published(parts), c.Home) },
		Wait:    fedWait,
		Changed: c.Changed,
	})
	l.own = snapshot.New(snapshot.Config[ownKey, *Row, *ownRows]{
		Ask:   l.askApart,
		Merge: func(parts []Part) *ownRows { return &ownRows{parts: parts} },
	})
	return l
}

// shares reports whether lists are shared by viewers.
func (l *List) shares() bool { return l.conf.User != "" && l.conf.Allows != nil }

// Reader is a viewer's request.
type Reader struct {
	Identity string // the part of a query by which members identify the user
	User     string
	// DoAs: the caller acts for another user, which only the members can allow.
	DoAs bool
	// Current: the list must not be from before the request. Scripts rely on it: after `creel app wait` the list has
	// the awaited state.
	Current bool
}

// Read returns the applications of all members.
func (l *List) Read(ctx context.Context, by Reader) (*View, error) {
	v := &View{viewer: viewer{by.User, func(string) bool { return false }, map[string]bool{}}}
	if !l.shares() || by.DoAs {
		own, parts, err := l.own.Get(ctx, ownKey{by.Identity, allMembers}, by.Current)
		if err != nil {
			return nil, err
		}
		v.Rows, v.Parts = own.join(nil, l.conf.Home), parts
		return v, nil
	}
	v.viewer.may = l.conf.Allows(by.User)
	rows, parts, err := l.shared.Get(ctx, struct{}{}, by.Current)
	if err != nil {
		return nil, err
	}
	return v, l.complete(ctx, by, v, rows, parts)
}

// complete sets the rows and parts of a view to the shared ones, and those of members that publish no changes.
func (l *List) complete(ctx context.Context, by Reader, v *View, rows []*Row, parts []Part) error {
	apart := apartOf(parts)
	if apart == "" {
		v.Rows, v.Parts = rows, parts
		return nil
	}
	own, ownParts, err := l.own.Get(ctx, ownKey{by.Identity, apart}, by.Current)
	if err != nil && ownParts == nil {
		return err
	}
	shared := published(parts)
	v.Rows, v.Parts = own.join(shared, l.conf.Home), joined(shared, ownParts)
	return snapshot.Refusal(v.Parts)
}

// apartOf returns the members that publish no changes, as in an ownKey.
func apartOf(parts []Part) string {
	var apart strings.Builder
	for i := range parts {
		if errors.Is(parts[i].Err, errNoChanges) {
			apart.WriteString(string(parts[i].Member) + " ")
		}
	}
	return apart.String()
}

// published returns the parts of the members that publish changes.
func published(parts []Part) []Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return errors.Is(p.Err, errNoChanges) })
}

// joined returns all parts, by member.
func joined(shared, own []Part) []Part {
	all := slices.Concat(shared, own)
	slices.SortFunc(all, func(a, b Part) int { return strings.Compare(string(a.Member), string(b.Member)) })
	return all
}

// join returns the list made of the own parts and shared ones. It is made once after changes.
func (o *ownRows) join(shared []Part, home func(creel.ApplicationID) (creel.SubclusterID, bool)) []*Row {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rows == nil || !snapshot.Same(o.with, shared) {
		o.with, o.rows = shared, merge(joined(shared, o.parts), home)
	}
	return o.rows
}

// askApart asks members for their applications as a viewer.
func (l *List) askApart(ctx context.Context, key ownKey) []router.Part[[]*Row] {
	asked := func(id creel.SubclusterID) bool {
		return key.apart == allMembers || slices.Contains(strings.Fields(key.apart), string(id))
	}
	return l.conf.Ask(ctx, asked, func(ctx context.Context, m Member) ([]*Row, error) {
		rows, err := l.list(ctx, m, key.identity)
		return forViewer(rows), err
	})
}

// list asks one member for its applications as a viewer. Creel's ResourceManagers have a special list for this; others
// are asked for YARN's list.
func (l *List) list(ctx context.Context, m Member, identity string) ([]*Row, error) {
	if l.conf.RunsHadoop(m.ID) {
		return reports(ctx, m, identity)
	}
	doc, err := m.Get(ctx, "/api/v1/apps?"+identity)
	var refused *remote.StatusError
	if errors.As(err, &refused) && refused.Code == http.StatusNotFound {
		return reports(ctx, m, identity)
	}
	if err != nil {
		return nil, err
	}
	var lines struct {
		Apps []*subcluster.AppLine
		Now  int64
	}
	if err := json.Unmarshal(doc, &lines); err != nil {
		return nil, fmt.Errorf("%s did not answer with a list of applications: %w", m.ID, err)
	}
	rows := make([]*Row, len(lines.Apps))
	for i, line := range lines.Apps {
		rows[i] = rowOfLine(line, m.ID, lines.Now, time.Now())
	}
	return rows, nil
}

// reports asks one member for YARN's list.
func reports(ctx context.Context, m Member, identity string) ([]*Row, error) {
	doc, err := m.Get(ctx, "/ws/v1/cluster/apps?deSelects=resourceRequests,timeouts,"+
		"amNodeLabelExpression,appNodeLabelExpression,resourceInfo&"+identity)
	if err != nil {
		return nil, err
	}
	raw, err := rawjson.ListAt(doc, "apps", "app")
	if err != nil {
		return nil, err
	}
	rows, now := make([]*Row, len(raw)), time.Now()
	for i := range raw {
		rows[i] = rowOfReport(raw[i], m.ID, now)
	}
	return rows, nil
}

// Intervals of updates of the shared list, with and without viewers. It is updated without viewers so that it is ready
// for the first one.
const (
	watched   = time.Second
	unwatched = 10 * time.Second
)

// Run updates the shared list until ctx ends.
func (l *List) Run(ctx context.Context) error {
	tick := time.NewTicker(watched)
	defer tick.Stop()
	var last time.Time
	for {
		if l.shares() && (l.shared.Watched() || time.Since(last) > unwatched) {
			last = time.Now()
			l.shared.Renew(ctx, struct{}{})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Last returns the row of an application in the last shared list, without I/O; nil if there is none.
func (l *List) Last(app creel.ApplicationID) *Row {
	rows, _, _ := l.shared.Last(struct{}{})
	for _, row := range rows {
		if row.id == app {
			return row
		}
	}
	return nil
}
