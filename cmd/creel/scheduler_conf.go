// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

// confValue is one setting of a scheduler's queues.
type confValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// schedulerConf reads and changes the queues of a running ResourceManager, as yarn schedulerconf does.
func schedulerConf() *cobra.Command {
	var f clientFlags
	var member string
	var set, global, add, remove []string // in the form of the flags
	var format, validate bool
	c := &cobra.Command{
		Use:   "scheduler-conf [PREFIX]",
		Short: "show or change the CapacityScheduler's configuration of a ResourceManager while it runs",
		Long: `Without flags: the configuration in force, or the settings whose names begin with
PREFIX. Changes are made all or none, and survive a restart, where
yarn.scheduler.configuration.store.class allows them. A router forwards the request to
the named --subcluster.

To change queues in all members by one document, use creel queue apply and creel queue mend.`,
		Example: `  creel admin scheduler-conf --subcluster sc-1 yarn.scheduler.capacity.root.prod
  creel admin scheduler-conf --subcluster sc-1 --set root.prod:maximum-capacity=60
  creel admin scheduler-conf --subcluster sc-1 --add root.prod.new:capacity=0 --remove root.old`,
		Args:              between(0, 1, "at most one key"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		query := url.Values{}
		if member != "" {
			query.Set("subClusterId", member)
		}
		change := schedulerChange{Remove: remove}
		if err := change.parse(set, add, global); err != nil {
			return usage(err)
		}
		changes := len(set)+len(add)+len(remove)+len(global) > 0
		const path = "/ws/v1/cluster/scheduler-conf"
		switch {
		case changes && (format || len(args) > 0), validate && !changes, format && len(args) > 0:
			return usage(errors.New("show (PREFIX), change (--set --add --remove --global, with --validate only try), or --format"))
		case format:
			if _, err := f.call(c.Context(), http.MethodGet, path+"/format", query, nil, nil); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "changes by calls were removed; the configuration is that of the files")
			return nil
		case validate:
			if _, err := f.call(c.Context(), http.MethodPost, path+"/validate", query, change, nil); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "the change is good; nothing was changed")
			return nil
		case changes:
			if _, err := f.call(c.Context(), http.MethodPut, path, query, change, nil); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "changed")
			return nil
		}
		var doc struct {
			Properties webdoc.Many[confValue] `json:"property"`
		}
		if _, err := f.call(c.Context(), http.MethodGet, path, query, nil, &doc); err != nil {
			return err
		}
		values := slices.DeleteFunc([]confValue(doc.Properties), func(v confValue) bool {
			return len(args) > 0 && !strings.HasPrefix(v.Name, args[0])
		})
		return printList(c.OutOrStdout(), f.printer, values, []column[confValue]{
			{"NAME", false, func(v confValue) string { return v.Name }},
			{"VALUE", false, func(v confValue) string { return v.Value }},
		})
	}
	f.register(c)
	c.Flags().StringVar(&member, "subcluster", "", "the member `ID` of the queues; required by a router")
	// Values may contain commas, so each flag takes one setting.
	c.Flags().StringArrayVar(&set, "set", nil, "set `QUEUE:KEY=VALUE`; several flags for several settings")
	c.Flags().StringArrayVar(&add, "add", nil, "add a queue with the setting `QUEUE:KEY=VALUE`")
	c.Flags().StringSliceVar(&remove, "remove", nil, "remove these `QUEUES`, which must be stopped")
	c.Flags().StringArrayVar(&global, "global", nil, "set `KEY=VALUE` of the scheduler itself")
	c.Flags().BoolVar(&validate, "validate", false, "have the ResourceManager check the change, and change nothing")
	c.Flags().BoolVar(&format, "format", false, "drop all that calls changed: the files' configuration is in force again")
	return c
}

// changeQueues changes the queues of one member, or of each that is not lost, and prints done with their names.
func (f *clientFlags) changeQueues(c *cobra.Command, member, done string, change schedulerChange) error {
	members := []string{member}
	if member == "" {
		var doc rest.SubclustersDoc
		if _, err := f.call(c.Context(), http.MethodGet, "/api/v1/subclusters", nil, nil, &doc); err != nil {
			return err
		}
		members = nil
		for _, s := range doc.Subclusters {
			if s.State != subcluster.StateLost.String() && s.State != subcluster.StateDeregistered.String() {
				members = append(members, string(s.ID))
			}
		}
	}
	var changed []string
	var failed []error
	for _, m := range members {
		query := url.Values{"subClusterId": {m}}
		_, err := f.call(c.Context(), http.MethodPut, "/ws/v1/cluster/scheduler-conf", query, change, nil)
		if err != nil {
			if strings.Contains(err.Error(), "mutable configuration store") { // Hadoop's sentence
				err = fmt.Errorf("%w; set yarn.scheduler.configuration.store.class there, or use --conf DIR", err)
			}
			failed = append(failed, fmt.Errorf("%s: %w", m, err))
			continue
		}
		changed = append(changed, m)
	}
	if len(changed) > 0 {
		fmt.Fprintf(c.OutOrStdout(), "%s at %s\n", done, strings.Join(changed, ", "))
	}
	switch err := errors.Join(failed...); {
	case err == nil:
		return nil
	case len(changed) == 0:
		return &exitError{exitCode(failed[0]), err}
	default:
		return &exitError{exitPartial, err}
	}
}

// The request body of /scheduler-conf, by its JSON names.
type (
	schedulerChange struct {
		Update []queueChange `json:"update-queue,omitempty"`
		Add    []queueChange `json:"add-queue,omitempty"`
		Remove []string      `json:"remove-queue,omitempty"`
		Global *confParams   `json:"global-updates,omitempty"`
	}
	queueChange struct {
		Queue  string     `json:"queue-name"`
		Params confParams `json:"params"`
	}
	confParams struct {
		Entry []confEntry `json:"entry"`
	}
	confEntry struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
)

// queueChanges groups settings of the form QUEUE:KEY=VALUE by queue. It preserves their order.
func queueChanges(texts []string) (out []queueChange, err error) {
	for _, text := range texts {
		name, setting, found := strings.Cut(text, ":")
		q, err := creel.ParseQueuePath(name)
		if !found || err != nil || !q.IsFull() {
			return nil, fmt.Errorf("%q is no QUEUE:KEY=VALUE, such as root.prod:maximum-capacity=60", text)
		}
		e, err := parseEntry(setting)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(out, func(c queueChange) bool { return c.Queue == name })
		if at < 0 {
			at, out = len(out), append(out, queueChange{Queue: name})
		}
		out[at].Params.Entry = append(out[at].Params.Entry, e)
	}
	return out, nil
}

// parseEntry reads a setting of the form KEY=VALUE; an empty value removes the setting.
func parseEntry(text string) (e confEntry, err error) {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return e, fmt.Errorf("%q is no KEY=VALUE", text)
	}
	return confEntry{key, value}, nil
}

// parse reads the flags.
func (s *schedulerChange) parse(set, add, global []string) (err error) {
	if s.Update, err = queueChanges(set); err != nil {
		return err
	}
	if s.Add, err = queueChanges(add); err != nil {
		return err
	}
	for _, text := range global {
		e, err := parseEntry(text)
		if err != nil {
			return err
		}
		if s.Global == nil {
			s.Global = &confParams{}
		}
		s.Global.Entry = append(s.Global.Entry, e)
	}
	return nil
}
