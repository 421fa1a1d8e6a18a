// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// AppRow is an application in a list. Times are ms of its home's clock; containers, memory and vcores are the sums
// over all members.
type AppRow struct {
	subcluster.AppLine
	Home      creel.SubclusterID   `json:"home"`
	Elsewhere []creel.SubclusterID `json:"elsewhere,omitempty"` // members with its UAMs
	// WaitsText is home's text about the wait if home reports no codes (Hadoop's ResourceManager). Then waits_for is
	// "diagnostics".
	WaitsText string `json:"waits_text,omitempty"`
	// AgeSeconds is the age of this data if its home does not answer now.
	AgeSeconds float64 `json:"age_s,omitempty"`
	// WaitsSeconds is the age of its wait; omitted if it does not wait, or if the member does not report it.
	WaitsSeconds float64 `json:"waits_s,omitempty"`

	waits   time.Time // start of its wait, by this router's clock; zero if unknown
	id      creel.ApplicationID
	viewers string // access list of its viewers, in a list for all viewers (see feed.go)
	hidden  bool   // from lists of users without permission to view it
	rank    int    // of its state
	from    creel.SubclusterID
	at      time.Time // time when its home sent it, if it is not current
}

// rankOf orders applications: running, waiting, ended. One that waits has no AM yet, or has asks that are not granted.
func rankOf(a *AppRow) int {
	switch {
	case a.State == "FINISHED" || a.State == "FAILED" || a.State == "KILLED":
		return 2
	case a.State == "RUNNING" && a.WaitsSince == 0:
		return 0
	}
	return 1
}

// group has the name of each rank, which filters accept as a state.
var group = [...]string{"running", "waiting", "ended"}

// rowNow is appRow for a list that has just arrived.
func rowNow(raw []byte, from creel.SubclusterID) *AppRow { return appRow(raw, from, time.Now()) }

// appRow reads an application of YARN's list at the given time. The list has no codes, and no asks of applications that
// run: only those without an AM wait, since their start.
func appRow(raw []byte, from creel.SubclusterID, now time.Time) *AppRow {
	a := &AppRow{Home: from, from: from}
	elapsed := int64(-1) // ms since its start, by its home's clock
	rawjson.EachField(raw, func(name, v []byte) bool {
		switch string(name) {
		case "id":
			a.ID = rawjson.Text(v)
		case "name":
			a.Name = rawjson.Text(v)
		case "user":
			a.User = rawjson.Text(v)
		case "queue":
			a.Queue = rawjson.Text(v)
		case "applicationType":
			a.Type = rawjson.Text(v)
		case "state":
			a.State = rawjson.Text(v)
		case "finalStatus":
			a.Outcome = rawjson.Text(v)
		case "startedTime":
			a.Started = rawjson.Whole(v)
		case "finishedTime":
			a.Finished = rawjson.Whole(v)
		case "elapsedTime":
			elapsed = rawjson.Whole(v)
		case "runningContainers":
			a.Containers = max(rawjson.Whole(v), 0)
		case "allocatedMB":
			a.MemoryMB = max(rawjson.Whole(v), 0)
		case "allocatedVCores":
			a.VCores = max(rawjson.Whole(v), 0)
		case "priority":
			a.Priority = rawjson.Whole(v)
		case "applicationTags":
			if text := rawjson.Text(v); text != "" {
				a.Tags = strings.Split(text, ",")
			}
		case "diagnostics":
			a.WaitsText = rawjson.Text(v)
		case "unmanagedApplication":
			a.Unmanaged = rawjson.Flag(v)
		}
		return true
	})
	a.id, _ = creel.ParseApplicationID(a.ID) // without an id it is the zero id
	if app, ok := router.UAMOf(a.Unmanaged, a.Tags); ok {
		a.ID, a.id = app.String(), app
	}
	a.rank = rankOf(a)
	if a.rank == 1 && elapsed >= 0 {
		a.waits = now.Add(-time.Duration(min(elapsed, longestWait)) * time.Millisecond)
	}
	if a.rank != 1 || a.WaitsText == "" {
		a.WaitsText = ""
	} else {
		a.Waits = subcluster.CodeDiagnostics
	}
	return a
}

// listApplications asks every member for its applications. Creel's ResourceManagers have a special list for this;
// others are asked for YARN's list.
func listApplications(s *server.Server) func(ctx context.Context, who string) []router.Part[[]*AppRow] {
	const yarns = base + "/apps?deSelects=resourceRequests,timeouts," +
		"amNodeLabelExpression,appNodeLabelExpression,resourceInfo"
	return func(ctx context.Context, who string) []router.Part[[]*AppRow] {
		return server.Ask(ctx, s, func(ctx context.Context, m *remote.Member) ([]*AppRow, error) {
			if m.ByAgent() {
				return readList(ctx, m, yarns+"&"+who, "apps", "app", rowNow)
			}
			head := http.Header{"Accept": {"application/json"}}
			doc, _, err := m.Web(ctx, remote.List, http.MethodGet, "/api/v1/apps?"+who, "", head, nil)
			var refused *remote.StatusError
			if errors.As(err, &refused) && refused.Code == http.StatusNotFound {
				return readList(ctx, m, yarns+"&"+who, "apps", "app", rowNow)
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
			rows := make([]*AppRow, len(lines.Apps))
			for i, line := range lines.Apps {
				rows[i] = newRow(line, m.ID, lines.Now, time.Now())
			}
			return rows, nil
		})
	}
}

// appRowFields reads the fields of a row that MergeApps needs, and merges an application's rows at its home and its
// UAMs' members.
var appRowFields = router.AppFields[*AppRow]{
	ID:        func(a *AppRow) creel.ApplicationID { return a.id },
	Unmanaged: func(a *AppRow) bool { return a.Unmanaged },
	Start:     func(a *AppRow) int64 { return a.Started },
	Part:      func(a *AppRow) bool { return creel.IsUAM(a.Unmanaged, a.Name, a.Tags) },
	Join: func(same []router.Part[*AppRow]) *AppRow {
		a := *same[0].Value
		for _, p := range same[1:] {
			if p.Member != a.from && !slices.Contains(a.Elsewhere, p.Member) { // it may have had earlier UAMs there
				a.Elsewhere = append(a.Elsewhere, p.Member)
			}
			a.Containers += p.Value.Containers
			a.MemoryMB += p.Value.MemoryMB
			a.VCores += p.Value.VCores
			if p.Value.rank == 1 && a.rank == 0 { // home has granted all, and the UAM waits
				a.rank, a.Waits, a.WaitsIn = 1, p.Value.Waits, p.Value.WaitsIn
				a.waits = p.Value.waits
			} else if a.rank == 1 && !p.Value.waits.IsZero() && p.Value.waits.Before(a.waits) {
				a.waits = p.Value.waits
			}
		}
		return &a
	},
}

// mergeRows lists the applications of all members, each once. Running ones come first, then waiting ones, then ended
// ones, each sorted newest first.
func (h *Handler) mergeRows(parts []listShare[*AppRow]) []*AppRow {
	lists := make([]router.Part[[]*AppRow], len(parts))
	for i := range parts {
		lists[i] = router.Part[[]*AppRow]{Member: parts[i].Member, Value: parts[i].Items}
		if parts[i].Err == nil {
			continue
		}
		lists[i].Value = make([]*AppRow, len(parts[i].Items))
		for j, a := range parts[i].Items {
			old := *a
			old.at = parts[i].At
			lists[i].Value[j] = &old
		}
	}
	rows, _ := router.MergeApps(lists, appRowFields, h.server.HomeSeen, 0)
	slices.SortStableFunc(rows, func(a, b *AppRow) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.Started, a.Started), b.id.Compare(a.id))
	})
	return rows
}

// waitsFor is the age of its wait in whole seconds; 0 if it does not wait, or if that is unknown.
func (a *AppRow) waitsFor(now time.Time) float64 {
	if a.rank != 1 || a.waits.IsZero() {
		return 0
	}
	return max(now.Sub(a.waits).Round(time.Second).Seconds(), 1)
}

// AppCounts counts applications by state, and sums their resources.
type AppCounts struct {
	Running    int64 `json:"running"`
	Waiting    int64 `json:"waiting"`
	Ended      int64 `json:"ended"`
	Containers int64 `json:"containers"`
	MemoryMB   int64 `json:"memory_mb"`
	// OldestWait is the age of the oldest wait in seconds, omitted if none waits or if members do not report it.
	OldestWait float64 `json:"oldest_wait_s,omitempty"`
}

func (c *AppCounts) add(a *AppRow, seen bool, now time.Time) {
	switch a.rank {
	case 0:
		c.Running++
	case 1:
		c.Waiting++
		c.OldestWait = max(c.OldestWait, a.waitsFor(now))
	default:
		c.Ended++
	}
	if seen && a.at.IsZero() { // sums of used resources do not include stale rows
		c.Containers += a.Containers
		c.MemoryMB += a.MemoryMB
	}
}

// AppGroup counts the applications with the same value of a field.
type AppGroup struct {
	Key string `json:"key"`
	AppCounts
}

// AppsDoc is a page of the federation's applications.
type AppsDoc struct {
	Applications []json.RawMessage `json:"apps"` // AppRow, or its requested fields
	Matching     AppCounts         `json:"matching"`
	Groups       []AppGroup        `json:"groups,omitempty"`
	Next         string            `json:"next,omitempty"` // the cursor of the next page
	Missing      []missing         `json:"missing"`
	// AgeSeconds is the age of the oldest member data in the answer.
	AgeSeconds float64 `json:"age_s"`
}

// appFilter is the query for a list of applications.
type appFilter struct {
	states      []string
	queue       string
	exact       [4]string // user, type, home, outcome
	tags        []string  // any one matches; in lower case as in YARN; none: all match
	search      string
	waits       [2]string // code, and queue with the limit
	sort        string    // a name of appOrders
	order       appOrder
	after       *placed // the row before the page, from the cursor
	limit       int
	fields      []string
	group       func(a *AppRow) []string
	wantsGroups bool
}

const maxAppPage = 1000

// groupings are the fields by which applications are grouped.
var groupings = map[string]func(a *AppRow) []string{
	"queue": func(a *AppRow) []string { return []string{a.Queue} },
	"user":  func(a *AppRow) []string { return []string{a.User} },
	"state": func(a *AppRow) []string { return []string{a.State} },
	"home":  func(a *AppRow) []string { return []string{string(a.Home)} },
	"type":  func(a *AppRow) []string { return []string{a.Type} },
	"tag":   func(a *AppRow) []string { return a.Tags }, // an application is in the group of each tag
}

func invalid(what, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Try: try}
}

func readAppFilter(q url.Values) (f appFilter, err error) {
	f = appFilter{
		queue:  q.Get("queue"),
		exact:  [4]string{q.Get("user"), q.Get("type"), q.Get("home"), q.Get("outcome")},
		search: strings.ToLower(strings.TrimSpace(q.Get("q"))),
		waits:  [2]string{q.Get("waits_for"), q.Get("waits_in")},
		limit:  50,
	}
	var known, reverse bool
	f.sort, reverse = strings.CutPrefix(cmp.Or(q.Get("sort"), "state"), "-")
	if f.order, known = appOrders[f.sort]; !known {
		return f, invalid("applications cannot be sorted by "+strconv.Quote(f.sort),
			strings.Join(slices.Sorted(maps.Keys(appOrders)), ", "))
	}
	if reverse {
		f.order = f.order.reversed(f.sort)
	}
	for s := range strings.SplitSeq(q.Get("tag"), ",") {
		if s = strings.TrimSpace(s); s != "" {
			f.tags = append(f.tags, strings.ToLower(s))
		}
	}
	for s := range strings.SplitSeq(q.Get("state"), ",") {
		if s = strings.TrimSpace(s); s != "" {
			f.states = append(f.states, s)
		}
	}
	if text := q.Get("limit"); text != "" {
		if f.limit, err = strconv.Atoi(text); err != nil || f.limit < 1 || f.limit > maxAppPage {
			return f, invalid("limit is not a number from 1 to 1000", "")
		}
	}
	if by := q.Get("group"); by != "" {
		if f.group, f.wantsGroups = groupings[by]; !f.wantsGroups {
			return f, invalid(
				"applications cannot be grouped by "+strconv.Quote(by),
				"queue, user, state, home, type or tag",
			)
		}
	}
	if text := q.Get("fields"); text != "" {
		f.fields = strings.Split(text, ",")
	}
	if text := q.Get("cursor"); text != "" {
		if f.after, err = parseCursor(text, f.order); err != nil {
			return f, err
		}
	}
	return f, nil
}

// place finds the start time of the cursor's application. The cursor does not contain it, since not all viewers may
// know it.
func (f *appFilter) place(rows []*AppRow) error {
	if f.after == nil {
		return nil
	}
	i := slices.IndexFunc(rows, func(a *AppRow) bool { return a.id == f.after.row.id })
	if i < 0 {
		return invalid("the cursor's application is no longer known", "leave it out to start again")
	}
	f.after.row.Started = rows[i].Started
	return nil
}

func (f *appFilter) keeps(a *AppRow) bool {
	if len(f.states) > 0 && !slices.ContainsFunc(f.states, a.isIn) {
		return false
	}
	if f.queue != "" && a.Queue != f.queue && !strings.HasPrefix(a.Queue, f.queue+".") &&
		creel.QueuePath(a.Queue).Leaf() != f.queue {
		return false
	}
	if len(f.tags) > 0 && !slices.ContainsFunc(a.Tags, func(tag string) bool {
		return slices.Contains(f.tags, strings.ToLower(strings.TrimSpace(tag)))
	}) {
		return false
	}
	for i, is := range [...]string{a.User, a.Type, string(a.Home), a.Outcome} {
		if f.exact[i] != "" && f.exact[i] != is {
			return false
		}
	}
	for i, is := range [...]string{a.Waits, a.WaitsIn} {
		if f.waits[i] != "" && f.waits[i] != is {
			return false
		}
	}
	if f.search == "" {
		return true
	}
	for _, text := range [...]string{a.ID, a.Name, a.User, a.Queue} {
		if strings.Contains(strings.ToLower(text), f.search) {
			return true
		}
	}
	return false
}

// isIn reports whether an application is in a state: a group in lower case, or YARN's state. "running" in lower case
// does not contain those that wait for asks.
func (a *AppRow) isIn(state string) bool {
	if slices.Contains(group[:], state) {
		return group[a.rank] == state
	}
	return strings.EqualFold(a.State, state)
}

// listApps serves a page of the federation's applications.
func (h *Handler) listApps(w http.ResponseWriter, r *http.Request) {
	f, err := readAppFilter(r.URL.Query())
	var rows []*AppRow
	var parts []listShare[*AppRow]
	var who *viewer
	if err == nil {
		rows, parts, who, err = h.applications(r)
	}
	if err == nil {
		err = f.place(rows)
	}
	if err != nil {
		problemOf(w, err)
		return
	}
	now := time.Now()
	doc := AppsDoc{
		Missing: missingOf(parts, now), AgeSeconds: ageOf(parts, now),
	}
	groups := map[string]*AppGroup{}
	page := firstRows{limit: f.limit}
	for _, a := range rows {
		if !f.keeps(a) {
			continue
		}
		seen := who.sees(a)
		if !who.lists(a) {
			continue
		}
		doc.Matching.add(a, seen, now)
		if f.wantsGroups {
			for _, key := range f.group(a) {
				if groups[key] == nil {
					groups[key] = &AppGroup{Key: key}
				}
				groups[key].add(a, seen, now)
			}
		}
		if p := f.placeOf(a, seen); f.after == nil || f.after.compare(&p) < 0 {
			page.add(p)
		}
	}
	if doc.Applications, doc.Next, err = f.encode(&page, now); err != nil {
		problemOf(w, err)
		return
	}
	for _, g := range groups {
		doc.Groups = append(doc.Groups, *g)
	}
	slices.SortFunc(doc.Groups, func(a, b AppGroup) int {
		return cmp.Or(cmp.Compare(b.Running+b.Waiting, a.Running+a.Waiting), cmp.Compare(b.Ended, a.Ended),
			strings.Compare(a.Key, b.Key))
	})
	doc.Groups = doc.Groups[:min(len(doc.Groups), maxAppPage)]
	answerTagged(w, r, doc)
}

// encode returns the rows of a page, and the cursor of the next one, "" if there is none.
func (f *appFilter) encode(g *firstRows, now time.Time) (out []json.RawMessage, next string, err error) {
	rows, more := g.end()
	out = make([]json.RawMessage, len(rows))
	for i, p := range rows {
		row := *p.row
		if !p.seen {
			row = *guarded(p.row)
		}
		if !row.at.IsZero() {
			row.AgeSeconds = time.Since(row.at).Round(100 * time.Millisecond).Seconds()
		}
		row.WaitsSeconds = row.waitsFor(now)
		if out[i], err = selectFields(&row, f.fields); err != nil {
			return nil, "", err
		}
	}
	if more {
		next = rows[len(rows)-1].cursor(f.order)
	}
	return out, next, nil
}

// selectFields encodes a row, or its requested fields.
func selectFields(a *AppRow, fields []string) (json.RawMessage, error) {
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
	raw, err := json.Marshal(AppRow{
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

// countsBy counts applications by a key.
type countsBy[K comparable] map[K]*AppCounts

func (m countsBy[K]) add(key K, a *AppRow, now time.Time) {
	if m[key] == nil {
		m[key] = &AppCounts{}
	}
	m[key].add(a, true, now)
}

func (m countsBy[K]) of(key K) AppCounts {
	if c := m[key]; c != nil {
		return *c
	}
	return AppCounts{}
}

// countWait bounds the wait for the list of applications where the members' own numbers can stand in for it.
const countWait = time.Second

// counted returns the list of applications for counts. It does not wait for a member that hangs.
func (h *Handler) counted(r *http.Request) ([]*AppRow, error) {
	ctx, cancel := context.WithTimeout(r.Context(), countWait)
	defer cancel()
	rows, _, _, err := h.applications(r.WithContext(ctx))
	return rows, err
}

// countAll counts all applications.
func countAll(rows []*AppRow, now time.Time) *AppCounts {
	c := &AppCounts{}
	for _, a := range rows {
		c.add(a, true, now)
	}
	return c
}

// tallyOf returns the counts for the summary. waits are the reasons, the most frequent first.
func tallyOf(c *AppCounts, waits []WaitGroup) router.Tally {
	t := router.Tally{
		Known: true, Running: c.Running, Waiting: c.Waiting,
		Oldest: time.Duration(c.OldestWait * float64(time.Second)),
	}
	if len(waits) > 0 && waits[0].Code != "" {
		t.Reason = waits[0].Code + " in " + cmp.Or(waits[0].In, waits[0].Queue)
	}
	return t
}

// WaitGroup counts applications of one queue that wait for the same reason.
type WaitGroup struct {
	Applications int64  `json:"apps"`
	Queue        string `json:"queue"`
	Code         string `json:"code"`           // as in /api/v1/apps/ID/why; "" if home reports none
	In           string `json:"in,omitempty"`   // the queue with the limit
	Text         string `json:"text,omitempty"` // text of one application if there is no code (diagnostics)
	Example      string `json:"example"`        // an application that the viewer may see, "" if there is none
	// OldestWait is the age of the oldest wait in seconds; omitted if the members do not report it.
	OldestWait float64 `json:"oldest_wait_s,omitempty"`
}

// digits are the parts in which texts for the same reason differ.
var digits = regexp.MustCompile(`[0-9]+`)

// topWaits counts the reasons why applications wait, the most frequent first.
func topWaits(rows []*AppRow, who *viewer, most int, now time.Time) []WaitGroup {
	type reason struct{ queue, code, in, text string }
	by := map[reason]*WaitGroup{}
	for _, a := range rows {
		if a.rank != 1 {
			continue
		}
		key := reason{a.Queue, a.Waits, a.WaitsIn, digits.ReplaceAllString(a.WaitsText, "#")}
		if by[key] == nil {
			by[key] = &WaitGroup{Queue: a.Queue, Code: a.Waits, In: a.WaitsIn, Text: a.WaitsText}
		}
		by[key].Applications++
		by[key].OldestWait = max(by[key].OldestWait, a.waitsFor(now))
		if by[key].Example == "" && who.lists(a) {
			by[key].Example = a.ID
		}
	}
	out := []WaitGroup{}
	for _, g := range by {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b WaitGroup) int {
		return cmp.Or(cmp.Compare(b.Applications, a.Applications), strings.Compare(a.Example, b.Example))
	})
	return out[:min(len(out), most)]
}
