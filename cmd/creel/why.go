// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

// whyDoc explains an application's place: the router's decision, and the current cause of delay in each member.
type whyDoc struct{ rest.WhyDoc }

// why requests the explanation from a router or from one of creel's ResourceManagers. A ResourceManager reports its own
// part.
func (f *clientFlags) why(ctx context.Context, id creel.ApplicationID) (whyDoc, error) {
	var doc struct {
		whyDoc
		Wait       *subcluster.Wait `json:"wait"`
		Containers int32            `json:"containers"`
		// Opportunistic has the opportunistic ones among them.
		Opportunistic *subcluster.Opportunistic `json:"opportunistic"`
	}
	_, err := f.call(ctx, http.MethodGet, "/api/v1/apps/"+id.String()+"/why", nil, nil, &doc)
	if err == nil && doc.Home == "" && doc.Waits == nil {
		doc.Note = "this is a ResourceManager: it knows nothing of the federation"
		doc.Waits = []rest.MemberWait{{Home: true, AppWait: subcluster.AppWait{
			Application: id, State: doc.State, Queue: doc.Queue, Containers: doc.Containers, Wait: doc.Wait,
			Opportunistic: doc.Opportunistic,
		}}}
		doc.Explain(nil)
	}
	return doc.whyDoc, err
}

// waits returns the line with the greatest obstacle, "" if the application waits for nothing.
func (d whyDoc) waits() string {
	m := d.Greatest()
	if m == nil {
		return ""
	}
	at := ""
	if m.Member != "" {
		at = " at " + string(m.Member)
	}
	return fmt.Sprintf("waits%s (%s): %s", at, m.Wait.Code, d.Cause)
}

func appWhy() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "why ID",
		Short: "explain where an application runs, and why it waits",
		Args:  exactly(1, "one application id"), ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := appArgument(args[0])
		if err != nil {
			return err
		}
		doc, err := f.why(c.Context(), id)
		if err != nil {
			return err
		}
		f.headline(c.Context(), c.OutOrStdout())
		err = printOne(c.OutOrStdout(), f.printer, doc.WhyDoc, id.String(), func(w io.Writer) error {
			doc.write(w, f.printer.format == "wide")
			return nil
		})
		var missing []string
		for _, m := range doc.Waits {
			if m.Error != "" {
				missing = append(missing, string(m.Member))
			}
		}
		if err == nil && len(missing) > 0 {
			err = &exitError{exitPartial, fmt.Errorf("partial: missing %s", strings.Join(missing, ", "))}
		}
		return err
	}
	f.register(c)
	return c
}

func (d whyDoc) write(w io.Writer, wide bool) {
	state := d.State
	if state == "" {
		state = "in a state that is not known now"
	}
	fmt.Fprintf(w, "%s is %s", d.Application, state)
	if d.Home != "" {
		fmt.Fprintf(w, ", home %s", d.Home)
	}
	fmt.Fprintf(w, ", queue %s\n", d.Queue)
	cause := d.waits()
	if cause != "" {
		fmt.Fprintf(w, "%-9s %s\n", "cause", cause)
	}
	if d.Remedy != "" {
		fmt.Fprintf(w, "%-9s %s\n", "remedy", d.Remedy)
	}
	for i, m := range d.Waits {
		switch {
		case m.Error != "":
			fmt.Fprintf(w, "%s does not say: %s\n", m.Member, m.Error)
		case cause == "" && i == 0 && m.Diagnostics != "":
			fmt.Fprintln(w, strings.TrimSpace(m.Diagnostics))
		case cause == "" && i == 0 && m.Opportunistic != nil && m.Opportunistic.Asked > 0:
			text := "no node has a queue that is short enough for its opportunistic containers"
			if m.Opportunistic.Held != "" {
				text = "it gets no more opportunistic containers: " + m.Opportunistic.Held
			}
			fmt.Fprintln(w, text)
		case cause == "" && i == 0 && m.State == creel.AppRunning.String():
			fmt.Fprintln(w, "it waits for nothing: it has all it asked for")
		}
		if m.Unmanaged && m.Application != d.Application {
			fmt.Fprintf(w, "%s: there it is %s, as the one before has ended and Hadoop takes an id once\n",
				m.Member, m.Application)
		}
	}
	writeParts(w, d.Waits, wide)
	writeOpportunistic(w, d.Waits)
	for i, t := range d.Tries {
		fmt.Fprintf(w, "try %d: %s, %s", i+1, t.Member, t.Verdict)
		if t.Claimed {
			fmt.Fprint(w, ", claimed earlier")
		}
		if t.Error != "" {
			fmt.Fprintf(w, ": %s", t.Error)
		}
		fmt.Fprintln(w)
		if !t.Until.IsZero() {
			fmt.Fprintf(w, "waits at %s until %s at the earliest\n", t.Member, t.Until.Format(time.RFC3339))
		}
		if t.Reason != nil {
			fmt.Fprintln(w, t.Reason.String())
		}
	}
	if r := d.Rebalancer; r != nil {
		fmt.Fprintf(
			w,
			"rebalancer: by plan %d %s is entitled to %.1f%% of %s, uses %.1f%% and wants %.1f%%",
			r.Plan,
			r.Queue,
			100*r.Entitled,
			policies.WholeOf(r.Label),
			100*r.Uses,
			100*r.Wants,
		)
		if r.Followed {
			fmt.Fprintf(w, "; at %s it is to have %.1f%%, weight %.2f", d.Home, 100*r.AtHome, r.Weight)
		}
		fmt.Fprintln(w)
	}
	if m := d.Moving; m != nil {
		fmt.Fprintf(w, "it is being moved from %s to %s: %s\n", m.From, m.To, m.Why)
	}
	for _, m := range d.Moved {
		if m.Moved {
			fmt.Fprintf(w, "moved from %s to %s at %s: %s\n", m.From, m.To, m.At.Format(time.RFC3339), m.Why)
		} else {
			fmt.Fprintf(w, "not moved from %s to %s at %s: %s\n", m.From, m.To, m.At.Format(time.RFC3339), m.Because)
		}
	}
	d.writeChanges(w)
	if d.Note != "" {
		fmt.Fprintln(w, d.Note)
	}
}

// writeChanges writes users' changes that wait for a member or were rejected.
func (d whyDoc) writeChanges(w io.Writer) {
	for _, a := range d.Asked {
		at := cmp.Or(a.Member, d.Home)
		if a.Refused != "" {
			fmt.Fprintf(w, "%s asked to %s: %s refused it %s ago: %s\n",
				a.User, a.What, at, units.Age(a.AgeSeconds), a.Refused)
			continue
		}
		if a.Doubted != "" {
			fmt.Fprintf(w, "%s asked to %s: %s did not know the container %s ago, and is asked again, as the "+
				"container's node may not have registered there yet: %s\n",
				a.User, a.What, at, units.Age(a.AgeSeconds), a.Doubted)
			continue
		}
		fmt.Fprintf(w, "%s requested %s ago to %s: %s did not respond; the change is queued\n",
			a.User, units.Age(a.AgeSeconds), a.What, at)
	}
}
