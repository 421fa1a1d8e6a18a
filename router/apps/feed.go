// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// feed asks members for the changes of their applications. It has the applications of each member as of its last
// answer. One goroutine at a time calls ask.
type feed struct {
	conf *Config

	mu      sync.Mutex
	members map[creel.SubclusterID]*memberApps
}

// memberApps are the applications of one member.
type memberApps struct {
	at      string // the member's number of its last report
	rows    map[string]*Row
	list    []*Row    // the rows as a list; rebuilt after changes
	refused time.Time // last time when the member published no changes
}

// unfed is the time for which a member's list is fetched per viewer before it is asked for changes again.
const unfed = time.Minute

// errNoChanges is the error for a member that publishes no changes. Its applications are fetched per viewer.
var errNoChanges = errors.New("it publishes no changes of its applications")

// ask updates the list of each member that publishes changes. The others are not called, and have errNoChanges.
func (f *feed) ask(ctx context.Context) []router.Part[[]*Row] {
	var apart []router.Part[[]*Row]
	parts := f.conf.Ask(ctx, func(id creel.SubclusterID) bool {
		if f.isApart(id) {
			apart = append(apart, router.Part[[]*Row]{Member: id, Err: errNoChanges})
			return false
		}
		return true
	}, f.member)
	parts = append(parts, apart...)
	here := map[creel.SubclusterID]bool{}
	for _, p := range parts {
		here[p.Member] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.members, func(id creel.SubclusterID, _ *memberApps) bool { return !here[id] })
	return parts
}

// isApart reports whether a member is not asked for changes.
func (f *feed) isApart(id creel.SubclusterID) bool {
	if f.conf.RunsHadoop(id) {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.members[id]
	return k != nil && !k.refused.IsZero() && time.Since(k.refused) < unfed
}

// of returns the applications of a member.
func (f *feed) of(id creel.SubclusterID) *memberApps {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members == nil {
		f.members = map[creel.SubclusterID]*memberApps{}
	}
	if f.members[id] == nil {
		f.members[id] = &memberApps{rows: map[string]*Row{}}
	}
	return f.members[id]
}

// refuse records that a member publishes no changes, and drops its applications.
func (f *feed) refuse(id creel.SubclusterID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members[id] = &memberApps{rows: map[string]*Row{}, refused: time.Now()}
}

// member asks one member. The returned part stays valid after the next round, since rows are never modified.
func (f *feed) member(ctx context.Context, m Member) ([]*Row, error) {
	k := f.of(m.ID)
	query := url.Values{"user.name": {f.conf.User}, "since": {k.at}}
	text, err := m.Get(ctx, "/api/v1/apps/changes?"+query.Encode())
	var refused *remote.StatusError
	if errors.As(err, &refused) && refused.Code < http.StatusInternalServerError {
		f.refuse(m.ID)
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
		row := rowOfLine(line, m.ID, doc.Now, time.Now())
		k.rows[row.ID] = row
	}
	if doc.Whole || len(doc.Gone)+len(doc.Apps) > 0 || k.list == nil {
		k.list = slices.AppendSeq(make([]*Row, 0, len(k.rows)), maps.Values(k.rows))
	}
	k.at = doc.At
	return k.list, nil
}
