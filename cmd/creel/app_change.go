// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/spf13/cobra"
)

// These commands change or inspect one application. All use YARN's REST calls, so they work on a router and on a plain
// ResourceManager.

func appPath(id creel.ApplicationID) string { return "/ws/v1/cluster/apps/" + id.String() }

// changedDoc reports the outcome of a change.
type changedDoc struct {
	ID      string   `json:"id"`
	Change  string   `json:"change"`
	State   string   `json:"state,omitempty"`    // of a killed application
	Kept    bool     `json:"kept"`               // not done yet
	KeptFor []string `json:"kept_for,omitempty"` // the subclusters that did not respond
}

// changed prints the outcome of a change (as in "the kill"). It prints said if the subcluster of the application or
// container accepted the change. Otherwise the response headers report that the router queued it.
func (f *clientFlags) changed(c *cobra.Command, d changedDoc, said string, head http.Header) error {
	if d.Kept = head.Get("X-Kept") == "true"; d.Kept {
		d.State, d.KeptFor = "", head.Values("X-Kept-For-SubClusters")
		app := d.ID
		if container, err := creel.ParseContainerID(d.ID); err == nil {
			app = container.Attempt.Application.String()
		}
		names := strings.Join(d.KeptFor, ", ")
		switch len(d.KeptFor) {
		case 0:
			said = "it is being moved to another subcluster; " + d.Change + " is kept, and carried out there"
		case 1:
			said = names + " does not answer; " + d.Change + " is kept for it, and carried out when it is back"
		default:
			said = names + " do not answer; " + d.Change + " is kept for them, and carried out when they are back"
		}
		said += "; see `creel app why " + app + "`"
	}
	line := d.ID + " " + said
	if d.Kept {
		line = d.ID + ": " + said
	}
	return printOne(c.OutOrStdout(), f.printer, d, d.ID, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, line)
		return err
	})
}

// appChange returns a command that puts one document to an application. change names the act (as in "the move to
// root.a"). said is the text printed on success.
func appChange(
	use, short, example string,
	names string,
	what func(value string) (path string, body any, change, said string, err error),
) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{Use: use, Short: short, Example: example, Args: exactly(2, names), ValidArgsFunction: f.appIDs}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := appArgument(args[0])
		if err != nil {
			return err
		}
		path, body, change, said, err := what(args[1])
		if err != nil {
			return usage(err)
		}
		head, err := f.call(c.Context(), http.MethodPut, appPath(id)+path, nil, body, nil)
		if err != nil {
			return err
		}
		return f.changed(c, changedDoc{ID: id.String(), Change: change}, said, head)
	}
	f.register(c)
	return c
}

func appMove() *cobra.Command {
	return appChange("move ID QUEUE", "move an application to another queue of its home",
		"  creel app move application_1700000000000_0001 root.research", "an application id and a queue",
		func(queue string) (string, any, string, string, error) {
			_, err := creel.ParseQueuePath(queue)
			return "/queue", map[string]string{"queue": queue}, "the move to " + queue, "is in " + queue, err
		})
}

func appPriority() *cobra.Command {
	return appChange("priority ID NUMBER", "change an application's priority; higher goes first",
		"", "an application id and a number",
		func(text string) (string, any, string, string, error) {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil || n < 0 {
				return "", nil, "", "", fmt.Errorf("priority %q is no number from 0 up", text)
			}
			has := fmt.Sprintf("priority %d", n)
			return "/priority", map[string]int64{"priority": n}, "the change to " + has, "has " + has, nil
		})
}

func appLifetime() *cobra.Command {
	return appChange("lifetime ID DURATION", "have an application killed so long from now",
		"  creel app lifetime application_1700000000000_0001 2h", "an application id and a duration",
		func(text string) (string, any, string, string, error) {
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				return "", nil, "", "", fmt.Errorf("duration %q is not like 90m or 2h", text)
			}
			at := time.Now().Add(d)
			until := at.Format(time.RFC3339)
			return "/timeout", map[string]any{"timeout": map[string]string{
				"type": "LIFETIME", "expiryTime": at.Format("2006-01-02T15:04:05.000-0700"),
			}}, "the end of its life at " + until, "lives until " + until + " at most", nil
		})
}

// attemptDoc is an attempt in YARN's list.
type attemptDoc struct {
	Number    int64  `json:"id"`
	ID        string `json:"appAttemptId"`
	State     string `json:"appAttemptState"`
	Started   int64  `json:"startTime"`
	Finished  int64  `json:"finishedTime"`
	Container string `json:"containerId"`
	Node      string `json:"nodeId"`
	Logs      string `json:"logsLink"`
}

func (f *clientFlags) attempts(ctx context.Context, id creel.ApplicationID) ([]attemptDoc, error) {
	var doc struct {
		Attempts struct {
			Attempt []attemptDoc `json:"appAttempt"`
		} `json:"appAttempts"`
	}
	_, err := f.call(ctx, http.MethodGet, appPath(id)+"/appattempts", nil, nil, &doc)
	if err != nil {
		_, err = f.ofLost(ctx, id, err)
	}
	return doc.Attempts.Attempt, err
}

func appAttempts() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "attempts ID", Short: "list an application's attempts", Args: exactly(1, "one application id"),
		ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := appArgument(args[0])
		if err != nil {
			return err
		}
		list, err := f.attempts(c.Context(), id)
		if err != nil {
			return err
		}
		return printList(c.OutOrStdout(), f.printer, list, []column[attemptDoc]{
			{"ATTEMPT", false, func(a attemptDoc) string { return a.ID }},
			{"STATE", false, func(a attemptDoc) string { return a.State }},
			{"STARTED", false, func(a attemptDoc) string { return moment(a.Started) }},
			{"FINISHED", false, func(a attemptDoc) string { return moment(a.Finished) }},
			{"NODE", false, func(a attemptDoc) string { return a.Node }},
			{"CONTAINER", true, func(a attemptDoc) string { return a.Container }},
			{"LOGS", true, func(a attemptDoc) string { return a.Logs }},
		})
	}
	f.register(c)
	return c
}

// moment formats a time in ms for people; "-" for none.
func moment(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format(time.RFC3339)
}

// containerDoc is a container in YARN's list, which writes these numbers as texts.
type containerDoc struct {
	ID       string      `json:"containerId"`
	State    string      `json:"containerState"`
	Node     string      `json:"nodeId"`
	MemoryMB json.Number `json:"allocatedMB"`
	VCores   json.Number `json:"allocatedVCores"`
	Priority json.Number `json:"priority"`
	Started  json.Number `json:"startedTime"`
	Log      string      `json:"logUrl"`
}

func appContainers() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "containers ID",
		Short: "list the containers of an application's last attempt, in all subclusters",
		Args:  exactly(1, "one application id"), ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := appArgument(args[0])
		if err != nil {
			return err
		}
		attempts, err := f.attempts(c.Context(), id)
		if err != nil {
			return err
		}
		var last attemptDoc
		for _, a := range attempts {
			if a.Number >= last.Number {
				last = a
			}
		}
		// Hadoop's servers write a list of one without brackets.
		var doc struct {
			Container webdoc.Many[containerDoc] `json:"container"`
		}
		if last.ID != "" {
			path := appPath(id) + "/appattempts/" + last.ID + "/containers"
			if _, err := f.call(c.Context(), http.MethodGet, path, nil, nil, &doc); err != nil {
				return err
			}
		}
		return printList(c.OutOrStdout(), f.printer, doc.Container, []column[containerDoc]{
			{"CONTAINER", false, func(d containerDoc) string { return d.ID }},
			{"STATE", false, func(d containerDoc) string { return d.State }},
			{"NODE", false, func(d containerDoc) string { return d.Node }},
			{"MEMORY", false, func(d containerDoc) string {
				mb, err := d.MemoryMB.Int64()
				if err != nil {
					return "-"
				}
				return units.Memory(mb)
			}},
			{"VCORES", false, func(d containerDoc) string { return d.VCores.String() }},
			{"STARTED", false, func(d containerDoc) string {
				ms, err := d.Started.Int64()
				if err != nil {
					return "-"
				}
				return moment(ms)
			}},
			{"PRIORITY", true, func(d containerDoc) string { return d.Priority.String() }},
			{"LOG", true, func(d containerDoc) string { return d.Log }},
		})
	}
	f.register(c)
	return c
}

func appSignal() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "signal CONTAINER SIGNAL",
		Short: "send a signal to a container: " + strings.Join(creel.SignalCommands, ", "),
		Args:  exactly(2, "a container id and a signal"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return creel.SignalCommands, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := creel.ParseContainerID(args[0])
		if err != nil {
			return usage(err)
		}
		signal := strings.ToUpper(args[1])
		if _, known := creel.SignalCommand(signal); !known {
			return usage(fmt.Errorf("unknown signal %q; use one of %s", args[1],
				strings.Join(creel.SignalCommands, ", ")))
		}
		path := "/ws/v1/cluster/containers/" + url.PathEscape(id.String()) + "/signal/" + signal
		head, err := f.call(c.Context(), http.MethodPost, path, nil, struct{}{}, nil)
		if err != nil {
			return notSignalled(id, err)
		}
		return f.changed(c, changedDoc{ID: id.String(), Change: "the signal " + signal}, "is sent "+signal, head)
	}
	f.register(c)
	return c
}

// notSignalled sets the exit code of a refused signal by its reason. ResourceManagers, Hadoop's too, respond to all
// refused signals with 500 and a sentence.
func notSignalled(id creel.ContainerID, err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "absent container"):
		return &exitError{exitNotFound, fmt.Errorf("no container %s runs; see `creel app containers %s`", id,
			id.Attempt.Application)}
	case strings.Contains(text, "cannot perform operation"):
		return &exitError{exitNotPermitted, err}
	}
	return err
}

// nodeShow prints one node.
func nodeShow() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{Use: "show ID", Short: "show one node", Args: exactly(1, "one node id, HOST:PORT")}
	c.RunE = func(c *cobra.Command, args []string) error {
		var doc struct {
			Node nodeDoc `json:"node"`
		}
		path := "/ws/v1/cluster/nodes/" + url.PathEscape(args[0])
		if _, err := f.call(c.Context(), http.MethodGet, path, nil, nil, &doc); err != nil {
			return err
		}
		n := doc.Node
		return printOne(c.OutOrStdout(), f.printer, n, n.ID, func(w io.Writer) error {
			for _, col := range nodeColumns {
				fmt.Fprintf(w, "%-13s %s\n", strings.ToLower(col.title), col.text(n))
			}
			return nil
		})
	}
	f.register(c)
	return c
}

// queueShow prints one queue and its descendants.
func queueShow() *cobra.Command {
	var f clientFlags
	var federation, document bool
	c := &cobra.Command{
		Use: "show QUEUE", Short: "show one queue and its descendants, or the federation-wide queue settings",
		Args:              between(0, 1, "at most one queue"),
		ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && (federation || document) || len(args) == 0 && federation == document {
			return usage(errors.New("give one of: a queue, --federation, --document"))
		}
		if document {
			return f.showDocument(c)
		}
		if federation {
			return f.showTree(c)
		}
		all, head, err := f.queueList(c.Context())
		if err != nil {
			return err
		}
		path := args[0]
		if path != "root" && !strings.HasPrefix(path, "root.") {
			path = "root." + path
		}
		var found []queueDoc
		for _, q := range all {
			if q.Path == path || strings.HasPrefix(q.Path, path+".") {
				found = append(found, q)
			}
		}
		if len(found) == 0 {
			return &exitError{exitNotFound, fmt.Errorf("there is no queue %s; see `creel queue list`", args[0])}
		}
		if err := printList(c.OutOrStdout(), f.printer, found, queueColumns); err != nil {
			return err
		}
		return partialExit(c, head)
	}
	f.register(c)
	c.Flags().BoolVar(&federation, "federation", false, "federation-wide queue settings")
	c.Flags().BoolVar(&document, "document", false, "the document of these settings, as it was applied")
	return c
}
