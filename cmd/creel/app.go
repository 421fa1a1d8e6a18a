// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

// appDoc contains the fields of YARN's app document that the commands print. raw is the whole document for -o json and
// yaml.
type appDoc struct {
	ID          string  `json:"id"`
	User        string  `json:"user"`
	Name        string  `json:"name"`
	Queue       string  `json:"queue"`
	State       string  `json:"state"`
	FinalStatus string  `json:"finalStatus"`
	Progress    float64 `json:"progress"`
	TrackingURL string  `json:"trackingUrl"`
	Diagnostics string  `json:"diagnostics"`
	Type        string  `json:"applicationType"`
	Tags        string  `json:"applicationTags"`
	Priority    any     `json:"priority"`
	Started     int64   `json:"startedTime"`
	Finished    int64   `json:"finishedTime"`
	Elapsed     int64   `json:"elapsedTime"`
	Containers  int64   `json:"runningContainers"`
	MemoryMB    int64   `json:"allocatedMB"`
	VCores      int64   `json:"allocatedVCores"`

	raw json.RawMessage
}

// appTags counts applications by their tags.
func appTags() *cobra.Command {
	var f clientFlags
	var state, queue string
	c := &cobra.Command{
		Use:     "tags",
		Short:   "count applications by tag; app list --tag lists the applications of one tag",
		Example: "  creel app tags --state running",
		Args:    noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		var doc rest.AppsDoc
		q := url.Values{"group": {"tag"}, "limit": {"1"}, "state": {state}, "queue": {queue}}
		if _, err := f.call(c.Context(), http.MethodGet, "/api/v1/apps", q, nil, &doc); err != nil {
			return err
		}
		if queue != "" && len(doc.Groups) == 0 {
			if err := f.queueThere(c.Context(), queue); err != nil {
				return err
			}
		}
		n := func(v func(g apps.Group) int64) func(apps.Group) string {
			return func(g apps.Group) string { return strconv.FormatInt(v(g), 10) }
		}
		return printList(c.OutOrStdout(), f.printer, doc.Groups, []column[apps.Group]{
			{"TAG", false, func(g apps.Group) string { return g.Key }},
			{"RUNNING", false, n(func(g apps.Group) int64 { return g.Running })},
			{"WAITING", false, n(func(g apps.Group) int64 { return g.Waiting })},
			{"ENDED", false, n(func(g apps.Group) int64 { return g.Ended })},
			{"CONTAINERS", false, n(func(g apps.Group) int64 { return g.Containers })},
			{"MEMORY", true, func(g apps.Group) string { return units.Memory(g.MemoryMB) }},
		})
	}
	f.register(c)
	c.Flags().StringVar(&state, "state", "", "only in these `STATES`: running, waiting, ended, or YARN's names")
	c.Flags().StringVar(&queue, "queue", "", "only of this `QUEUE`")
	return c
}

func (a *appDoc) UnmarshalJSON(b []byte) error {
	type plain appDoc
	if err := json.Unmarshal(b, (*plain)(a)); err != nil {
		return err
	}
	a.raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON returns the document as the server wrote it.
func (a appDoc) MarshalJSON() ([]byte, error) { return a.raw, nil }

var appColumns = []column[appDoc]{
	{"ID", false, func(a appDoc) string { return a.ID }},
	{"NAME", false, func(a appDoc) string { return a.Name }},
	{"TYPE", true, func(a appDoc) string { return a.Type }},
	{"USER", false, func(a appDoc) string { return a.User }},
	{"QUEUE", false, func(a appDoc) string { return a.Queue }},
	{"STATE", false, func(a appDoc) string { return a.State }},
	{"FINAL", false, func(a appDoc) string { return a.FinalStatus }},
	{"PROGRESS", false, func(a appDoc) string { return strconv.FormatFloat(a.Progress, 'f', 0, 64) + "%" }},
	{"CONTAINERS", false, func(a appDoc) string { return strconv.FormatInt(max(a.Containers, 0), 10) }},
	{"MEMORY", true, func(a appDoc) string { return units.Memory(max(a.MemoryMB, 0)) }},
	{"VCORES", true, func(a appDoc) string { return strconv.FormatInt(max(a.VCores, 0), 10) }},
	{"STARTED", true, func(a appDoc) string { return moment(a.Started) }},
	{"ELAPSED", false, func(a appDoc) string { return units.Age(float64(a.Elapsed) / 1000) }},
	{"TAGS", true, func(a appDoc) string { return a.Tags }},
	{"TRACKING-URL", true, func(a appDoc) string { return a.TrackingURL }},
}

func appCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "app",
		Aliases: []string{"application"},
		Short:   "list, submit, watch, change and explain applications",
		GroupID: "daily",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		appList(), appStatus(), appSubmit(), appKill(), appWait(), appWhy(),
		appLogs(), appMove(), appPriority(), appLifetime(), appAttempts(), appContainers(), appSignal(), appTags(),
	)
	return c
}

func (f *clientFlags) app(ctx context.Context, id creel.ApplicationID) (appDoc, error) {
	a, _, err := f.appReport(ctx, id)
	return a, err
}

// appReport is app with the answer's headers.
func (f *clientFlags) appReport(ctx context.Context, id creel.ApplicationID) (appDoc, http.Header, error) {
	var doc struct {
		App appDoc `json:"app"`
	}
	head, err := f.call(ctx, http.MethodGet, "/ws/v1/cluster/apps/"+id.String(), nil, nil, &doc)
	return doc.App, head, err
}

func appStatus() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "status ID", Short: "show one application", Args: exactly(1, "one application id"),
		ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := appArgument(args[0])
		if err != nil {
			return err
		}
		a, head, err := f.appReport(c.Context(), id)
		if err != nil {
			lost, err := f.ofLost(c.Context(), id, err)
			if lost != nil {
				if err := printOne(c.OutOrStdout(), f.printer, lost, lost.ID, lost.write); err != nil {
					return err
				}
			}
			return err
		}
		err = printOne(c.OutOrStdout(), f.printer, a, a.ID, func(w io.Writer) error {
			for _, col := range appColumns {
				fmt.Fprintf(w, "%-14s %s\n", strings.ToLower(col.title), col.text(a))
			}
			if d := strings.TrimSpace(a.Diagnostics); d != "" {
				fmt.Fprintf(w, "%-14s %s\n", "diagnostics", d)
			}
			if doc, err := f.why(c.Context(), id); err == nil { // a ResourceManager of Hadoop has no such document
				doc.writeChanges(w)
			}
			return nil
		})
		if silent := head.Get("X-Last-Known-SubClusters"); err == nil && silent != "" {
			return &exitError{exitPartial, fmt.Errorf("partial: missing %s", silent)}
		}
		return err
	}
	f.register(c)
	return c
}

func appSubmit() *cobra.Command {
	var f clientFlags
	var name, queue, file, kind string
	var memory, vcores int64
	var env, tags []string
	c := &cobra.Command{
		Use:   "submit [-- COMMAND...]",
		Short: "submit a command as an application's AM, or a submission document",
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		var doc map[string]any
		switch {
		case file != "":
			b, err := os.ReadFile(file)
			if err != nil {
				return usage(err)
			}
			if err := json.Unmarshal(b, &doc); err != nil {
				return usage(fmt.Errorf("%s is not a JSON submission document: %w", file, strictjson.Worded(err)))
			}
			if doc == nil {
				return usage(fmt.Errorf("%s is not a JSON submission document: it is null", file))
			}
		case len(args) == 0:
			return usage(fmt.Errorf("give a command after --, or a document with --file"))
		default:
			entries := []map[string]string{}
			for _, e := range env {
				k, v, ok := strings.Cut(e, "=")
				if !ok {
					return usage(fmt.Errorf("--env %q: expected NAME=VALUE", e))
				}
				entries = append(entries, map[string]string{"key": k, "value": v})
			}
			doc = map[string]any{
				"application-name": name,
				"queue":            queue,
				"application-type": kind,
				"resource":         map[string]int64{"memory": memory, "vCores": vcores},
				"am-container-spec": map[string]any{
					"commands":    map[string]string{"command": strings.Join(args, " ")},
					"environment": map[string]any{"entry": entries},
				},
			}
		}
		if len(tags) > 0 && doc["application-tags"] == nil {
			doc["application-tags"] = map[string]any{"tag": tags}
		}
		if doc["application-id"] == nil || doc["application-id"] == "" {
			var fresh struct {
				ID string `json:"application-id"`
			}
			if _, err := f.call(
				ctx,
				http.MethodPost,
				"/ws/v1/cluster/apps/new-application",
				nil,
				nil,
				&fresh,
			); err != nil {
				return err
			}
			doc["application-id"] = fresh.ID
		}
		id := fmt.Sprint(doc["application-id"])
		if _, err := f.call(ctx, http.MethodPost, "/ws/v1/cluster/apps", nil, doc, nil); err != nil {
			return err
		}
		return printOne(c.OutOrStdout(), f.printer, map[string]string{"id": id}, id, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, id)
			return err
		})
	}
	f.register(c)
	c.Flags().StringVar(&name, "name", "creel", "application `NAME`")
	c.Flags().StringVar(&queue, "queue", "default", "`QUEUE` to submit to")
	c.Flags().StringVar(&kind, "type", "YARN", "application `TYPE`")
	c.Flags().StringVar(&file, "file", "", "JSON submission document `FILE`, as POST /ws/v1/cluster/apps takes it")
	c.Flags().Int64Var(&memory, "memory", 1024, "memory of the AM in `MiB`")
	c.Flags().Int64Var(&vcores, "vcores", 1, "virtual cores of the AM")
	c.Flags().StringArrayVar(&env, "env", nil, "environment `NAME=VALUE` of the AM")
	c.Flags().StringSliceVar(&tags, "tag", nil, "the application's `TAGS`, for app list --tag")
	return c
}

func appKill() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "kill ID...", Short: "kill applications, wherever they run",
		Args:              between(1, math.MaxInt, "at least one application id"),
		ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		ids := make([]creel.ApplicationID, len(args))
		for i, a := range args {
			var err error
			if ids[i], err = appArgument(a); err != nil {
				return err
			}
		}
		var failed []error
		for _, id := range ids {
			var answer struct {
				State string `json:"state"`
			}
			killed := map[string]string{"state": "KILLED"}
			head, err := f.call(c.Context(), http.MethodPut, appPath(id)+"/state", nil, killed, &answer)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", id, err))
				continue
			}
			d := changedDoc{ID: id.String(), Change: "the kill", State: answer.State}
			if err := f.changed(c, d, answer.State, head); err != nil {
				return err
			}
		}
		switch len(failed) {
		case 0:
			return nil
		case len(ids):
			return &exitError{exitCode(failed[0]), errors.Join(failed...)}
		}
		return &exitError{exitPartial, errors.Join(failed...)}
	}
	f.register(c)
	return c
}
