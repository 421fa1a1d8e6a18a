// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

// queuePreempt prints the containers that preemption would take for a queue.
func queuePreempt() *cobra.Command {
	var f clientFlags
	var dry bool
	c := &cobra.Command{
		Use:   "preempt --dry-run QUEUE",
		Short: "show which containers preemption would take back for a queue",
		Long: `Asks one of creel's ResourceManagers which containers its next round would take back
for a queue below its guarantee: for each container the application that loses it, the
work lost, the queue that gets it, and when. Nothing is changed. Routers do not answer
this.`,
		Args: exactly(1, "one queue"), ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if !dry {
			return &exitError{exitUsage, errors.New(
				"containers are taken back by the ResourceManager alone, as its settings say; give --dry-run")}
		}
		var doc subcluster.Preemption
		path := "/api/v1/queues/" + url.PathEscape(args[0]) + "/preempt"
		if _, err := f.call(c.Context(), http.MethodGet, path, nil, nil, &doc); err != nil {
			return err
		}
		return printOne(c.OutOrStdout(), f.printer, doc, string(doc.Queue), func(w io.Writer) error {
			writePreemption(w, &doc)
			return nil
		})
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only tell")
	f.register(c)
	return c
}

func writePreemption(w io.Writer, doc *subcluster.Preemption) {
	if !doc.On {
		fmt.Fprintln(w, "Preemption is off. Its settings would do this:")
	}
	if len(doc.Victims) == 0 {
		fmt.Fprintf(w, "Nothing would be taken back for %s.\n", doc.Queue)
		return
	}
	var memory, cores int64
	for _, v := range doc.Victims {
		state := "would be told, and killed at"
		if v.UnderNotice {
			state = "is told, and killed at"
		}
		am := ""
		if v.AM {
			am = ", an AM"
		}
		ran := time.Duration(v.Ran * float64(time.Second)).Round(time.Second)
		fmt.Fprintf(w, "%s%s of %s in %s, on %s, %d MiB for %s\n  %s %s, for the %s of %s in %s: %s\n",
			v.Container, am, v.User, v.Queue, v.Node, v.Resource["memory-mb"], ran,
			state, v.Kill.Local().Format(time.TimeOnly), v.Rule, v.For, v.ForQueue, v.Why)
		memory += v.MemorySeconds
		cores += v.VCoreSeconds
	}
	fmt.Fprintf(w, "%d containers; lost are %.1f GiB-hours and %.1f vcore-hours.\n",
		len(doc.Victims), float64(memory)/1024/3600, float64(cores)/3600)
}
