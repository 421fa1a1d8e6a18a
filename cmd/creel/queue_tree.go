// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictyaml"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

const queueTreePath = "/api/v1/queues"

// treeColumns are the columns of the federation's current queues.
var treeColumns = []column[rebalancer.QueueState]{
	{"QUEUE", false, func(q rebalancer.QueueState) string { return string(q.Queue) }},
	{"LABEL", false, func(q rebalancer.QueueState) string { return q.Label }},
	{"FROM", false, func(q rebalancer.QueueState) string { return q.From }},
	{"GUARANTEE", false, func(q rebalancer.QueueState) string { return fmt.Sprintf("%.1f%%", q.Percent) }},
	{"WEIGHT", false, func(q rebalancer.QueueState) string {
		if q.Weight == 0 {
			return "by guarantee"
		}
		return strconv.FormatFloat(q.Weight, 'g', 4, 64)
	}},
	{"MAXIMUM", false, func(q rebalancer.QueueState) string { return amountsText(q.Maximum) }},
	{"USER LIMIT", false, func(q rebalancer.QueueState) string { return amountsText(q.UserLimit) }},
	{"TAKES BACK", true, func(q rebalancer.QueueState) string {
		if len(q.Preemption) == 0 {
			return "no budget"
		}
		return fmt.Sprintf("%s in %d s", amountsText(q.Preemption), q.PreemptionSeconds)
	}},
	{"FOLLOWS", false, func(q rebalancer.QueueState) string {
		if q.Optout {
			return "no"
		}
		return "yes"
	}},
	{"BY PLAN", true, func(q rebalancer.QueueState) string {
		var parts []string
		for _, id := range slices.Sorted(maps.Keys(q.Planned)) {
			parts = append(parts, fmt.Sprintf("%s %s", id, amountsText(q.Planned[id])))
		}
		return strings.Join(parts, "; ")
	}},
	{"DRIFT", false, func(q rebalancer.QueueState) string { return strings.Join(q.Drift, "; ") }},
}

func amountsText(a rebalancer.Amounts) string {
	if len(a) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		text := units.Number(a[name])
		if name == "memory" {
			text = units.Memory(a[name])
		}
		parts = append(parts, name+" "+text)
	}
	return strings.Join(parts, ", ")
}

var treeVersionColumns = []column[rest.QueueTreeDoc]{
	{"VERSION", false, func(d rest.QueueTreeDoc) string { return strconv.FormatInt(d.Version, 10) }},
	{"TIME", false, func(d rest.QueueTreeDoc) string { return d.Time.Format(time.RFC3339) }},
	{"AUTHOR", false, func(d rest.QueueTreeDoc) string { return d.Author }},
	{"COMMENT", false, func(d rest.QueueTreeDoc) string { return d.Comment }},
	{"DOCUMENT", true, func(d rest.QueueTreeDoc) string { return shown(d.Document) }},
}

func (f *clientFlags) queueTree(ctx context.Context) (doc rest.QueueTreeDoc, err error) {
	_, err = f.call(ctx, http.MethodGet, queueTreePath, nil, nil, &doc)
	return doc, err
}

func (f *clientFlags) queueTrees(ctx context.Context, before int64, limit int) ([]rest.QueueTreeDoc, error) {
	var doc rest.QueueTreesDoc
	_, err := f.call(ctx, http.MethodGet, queueTreePath+"/history", url.Values{
		"before": {strconv.FormatInt(before, 10)}, "limit": {strconv.Itoa(limit)},
	}, nil, &doc)
	return doc.Versions, err
}

// queueTreeVersion finds one version of the document.
func (f *clientFlags) queueTreeVersion(ctx context.Context, version int64) (rest.QueueTreeDoc, error) {
	found, err := f.queueTrees(ctx, version+1, 1)
	if err == nil && (len(found) == 0 || found[0].Version != version) {
		err = &exitError{exitNotFound, fmt.Errorf("the queue tree has no version %d: see `creel queue history`", version)}
	}
	if err != nil {
		return rest.QueueTreeDoc{}, err
	}
	return found[0], nil
}

// readTree reads a document in YAML, which includes JSON. It makes all checks that are possible without the federation.
func readTree(file string, in io.Reader) (document json.RawMessage, text string, err error) {
	var data []byte
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(in, 1<<20))
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, "", usage(err)
	}
	document, err = parseTreeText(file, data)
	return document, string(data), err
}

// parseTreeText converts the text of a document to JSON.
func parseTreeText(file string, data []byte) (json.RawMessage, error) {
	out, err := strictyaml.JSON(data, rebalancer.TreeShape())
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", file, err))
	}
	tree, err := rebalancer.ParseTree(out, 0)
	if err == nil {
		err = tree.CheckIn(nil) // members and labels are unknown here
	}
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", file, err))
	}
	return out, nil
}

// differences lists the queues that differ between two trees.
func differences(before, after []rebalancer.QueueState) (lines []string) {
	text := func(q rebalancer.QueueState) string {
		var cells []string
		for _, c := range treeColumns[2:9] {
			cells = append(cells, strings.ToLower(c.title)+" "+c.text(q))
		}
		return onNodes(q.Queue, q.Label) + ": " + strings.Join(cells, ", ")
	}
	was, is := map[subcluster.QueueOn]string{}, map[subcluster.QueueOn]string{}
	var paths []subcluster.QueueOn
	for _, q := range before {
		of := subcluster.QueueOn{Queue: q.Queue, Label: q.Label}
		was[of], paths = text(q), append(paths, of)
	}
	for _, q := range after {
		of := subcluster.QueueOn{Queue: q.Queue, Label: q.Label}
		is[of], paths = text(q), append(paths, of)
	}
	slices.SortFunc(paths, subcluster.CompareQueueOn)
	for _, p := range slices.Compact(paths) {
		if was[p] == is[p] {
			continue
		}
		if was[p] != "" {
			lines = append(lines, "- "+was[p])
		}
		if is[p] != "" {
			lines = append(lines, "+ "+is[p])
		}
	}
	return lines
}

// onNodes names a queue and, for a label, the label's nodes.
func onNodes(q creel.QueuePath, label string) string {
	if label == "" {
		return string(q)
	}
	return fmt.Sprintf("%s on nodes of label %s", q, label)
}

func (f *clientFlags) putTree(c *cobra.Command, order rest.QueueTreeOrder, before []rebalancer.QueueState) error {
	var made rest.QueueTreeDoc
	if order.Document == nil {
		order.Document = json.RawMessage("null")
	}
	if _, err := f.call(c.Context(), http.MethodPut, queueTreePath, nil, order, &made); err != nil {
		return err
	}
	return printOne(c.OutOrStdout(), f.printer, made, strconv.FormatInt(made.Version, 10), func(w io.Writer) error {
		for _, line := range differences(before, made.Queues) {
			fmt.Fprintln(w, line)
		}
		for _, q := range made.Queues {
			for _, d := range q.Drift {
				fmt.Fprintf(w, "drift of %s: %s\n", onNodes(q.Queue, q.Label), d)
			}
		}
		text := fmt.Sprintf("the queue tree is at version %d; the one before was %d", made.Version, order.Expect)
		if order.DryRun {
			text = fmt.Sprintf("nothing was written: version %d holds", order.Expect)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

func queueApply() *cobra.Command {
	var f clientFlags
	var file, comment string
	var expect int64
	var dryRun, remove bool
	c := &cobra.Command{
		Use:   "apply",
		Short: "write the federation-wide guarantees and maxima of queues",
		Long: `Writes the federation's queue tree from a document in YAML or JSON:

  queues:
    - queue: root.research
      guarantee: 30%               of the federation, or {memory: MiB, vCores: N}
      weight: 2                    of the rest beyond guarantees
      maximum: 45%
      user_limit: 10%              limit of each user
      maximum_opportunistic: 200   opportunistic containers, on all nodes
      user_limit_opportunistic: 20 opportunistic containers of each user
      preemption: 5%               may be taken back for it, in each preemption_seconds [60]
      labels:                      on nodes of a label, of their capacity
        gpu: {guarantee: 50%, maximum: 80%, preemption: 10%}
    - queue: root.batch
      optout: true                 homes, splits and escrow do not follow the plan

Values left out are the sums of the members' files.`,
		Args: noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		order := rest.QueueTreeOrder{Comment: comment, DryRun: dryRun}
		if (file == "") != remove {
			return usage(errors.New("give one of: -f FILE, --remove"))
		}
		if !remove {
			var err error
			if order.Document, order.Text, err = readTree(file, c.InOrStdin()); err != nil {
				return err
			}
		}
		now, err := f.queueTree(c.Context())
		if err != nil {
			return err
		}
		order.Expect = now.Version
		if c.Flags().Changed("expect") {
			order.Expect = expect // the store rejects another version
		}
		return f.putTree(c, order, now.Queues)
	}
	f.register(c)
	c.Flags().StringVarP(&file, "file", "f", "", "read the document from `FILE`, - for standard input")
	c.Flags().StringVar(&comment, "comment", "", "why, for the history")
	c.Flags().Int64Var(&expect, "expect", 0, "only if the document is at this `VERSION`, 0 for none")
	c.Flags().BoolVar(&remove, "remove", false, "remove the document: all is as the members' files say")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "check and show, but change nothing")
	return c
}

// showTree prints the federation's current queues.
func (f *clientFlags) showTree(c *cobra.Command) error {
	doc, err := f.queueTree(c.Context())
	if err != nil {
		return err
	}
	if err := printList(
		c.OutOrStdout(),
		f.printer,
		doc.Queues,
		treeColumns,
	); err != nil ||
		f.printer.format != "table" {
		return err
	}
	for i := range doc.Queues {
		q := &doc.Queues[i]
		for _, held := range q.Held {
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", onNodes(q.Queue, q.Label), held)
		}
	}
	text := fmt.Sprintf("document version %d, by %s", doc.Version, doc.Author)
	if len(doc.Document) == 0 {
		text = "there is no document: all is derived from the members' own files"
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), text)
	return err
}

// showDocument prints the document as its author applied it.
func (f *clientFlags) showDocument(c *cobra.Command) error {
	doc, err := f.queueTree(c.Context())
	if err == nil && doc.Version == 0 {
		err = &exitError{exitNotFound, errors.New("there is no document: all is derived from the members' own files")}
	}
	if err != nil {
		return err
	}
	return printOne(c.OutOrStdout(), f.printer, doc, strconv.FormatInt(doc.Version, 10), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, documentText(doc.Text, doc.Document)) // older releases stored no text
		return err
	})
}

func queueHistory() *cobra.Command {
	var f clientFlags
	var limit int
	c := &cobra.Command{
		Use: "history", Short: "list the versions of the federation's queue tree, newest first", Args: noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit < 1 {
			return usage(fmt.Errorf("--limit %d: at least 1", limit))
		}
		list, err := f.queueTrees(c.Context(), 0, limit)
		if err != nil {
			return err
		}
		return printList(c.OutOrStdout(), f.printer, list, treeVersionColumns)
	}
	f.register(c)
	c.Flags().IntVar(&limit, "limit", 20, "at most `N` versions")
	return c
}

func queueDiff() *cobra.Command {
	var f clientFlags
	var file string
	c := &cobra.Command{
		Use:   "diff [VERSION]",
		Short: "compare the federation's queue tree with an earlier version, or with a document (-f)",
		Args:  between(0, 1, "at most one version"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		now, err := f.queueTree(c.Context())
		if err != nil {
			return err
		}
		var document json.RawMessage
		switch {
		case file != "" && len(args) == 0:
			document, _, err = readTree(file, c.InOrStdin())
		case file == "" && len(args) == 1:
			version, bad := strconv.ParseInt(args[0], 10, 64)
			if bad != nil || version < 1 {
				return usage(fmt.Errorf("version %q is no number from 1 up", args[0]))
			}
			var old rest.QueueTreeDoc
			old, err = f.queueTreeVersion(c.Context(), version)
			document = old.Document
		default:
			return usage(errors.New("give one of: a version, -f FILE"))
		}
		if err != nil {
			return err
		}
		if document == nil {
			document = json.RawMessage("null")
		}
		var other rest.QueueTreeDoc
		order := rest.QueueTreeOrder{Document: document, Expect: now.Version, DryRun: true}
		if _, err := f.call(c.Context(), http.MethodPut, queueTreePath, nil, order, &other); err != nil {
			return err
		}
		var out bytes.Buffer
		for _, line := range differences(now.Queues, other.Queues) {
			fmt.Fprintln(&out, line)
		}
		_, err = out.WriteTo(c.OutOrStdout())
		return err
	}
	f.register(c)
	c.Flags().StringVarP(&file, "file", "f", "", "compare with the document in `FILE`, - for standard input")
	return c
}
