// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/internal/webdoc"
)

// clusterPath is the path of YARN's own documents and verbs.
const clusterPath = "/ws/v1/cluster/"

// nodeLabelDoc is a label of the federation; nodes without one are <DEFAULT_PARTITION>.
type nodeLabelDoc struct {
	Name        string   `json:"name"`
	Exclusive   bool     `json:"exclusive"`
	ActiveNodes string   `json:"active_nodes"`
	Nodes       []string `json:"nodes"`
}

var nodeLabelColumns = []column[nodeLabelDoc]{
	{"LABEL", false, func(l nodeLabelDoc) string { return l.Name }},
	{"EXCLUSIVE", false, func(l nodeLabelDoc) string { return strconv.FormatBool(l.Exclusive) }},
	{"ACTIVE", false, func(l nodeLabelDoc) string { return l.ActiveNodes }},
	{"NODES", true, func(l nodeLabelDoc) string { return strings.Join(l.Nodes, ",") }},
}

// nodeLabels lists labels, adds and removes labels, and sets those of nodes.
func nodeLabels() *cobra.Command {
	var f clientFlags
	var add, remove []string
	var set string
	var clear bool
	c := &cobra.Command{
		Use:   "labels [NODE...]",
		Short: "list node labels, add and remove them, give them to nodes",
		Long: `Without flags: the labels of all subclusters, and the nodes that have them (-o wide).

--add and --remove change the set of labels in all subclusters. --set replaces the
label of the named nodes, --clear removes it. A NODE is HOST:PORT, or HOST for all its
NodeManagers.`,
		Example: `  creel node labels --add gpu --add 'fast(exclusive=false)'
  creel node labels h17:45454 h18:45454 --set gpu
  creel node labels h17:45454 --clear`,
		ValidArgsFunction: f.nodes,
	}
	c.RunE = func(c *cobra.Command, nodes []string) error {
		gives := clear || c.Flags().Changed("set")
		switch {
		case clear && c.Flags().Changed("set"):
			return usage(errors.New("give one of --set LABEL and --clear"))
		case gives && len(nodes) == 0:
			return usage(errors.New("missing nodes: creel node labels NODE... --set LABEL; creel node list has their names"))
		case !gives && len(nodes) > 0:
			return usage(errors.New("missing --set LABEL or --clear"))
		case gives && !clear && set == "":
			return usage(errors.New("--set names no label; --clear takes a node's label away"))
		}
		done := func(format string, args ...any) { fmt.Fprintf(c.OutOrStdout(), format+"\n", args...) }
		if len(add) > 0 {
			infos, err := labelInfos(add)
			if err != nil {
				return usage(err)
			}
			in := map[string]any{"nodeLabelInfo": infos}
			_, err = f.call(c.Context(), http.MethodPost, clusterPath+"add-node-labels", nil, in, nil)
			if err != nil {
				return err
			}
			done("added: %s", strings.Join(add, ", "))
		}
		for _, n := range nodes {
			path := clusterPath + "nodes/" + url.PathEscape(n) + "/replace-labels"
			if _, err := f.call(c.Context(), http.MethodPost, path, url.Values{"labels": {set}}, nil, nil); err != nil {
				return err
			}
			done("node %s has %s", n, map[bool]string{true: "no label", false: "label " + set}[clear])
		}
		if len(remove) > 0 {
			q := url.Values{"labels": remove}
			_, err := f.call(c.Context(), http.MethodPost, clusterPath+"remove-node-labels", q, nil, nil)
			if err != nil {
				return err
			}
			done("removed: %s", strings.Join(remove, ", "))
		}
		if gives || len(add)+len(remove) > 0 {
			return nil
		}
		return f.listLabels(c)
	}
	f.register(c)
	c.Flags().StringSliceVar(&add, "add", nil, "add these `LABELS`; NAME(exclusive=false) is one that others may borrow")
	c.Flags().StringSliceVar(&remove, "remove", nil, "remove these `LABELS`, which no queue may name any more")
	c.Flags().StringVar(&set, "set", "", "give the nodes this `LABEL`")
	c.Flags().BoolVar(&clear, "clear", false, "take the label of the nodes away")
	return c
}

// labelInfos reads labels as yarn rmadmin -addToClusterNodeLabels writes them.
func labelInfos(texts []string) (out []map[string]any, err error) {
	for _, text := range texts {
		name, rest, more := strings.Cut(text, "(")
		exclusive := true
		if more {
			value, found := strings.CutPrefix(strings.TrimSuffix(rest, ")"), "exclusive=")
			exclusive, err = strconv.ParseBool(value)
			if err != nil || !found || !strings.HasSuffix(rest, ")") {
				return nil, fmt.Errorf("label %q: only (exclusive=true) or (exclusive=false) may follow the name", text)
			}
		}
		if name == "" {
			return nil, fmt.Errorf("label %q has no name", text)
		}
		out = append(out, map[string]any{"name": name, "exclusivity": exclusive})
	}
	return out, nil
}

func (f *clientFlags) listLabels(c *cobra.Command) error {
	var known struct {
		Labels webdoc.Many[struct {
			Name      string       `json:"name"`
			Exclusive flexibleBool `json:"exclusivity"`
			Active    json.Number  `json:"activeNMs"`
		}] `json:"nodeLabelInfo"`
	}
	head, err := f.call(c.Context(), http.MethodGet, clusterPath+"get-rm-node-labels", nil, nil, &known)
	if err != nil {
		return err
	}
	var where struct {
		Of struct {
			Entries webdoc.Many[struct {
				Node   string `json:"key"`
				Labels struct {
					Labels webdoc.Many[struct {
						Name string `json:"name"`
					}] `json:"nodeLabelInfo"`
				} `json:"value"`
			}] `json:"entry"`
		} `json:"nodeToLabels"`
	}
	_, err = f.call(c.Context(), http.MethodGet, clusterPath+"get-node-to-labels", nil, nil, &where)
	if err != nil {
		return err
	}
	var out []nodeLabelDoc
	for _, l := range known.Labels {
		doc := nodeLabelDoc{Name: l.Name, Exclusive: bool(l.Exclusive), ActiveNodes: l.Active.String()}
		for _, e := range where.Of.Entries {
			for _, has := range e.Labels.Labels {
				if has.Name == l.Name {
					doc.Nodes = append(doc.Nodes, e.Node)
				}
			}
		}
		slices.Sort(doc.Nodes)
		out = append(out, doc)
	}
	if err := printList(c.OutOrStdout(), f.printer, out, nodeLabelColumns); err != nil {
		return err
	}
	return partialExit(c, head)
}
