// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// AppsDoc is a page of the federation's applications.
type AppsDoc struct {
	Applications []json.RawMessage `json:"apps"` // apps.Row, or its requested fields
	Matching     apps.Counts       `json:"matching"`
	Groups       []apps.Group      `json:"groups,omitempty"`
	Next         string            `json:"next,omitempty"` // the cursor of the next page
	Missing      []missing         `json:"missing"`
	// AgeSeconds is the age of the oldest member data in the answer.
	AgeSeconds float64 `json:"age_s"`
}

// appsAPI serves the list of applications.
type appsAPI struct {
	list       *apps.List
	staticUser string // of requests without a name
}

// newApps makes an empty list of the applications of a router's members.
func newApps(s *server.Server, c *Config) *apps.List {
	return apps.New(apps.Config{
		Ask: func(
			ctx context.Context, asked func(creel.SubclusterID) bool,
			call func(ctx context.Context, m apps.Member) ([]*apps.Row, error),
		) []router.Part[[]*apps.Row] {
			return server.AskSome(ctx, s, asked, func(ctx context.Context, m *remote.Member) ([]*apps.Row, error) {
				return call(ctx, apps.Member{ID: m.ID, Get: getJSON(m)})
			})
		},
		RunsHadoop: func(id creel.SubclusterID) bool {
			m, ok := s.View().Member(id)
			return ok && m.ByAgent()
		},
		Home:    s.HomeSeen,
		User:    c.User,
		Allows:  c.Allows,
		Changed: func() int64 { return s.Counts().Accepted.Load() + s.Counts().Killed.Load() },
	})
}

// read returns the applications of all members as the caller may read them.
func (a *appsAPI) read(r *http.Request) (*apps.View, error) {
	return a.list.Read(r.Context(), apps.Reader{
		Identity: identity(r),
		User:     cmp.Or(caller(r), a.staticUser),
		DoAs:     actsForAnother(r),
		Current:  r.Header.Get("Cache-Control") == "no-cache", // RFC 9111, section 5.2.1.4
	})
}

// actsForAnother reports whether the caller acts for another user.
func actsForAnother(r *http.Request) bool {
	for name := range r.URL.Query() {
		if strings.EqualFold(name, "doAs") {
			return true
		}
	}
	return false
}

// countWait bounds the wait for the list of applications where the members' own numbers can stand in for it.
const countWait = time.Second

// counted returns the list of applications for counts. It does not wait for a member that hangs.
func (a *appsAPI) counted(r *http.Request) (*apps.View, error) {
	ctx, cancel := context.WithTimeout(r.Context(), countWait)
	defer cancel()
	return a.read(r.WithContext(ctx))
}

// home returns the home of an application by the last list of applications, without I/O.
func (a *appsAPI) home(app creel.ApplicationID) (creel.SubclusterID, bool) {
	if row := a.list.Last(app); row != nil {
		return row.Home, row.Home != ""
	}
	return "", false
}

// lastSeen returns the last report of an application, nil if this router has none.
func (a *appsAPI) lastSeen(app creel.ApplicationID, now time.Time) *LastSeen {
	row := a.list.Last(app)
	if row == nil {
		return nil
	}
	seen := &LastSeen{User: row.User, Queue: creel.QueuePath(row.Queue), State: row.State, AgeSeconds: -1}
	if at := row.SentAt(); !at.IsZero() {
		seen.AgeSeconds = now.Sub(at).Round(time.Second).Seconds()
	}
	return seen
}

func invalid(what, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Try: try}
}

// appQuery reads the query for a page of applications.
func appQuery(q url.Values) (apps.Query, error) {
	out := apps.Query{
		States: words(q.Get("state")), Queue: q.Get("queue"), User: q.Get("user"), Type: q.Get("type"),
		Home: q.Get("home"), Outcome: q.Get("outcome"), Tags: words(q.Get("tag")), Search: q.Get("q"),
		WaitsFor: q.Get("waits_for"), WaitsIn: q.Get("waits_in"), Sort: q.Get("sort"), Group: q.Get("group"),
		Cursor: q.Get("cursor"), Limit: 50,
	}
	if text := q.Get("limit"); text != "" {
		var err error
		if out.Limit, err = strconv.Atoi(text); err != nil {
			return out, invalid("limit is not a number from 1 to 1000", "")
		}
	}
	return out, nil
}

// words splits a text at commas, and leaves out empty parts.
func words(text string) (out []string) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

// serve serves a page of the federation's applications.
func (a *appsAPI) serve(w http.ResponseWriter, r *http.Request) {
	doc, err := a.page(r)
	if err != nil {
		problemOf(w, err)
		return
	}
	answerTagged(w, r, doc)
}

func (a *appsAPI) page(r *http.Request) (*AppsDoc, error) {
	q, err := appQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	f, err := apps.NewFilter(q)
	if err != nil {
		return nil, err
	}
	all, err := a.read(r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	page, err := all.Page(f, now)
	if err != nil {
		return nil, err
	}
	doc := &AppsDoc{
		Applications: make([]json.RawMessage, len(page.Rows)),
		Matching:     page.Matching, Groups: page.Groups, Next: page.Next,
		Missing: missingOf(all.Parts, now), AgeSeconds: snapshot.Age(all.Parts, now),
	}
	var fields []string
	if text := r.URL.Query().Get("fields"); text != "" {
		fields = strings.Split(text, ",")
	}
	for i := range page.Rows {
		if doc.Applications[i], err = selectFields(&page.Rows[i], fields); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// selectFields encodes a row, or its requested fields.
func selectFields(a *apps.Row, fields []string) (json.RawMessage, error) {
	raw, err := json.Marshal(a)
	if err != nil || fields == nil {
		return raw, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for _, name := range fields {
		if v, ok := all[name]; ok {
			out[name] = v
		} else if !appRowNames[name] {
			return nil, invalid(
				"an application has no field "+strconv.Quote(name),
				"see AppRow in /api/v1/openapi.json",
			)
		}
	}
	return json.Marshal(out)
}

// appRowNames are the names of all fields of a row.
var appRowNames = func() map[string]bool {
	names := map[string]bool{}
	raw, err := json.Marshal(apps.Row{
		AppLine: subcluster.AppLine{
			Finished: 1, Waits: "a", WaitsIn: "a", Unmanaged: true, Tags: []string{"a"},
		},
		Elsewhere: []creel.SubclusterID{"a"}, WaitsText: "a", AgeSeconds: 1, WaitsSeconds: 1,
	})
	if err == nil {
		rawjson.EachField(raw, func(name, _ []byte) bool { names[string(name)] = true; return true })
	}
	return names
}()

// answerTagged answers with an ETag, or with an empty 304 if the client has the same document.
func answerTagged(w http.ResponseWriter, r *http.Request, doc any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(doc); err != nil {
		problemOf(w, err)
		return
	}
	sum := sha256.Sum256(body.Bytes())
	tag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Add("Vary", "Cookie")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body.Bytes()) // an error means that the client has gone
}

// tallyOf returns the counts for the summary. waits are the reasons, the most frequent first.
func tallyOf(c *apps.Counts, waits []apps.WaitGroup) router.Tally {
	t := router.Tally{
		Known: true, Running: c.Running, Waiting: c.Waiting,
		Oldest: time.Duration(c.OldestWait * float64(time.Second)),
	}
	if len(waits) > 0 && waits[0].Code != "" {
		t.Reason = waits[0].Code + " in " + cmp.Or(waits[0].In, waits[0].Queue)
	}
	return t
}
