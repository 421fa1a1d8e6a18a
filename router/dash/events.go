// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore"
)

var (
	eventsPage = pages.Page{
		Path: "/events", Name: "events", Title: "Events", Section: "events", Load: loadEvents, Command: eventsLine,
	}
	appEventsPage    = eventsOf("/apps/", "apps", "Application")
	memberEventsPage = eventsOf("/members/", "members", "Member")
	queueEventsPage  = eventsOf("/queues/", "queues", "Queue")
)

// tab is a part of an object's pages.
type tab struct {
	Path, Title string
	Here        bool
}

// tabsOf returns the two tabs of an object: its page, and its events.
func tabsOf(under, id, title string, events bool) []tab {
	page := under + url.PathEscape(id)
	first := page
	if under == "/queues/" {
		first = queueLink(id)
	}
	return []tab{{first, title, !events}, {page + "/events", "Events", events}}
}

func queueLink(queue string) string { return pages.WithQuery("/queues", "queue", queue) }

// eventsOf is the page of the events of one application, member or queue.
func eventsOf(under, section, title string) pages.Page {
	return pages.Page{
		Path: under + "{id}/events", Name: "events", Title: "Events", Section: section,
		Load: func(c *pages.Call) (any, error) {
			e, err := eventsFor(c, c.Param("id"), under+url.PathEscape(c.Param("id"))+"/events")
			if err != nil {
				return nil, err
			}
			e.Fixed, e.Tabs = c.Param("id"), tabsOf(under, c.Param("id"), title, true)
			if id, err := creel.ParseApplicationID(e.Fixed); err == nil {
				e.Name = rowOf(c, id).Name
			}
			return e, nil
		},
		Command: eventsLine,
	}
}

// eventList is a page of events, newest first.
type eventList struct {
	rest.EventsDoc
	Tabs  []tab
	Fixed string // the page's only subject; "": the viewer chooses
	Name  string // of an application that is the page's only subject; "" if it has none
	// The filters.
	Subject, Kind, User, Since string
	Newest, Older              string // addresses of other pages; "" if there is none
}

func (e *eventList) PageTitle() string {
	if e.Fixed != "" {
		return "Events of " + cmp.Or(e.Name, e.Fixed)
	}
	return "Events"
}

// Kinds returns the kinds for the filter.
func (*eventList) Kinds() []statestore.EventKind { return statestore.EventKinds }

// Periods returns the periods for the filter.
func (*eventList) Periods() []period {
	return []period{{"", "30 days"}, {"1h", "hour"}, {"24h", "day"}, {"168h", "7 days"}}
}

// period is a value of the filter by time, and its name.
type period struct{ Value, Name string }

const shownEvents = 50

func loadEvents(c *pages.Call) (any, error) {
	return eventsFor(c, strings.TrimSpace(c.Query("subject")), "/events")
}

// eventsFor loads the newest events that match the page's filters.
func eventsFor(c *pages.Call, subject, path string) (*eventList, error) {
	e := &eventList{
		Subject: subject, Kind: c.Query("kind"), User: strings.TrimSpace(c.Query("user")),
		Since: strings.TrimSpace(c.Query("since")),
	}
	before := c.Query("before")
	if before == "" {
		before = statestore.EventCursor(time.Now().Add(24 * time.Hour)) // the store's clock may be ahead
	}
	filters := []string{"kind", e.Kind, "user", e.User, "since", e.Since}
	at := pages.WithQuery("/api/v1/events", append(slices.Clone(filters),
		"subject", subject, "before", before, "limit", "50")...)
	if err := c.Get(at, &e.EventsDoc); err != nil {
		return nil, err
	}
	slices.Reverse(e.Events)
	if path == "/events" {
		filters = append(filters, "subject", subject)
	}
	if c.Query("before") != "" {
		e.Newest = pages.WithQuery(path, filters...)
	}
	if n := len(e.Events); n == shownEvents {
		e.Older = pages.WithQuery(path, append(filters, "before", e.Events[n-1].ID)...)
	}
	return e, nil
}

// eventsLine is the command that lists the page's events.
func eventsLine(c *pages.Call) string {
	line := "creel events"
	subject := c.Query("subject")
	if id := c.Param("id"); id != "" {
		subject = id
	}
	for _, f := range [][2]string{
		{subject, "--subject"}, {c.Query("kind"), "--kind"}, {c.Query("user"), "--of"}, {c.Query("since"), "--since"},
	} {
		if v := strings.TrimSpace(f[0]); v != "" {
			line += " " + f[1] + " " + pages.ShellWord(v)
		}
	}
	return line
}

// subjectLink returns the page of an event's subject, "" if it has none.
func subjectLink(e statestore.Event) string {
	switch e.Kind {
	case statestore.EventMember, statestore.EventDrain, statestore.EventBreaker:
		return "/members/" + url.PathEscape(e.Subject)
	case statestore.EventPolicy:
		return "/policies/" + url.PathEscape(e.Subject)
	case statestore.EventLeader:
		return "/rebalancer"
	}
	if _, err := creel.ParseApplicationID(e.Subject); err == nil {
		return "/apps/" + e.Subject
	}
	if e.Subject == string(creel.RootQueue) || strings.HasPrefix(e.Subject, string(creel.RootQueue)+".") {
		return queueLink(e.Subject)
	}
	return ""
}

// short cuts a value for a table's cell.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return text
}
