// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

// whyDoc is everything that explains an application's place: the router's
// decision, and what holds it now at its home.
type whyDoc struct {
	rest.WhyDoc
	State string `json:"state"`
	Waits string `json:"waits,omitempty"` // the home's own word of what holds it
}

func appWhy() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "why ID",
		Short: "explain where an application runs, and what it waits for",
		Args:  exactly(1, "one application id"), ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := appArgument(args[0])
		if err != nil {
			return err
		}
		var doc whyDoc
		if _, err := f.call(
			c.Context(),
			http.MethodGet,
			"/api/v1/apps/"+id.String()+"/why",
			nil,
			nil,
			&doc.WhyDoc,
		); err != nil {
			return err
		}
		if a, err := f.app(c.Context(), id); err == nil {
			doc.State, doc.Waits = a.State, a.Diagnostics
		} else {
			doc.State = "unknown: " + err.Error()
		}
		return printOne(c.OutOrStdout(), f.printer, doc, id.String(), func(w io.Writer) error {
			fmt.Fprintf(w, "%s is %s, home %s, queue %s\n", id, doc.State, doc.Home, doc.Queue)
			for i, t := range doc.Tries {
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
			for _, k := range doc.Kills {
				fmt.Fprintf(w, "%s asked %.0f s ago to kill it: %s did not answer, and is told when it does\n",
					k.User, k.AgeSeconds, doc.Home)
			}
			if doc.Note != "" {
				fmt.Fprintln(w, doc.Note)
			}
			if doc.Waits != "" {
				fmt.Fprintln(w, doc.Waits)
			}
			return nil
		})
	}
	f.register(c)
	return c
}
