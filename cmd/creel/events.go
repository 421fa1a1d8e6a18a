// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
	"github.com/spf13/cobra"
)

var eventColumns = []column[statestore.Event]{
	{"ID", true, func(e statestore.Event) string { return e.ID }},
	{"TIME", false, func(e statestore.Event) string { return e.Time.Local().Format("2006-01-02 15:04:05") }},
	{"KIND", false, func(e statestore.Event) string { return string(e.Kind) }},
	{"SUBJECT", false, func(e statestore.Event) string { return e.Subject }},
	{"USER", false, func(e statestore.Event) string { return e.User }},
	{"BEFORE", true, func(e statestore.Event) string { return oneLine(e.Before) }},
	{"AFTER", false, func(e statestore.Event) string { return shortened(oneLine(e.After), 60) }},
	{"RESULT", false, func(e statestore.Event) string { return e.Result }},
	{"DETAIL", false, func(e statestore.Event) string { return shortened(oneLine(e.Detail), 60) }},
	{"FROM", true, func(e statestore.Event) string { return e.From }},
	{"BY", true, func(e statestore.Event) string { return e.By }},
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// eventFilter has the flags of `creel events`.
type eventFilter struct {
	clientFlags
	subject, kind, of, since string
	limit                    int
	watch                    bool
}

func eventsCommand() *cobra.Command {
	var f eventFilter
	c := daily("events", "list changes and incidents of the federation, with user, time, address and values")
	c.Long = `Lists the newest events of the federation, oldest first: changes by users, members that joined or were lost,
plans, leaders, breakers, broken invariants. The state store keeps the last 10,000 of the last 30 days.

Kinds:` + kindNames()
	c.Example = `  creel events --since 2h
  creel events -w --kind member
  creel events --of alice --kind policy
  creel events --subject root.prod -o wide
  creel events --subject application_1764353628120_0042 -o json`
	c.RunE = func(c *cobra.Command, _ []string) error {
		q, err := f.query()
		if err != nil {
			return err
		}
		return f.list(c, q)
	}
	f.register(c)
	flags := c.Flags()
	flags.StringVar(&f.subject, "subject", "", "only events of this application, queue or subcluster, its `ID` or path")
	flags.StringVar(&f.kind, "kind", "", "only events of this `KIND`")
	flags.StringVar(&f.of, "of", "", "only changes by `USER`")
	flags.StringVar(&f.since, "since", "", "only events since `TIME`: 2h, or 2006-01-02T15:04:05Z")
	flags.IntVar(&f.limit, "limit", 100, "at most `N` events, 1 to 1000")
	flags.BoolVarP(&f.watch, "watch", "w", false, "continue with new events until interrupted")
	return c
}

func kindNames() (names string) {
	for _, k := range statestore.EventKinds {
		names += " " + string(k)
	}
	return names
}

func (f *eventFilter) query() (url.Values, error) {
	q := url.Values{}
	if f.limit < 1 || f.limit > 1000 {
		return nil, usage(fmt.Errorf("--limit %d: 1 to 1000", f.limit))
	}
	if err := events.CheckKind(statestore.EventKind(f.kind)); err != nil {
		return nil, usage(fmt.Errorf("--kind %s: %w", f.kind, err))
	}
	if f.since != "" {
		at, err := events.ParseSince(f.since, time.Now())
		if err != nil {
			return nil, usage(fmt.Errorf("--since %s: %w", f.since, err))
		}
		q.Set("since", at.UTC().Format(time.RFC3339))
	}
	q.Set("limit", strconv.Itoa(f.limit))
	for name, value := range map[string]string{"subject": f.subject, "kind": f.kind, "user": f.of} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q, nil
}

func (f *clientFlags) events(ctx context.Context, q url.Values) (doc rest.EventsDoc, err error) {
	_, err = f.call(ctx, http.MethodGet, "/api/v1/events", q, nil, &doc)
	if hasNoSuch(err) {
		err = &exitError{exitNotFound, errors.New("this server has no events: name a router by --server")}
	}
	return doc, err
}

// watchEventsEvery is the time between two questions for new events.
const watchEventsEvery = time.Second

// list prints a page, and with --watch later events as they are recorded.
func (f *eventFilter) list(c *cobra.Command, q url.Values) error {
	note := ""
	for first := true; ; first = false {
		doc, err := f.events(c.Context(), q)
		if err != nil {
			return err
		}
		if doc.Note != note && doc.Note != "" {
			fmt.Fprintln(c.ErrOrStderr(), doc.Note)
		}
		note = doc.Note
		if first || len(doc.Events) > 0 {
			var out bytes.Buffer
			if err := printList(&out, f.printer, doc.Events, eventColumns); err != nil {
				return err
			}
			if !first && (f.printer.format == "table" || f.printer.format == "wide") {
				_, _ = out.ReadBytes('\n') // the titles stand above
			}
			if _, err := out.WriteTo(c.OutOrStdout()); err != nil {
				return err
			}
		}
		if doc.Next != "" {
			q.Set("after", doc.Next)
			q.Del("since")
		}
		if !f.watch {
			return nil
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-time.After(watchEventsEvery):
		}
	}
}
