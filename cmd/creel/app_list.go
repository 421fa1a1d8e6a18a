// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/subcluster"
)

var appListColumns = []column[apps.Row]{
	{"ID", false, func(a apps.Row) string { return a.ID }},
	{"NAME", false, func(a apps.Row) string { return a.Name }},
	{"TYPE", true, func(a apps.Row) string { return a.Type }},
	{"USER", false, func(a apps.Row) string { return a.User }},
	{"QUEUE", false, func(a apps.Row) string { return a.Queue }},
	{"HOME", false, func(a apps.Row) string { return string(a.Home) }},
	{"STATE", false, func(a apps.Row) string { return a.State }},
	{"FINAL", false, func(a apps.Row) string { return a.Outcome }},
	{"AGE", false, func(a apps.Row) string {
		if a.Started <= 0 {
			return "-"
		}
		until := time.Now()
		if a.Finished > 0 {
			until = time.UnixMilli(a.Finished)
		}
		return units.Age(max(until.Sub(time.UnixMilli(a.Started)).Seconds(), 0))
	}},
	{"CONTAINERS", false, func(a apps.Row) string { return strconv.FormatInt(max(a.Containers, 0), 10) }},
	{"WAITS-FOR", false, func(a apps.Row) string { return a.Waits }},
	{"WAITS", false, func(a apps.Row) string {
		if a.WaitsSeconds == 0 {
			return ""
		}
		return units.Age(a.WaitsSeconds)
	}},
	{"WAITS-IN", true, func(a apps.Row) string { return a.WaitsIn }},
	{"MEMORY", true, func(a apps.Row) string { return units.Memory(max(a.MemoryMB, 0)) }},
	{"VCORES", true, func(a apps.Row) string { return strconv.FormatInt(max(a.VCores, 0), 10) }},
	{"STARTED", true, func(a apps.Row) string { return moment(a.Started) }},
	{"TAGS", true, func(a apps.Row) string { return strings.Join(a.Tags, ",") }},
}

// appQuery selects applications.
type appQuery struct {
	states, tags            []string
	user, queue, name, kind string
	since                   time.Duration
	limit                   int
	order                   string
}

func appList() *cobra.Command {
	var f clientFlags
	var q appQuery
	var watch bool
	c := &cobra.Command{
		Use: "list", Short: "list applications of all subclusters, with their home, age and reason to wait",
		Example: "  creel app list --state waiting\n  creel app list --queue prod --sort memory --limit 20",
		Args:    noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		by, err := appOrder(q.order)
		if err != nil {
			return err
		}
		for i, s := range q.states {
			if q.states[i], err = appState(s); err != nil {
				return err
			}
		}
		return repeat(c, watch, func(out io.Writer) error {
			found, head, err := f.apps(c.Context(), q)
			if err != nil {
				return err
			}
			found = q.first(found, by)
			if q.queue != "" && len(found) == 0 {
				if err := f.queueThere(c.Context(), q.queue); err != nil {
					return err
				}
			}
			if err := printList(out, f.printer, found, appListColumns); err != nil {
				return err
			}
			return partialExit(c, head)
		})
	}
	f.register(c)
	c.Flags().StringSliceVar(&q.states, "state", nil, "only in these `STATES`: running, waiting, ended, or YARN's names")
	c.Flags().StringVar(&q.user, "of", "", "only applications of this `USER`")
	c.Flags().StringVar(&q.queue, "queue", "", "only applications in this `QUEUE`")
	c.Flags().IntVar(&q.limit, "limit", 0, "at most `N`")
	c.Flags().StringVar(&q.name, "name", "", "only those with this `TEXT` in their name")
	c.Flags().StringVar(&q.kind, "type", "", "only applications of this `TYPE`")
	c.Flags().StringSliceVar(&q.tags, "tag", nil, "only those with one of these `TAGS`")
	c.Flags().DurationVar(&q.since, "since", 0, "only those that started within this `TIME`, such as 2h")
	c.Flags().StringVar(&q.order, "sort", "state",
		"`ORDER`: state (running, waiting, ended, each newest first), started, name, user, queue, memory, containers")
	c.Flags().BoolVar(&watch, "watch", false, watchUsage)
	return c
}

// appState returns a state as /api/v1/apps reads it. In lower case, "running" means without a wait.
func appState(text string) (string, error) {
	if lower := strings.ToLower(text); text == "running" || lower == "waiting" || lower == "ended" {
		return lower, nil
	}
	upper := strings.ToUpper(text)
	if _, err := creel.ParseApplicationState(upper); err != nil {
		return "", usage(fmt.Errorf("--state %s: %w; or use running, waiting or ended", text, err))
	}
	return upper, nil
}

// apps reads the pages of a router's list, or YARN's list of a server without pages. The header names missing members.
func (f *clientFlags) apps(ctx context.Context, by appQuery) ([]apps.Row, http.Header, error) {
	most := 1000
	if by.limit > 0 && by.since == 0 && by.name == "" {
		most = min(most, by.limit)
	}
	q := url.Values{"limit": {strconv.Itoa(most)}, "sort": {by.order}, "user": {by.user}, "queue": {by.queue},
		"type": {by.kind}, "q": {by.name}, "state": {strings.Join(by.states, ",")}, "tag": {strings.Join(by.tags, ",")}}
	since := int64(0)
	if by.since > 0 {
		since = time.Now().Add(-by.since).UnixMilli()
	}
	var all []apps.Row
	seen := map[string]bool{} // an application may change its place between two pages
	for {
		var page struct {
			Apps    []apps.Row `json:"apps"`
			Next    string     `json:"next"`
			Missing []struct {
				Member string `json:"member"`
			} `json:"missing"`
		}
		head, err := f.call(ctx, http.MethodGet, "/api/v1/apps", q, nil, &page)
		if hasNoSuch(err) {
			return f.yarnApps(ctx, by)
		}
		if err != nil {
			return nil, head, err
		}
		for _, a := range page.Apps {
			if !seen[a.ID] && strings.Contains(a.Name, by.name) && a.Started >= since {
				all = append(all, a)
			}
			seen[a.ID] = true
		}
		enough := by.limit > 0 && len(all) >= by.limit
		if page.Next != "" && !enough {
			q.Set("cursor", page.Next)
			continue
		}
		for _, m := range page.Missing {
			head.Set("X-Partial-Result", "true")
			head.Add("X-Missing-SubClusters", m.Member)
		}
		return all, head, nil
	}
}

// first returns the first applications of an order, nil for the server's. Routers have sorted them, ResourceManagers
// have not.
func (q appQuery) first(found []apps.Row, by func(a, b apps.Row) int) []apps.Row {
	if by != nil {
		slices.SortStableFunc(found, by)
	}
	if q.limit > 0 {
		found = found[:min(q.limit, len(found))]
	}
	return found
}

// yarnApps reads the list of a ResourceManager, which has neither homes nor reasons.
func (f *clientFlags) yarnApps(ctx context.Context, by appQuery) ([]apps.Row, http.Header, error) {
	q := url.Values{"deSelects": {"resourceRequests"}}
	for name, value := range map[string]string{
		"user": by.user, "queue": by.queue, "applicationTypes": by.kind, "applicationTags": strings.Join(by.tags, ","),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if by.since > 0 {
		q.Set("startedTimeBegin", strconv.FormatInt(time.Now().Add(-by.since).UnixMilli(), 10))
	}
	var states []string
	for _, s := range by.states {
		states = append(states, cmp.Or(map[string]string{
			"running": "RUNNING", "waiting": "NEW,NEW_SAVING,SUBMITTED,ACCEPTED", "ended": "FINISHED,FAILED,KILLED",
		}[s], s))
	}
	if len(states) > 0 {
		q.Set("states", strings.Join(states, ","))
	}
	var doc struct {
		Apps struct {
			App []appDoc `json:"app"`
		} `json:"apps"`
	}
	head, err := f.call(ctx, http.MethodGet, "/ws/v1/cluster/apps", q, nil, &doc)
	if err != nil {
		return nil, head, err
	}
	var all []apps.Row
	for _, a := range doc.Apps.App {
		if !strings.Contains(a.Name, by.name) {
			continue
		}
		row := apps.Row{AppLine: subcluster.AppLine{
			ID: a.ID, Name: a.Name, User: a.User, Queue: a.Queue, Type: a.Type, State: a.State, Outcome: a.FinalStatus,
			Started: a.Started, Finished: a.Finished, Containers: max(a.Containers, 0), MemoryMB: max(a.MemoryMB, 0),
			VCores: max(a.VCores, 0),
		}}
		if a.Tags != "" {
			row.Tags = strings.Split(a.Tags, ",")
		}
		all = append(all, row)
	}
	rank := func(a apps.Row) int {
		switch {
		case a.Finished > 0:
			return 2
		case a.State == creel.AppRunning.String():
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b apps.Row) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), newest(a, b))
	})
	return all, head, nil
}

func newest(a, b apps.Row) int {
	return cmp.Or(cmp.Compare(b.Started, a.Started), cmp.Compare(b.ID, a.ID))
}

// appOrders compare applications for --sort; state is the order of the answer.
var appOrders = map[string]func(a, b apps.Row) int{
	"state":      nil,
	"started":    func(_, _ apps.Row) int { return 0 },
	"name":       func(a, b apps.Row) int { return cmp.Compare(a.Name, b.Name) },
	"user":       func(a, b apps.Row) int { return cmp.Compare(a.User, b.User) },
	"queue":      func(a, b apps.Row) int { return cmp.Compare(a.Queue, b.Queue) },
	"memory":     func(a, b apps.Row) int { return cmp.Compare(b.MemoryMB, a.MemoryMB) },
	"containers": func(a, b apps.Row) int { return cmp.Compare(b.Containers, a.Containers) },
}

// appOrder is an order of applications, nil for the server's. Equal ones are sorted newest first.
func appOrder(name string) (func(a, b apps.Row) int, error) {
	first, ok := appOrders[name]
	if !ok {
		return nil, usage(fmt.Errorf("--sort %s: use state, started, name, user, queue, memory or containers", name))
	}
	if first == nil {
		return nil, nil
	}
	return func(a, b apps.Row) int { return cmp.Or(first(a, b), newest(a, b)) }, nil
}
