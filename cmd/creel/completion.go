// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

// Completion queries the server named by the flags so far. If the server does not respond in time nothing is completed:
// a shell must not hang.

// completionTime limits the time of one completion.
const completionTime = 2 * time.Second

// completes makes the first argument complete to the results of a query, each as "NAME\tdescription".
func (f *clientFlags) completes(find func(ctx context.Context) ([]string, error)) func(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		parent := c.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completionTime)
		defer cancel()
		found, err := find(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var fit []string
		for _, name := range found {
			if strings.HasPrefix(name, typed) {
				fit = append(fit, name)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// appIDs completes the ids of applications that have not ended.
func (f *clientFlags) appIDs(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return f.completes(func(ctx context.Context) (out []string, err error) {
		var doc struct {
			Apps struct {
				App []appDoc `json:"app"`
			} `json:"apps"`
		}
		q := url.Values{"states": {"NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"}, "limit": {"200"}}
		_, err = f.call(ctx, http.MethodGet, "/ws/v1/cluster/apps", q, nil, &doc)
		for _, a := range doc.Apps.App {
			out = append(out, a.ID+"\t"+a.Name+", "+a.State+" in "+a.Queue)
		}
		return out, err
	})(c, args, typed)
}

// memberIDs completes the ids of subclusters.
func (f *clientFlags) memberIDs(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return f.completes(func(ctx context.Context) (out []string, err error) {
		var doc rest.SubclustersDoc
		_, err = f.call(ctx, http.MethodGet, "/api/v1/subclusters", nil, nil, &doc)
		for _, s := range doc.Subclusters {
			out = append(out, string(s.ID)+"\t"+s.State)
		}
		return out, err
	})(c, args, typed)
}

// nodes completes node ids.
func (f *clientFlags) nodes(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return f.completes(func(ctx context.Context) (out []string, err error) {
		list, _, err := f.nodeList(ctx, nodeQuery{})
		for _, n := range list {
			out = append(out, n.ID+"\t"+n.Subcluster)
		}
		return out, err
	})(c, args, typed)
}

// queues completes queues by their full paths.
func (f *clientFlags) queues(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return f.completes(func(ctx context.Context) (out []string, err error) {
		list, _, err := f.queueSnapshot(ctx)
		for _, q := range list {
			out = append(out, q.Path)
		}
		return out, err
	})(c, args, typed)
}
