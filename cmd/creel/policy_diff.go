// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore"
)

func policyDiff() *cobra.Command {
	var f policyFlags
	var file string
	var version, with int64
	c := &cobra.Command{
		Use:   "diff QUEUE",
		Short: "compare a queue's policy with a file, or two of its versions",
		Example: `  creel policy diff root.prod --file new.json
  creel policy diff root.prod --version 3`,
		Args: exactly(1, "one queue"), ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		if (file == "") == (version == 0) {
			return usage(errors.New("missing --file FILE or --version N"))
		}
		var proposed []byte
		if file != "" {
			t := trial{in: c.InOrStdin()}
			if proposed, err = t.file("--file", file); err != nil {
				return err
			}
			if _, err := policies.Parse(proposed); err != nil {
				return usage(err)
			}
		}
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			right, err := operator.PolicyAt(ctx, from, q, with)
			if file != "" && exitCode(err) == exitNotFound {
				return printDiff(c.OutOrStdout(), string(q)+" without a document", file, nil, proposed)
			}
			if err != nil {
				return err
			}
			a, b := fmt.Sprintf("%s version %d", right.Queue, right.Version), file
			left := right.Document
			if version != 0 {
				old, err := operator.PolicyAt(ctx, from, q, version)
				if err != nil {
					return err
				}
				a, b = fmt.Sprintf("%s version %d", old.Queue, old.Version), a
				left = old.Document
			} else {
				right.Document = proposed
			}
			return printDiff(c.OutOrStdout(), a, b, left, right.Document)
		})
	}
	f.register(c)
	c.Flags().StringVar(&file, "file", "", "the document in `FILE`; - is standard input")
	c.Flags().Int64Var(&version, "version", 0, "an earlier `VERSION`")
	c.Flags().Int64Var(&with, "with", 0, "with --version, compare with this `VERSION` instead of the one in force")
	return c
}

// printDiff compares documents line by line, in indented form.
func printDiff(w io.Writer, a, b string, left, right []byte) error {
	lines := func(document []byte) []string {
		var any any
		if json.Unmarshal(document, &any) != nil {
			return strings.Split(strings.TrimRight(string(document), "\n"), "\n")
		}
		text, err := json.MarshalIndent(any, "", "  ") // with sorted keys
		if err != nil || len(document) == 0 {
			return nil
		}
		return strings.Split(string(text), "\n")
	}
	x, y := lines(left), lines(right)
	if slices.Equal(x, y) {
		_, err := fmt.Fprintf(w, "%s and %s are the same\n", a, b)
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", a, b)
	// The longest common subsequence, by a table: a document has only a few dozen lines.
	common := make([][]int, len(x)+1)
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			fmt.Fprintf(&out, "  %s\n", x[i])
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			fmt.Fprintf(&out, "- %s\n", x[i])
			i++
		default:
			fmt.Fprintf(&out, "+ %s\n", y[j])
			j++
		}
	}
	_, err := out.WriteTo(w)
	return err
}

func policyApply() *cobra.Command {
	var f policyFlags
	var comment string
	var dryRun, anyMember bool
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "apply a file with the policies of many queues; equal ones stay unchanged",
		Long: `The file is JSON, - for standard input: {"root.prod": DOCUMENT, "root.test": null}.
A queue with null has its own document removed; queues that are not in the file
stay unchanged. With --dry-run the changes are shown, and nothing is written.`,
		Args: exactly(1, "one file"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		t := trial{in: c.InOrStdin()}
		var wanted map[creel.QueuePath]json.RawMessage
		if err := t.parse("FILE", args[0], &wanted); err != nil {
			return err
		}
		var queues []creel.QueuePath
		for q, document := range wanted {
			if _, err := queueArgument(string(q)); err != nil {
				return err
			}
			if string(document) == "null" {
				wanted[q] = nil
			} else if _, err := policies.Parse(document); err != nil {
				return usage(fmt.Errorf("queue %s: %w", q, err))
			}
			queues = append(queues, q)
		}
		slices.Sort(queues)
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			for _, q := range queues { // check all queues before the first write
				if err := checkMembers(ctx, from, wanted[q], anyMember); err != nil {
					return err
				}
			}
			changed := 0
			for _, q := range queues {
				now, err := operator.Current(ctx, from, q)
				if err != nil {
					return err
				}
				if shown(now.Document) == shown(wanted[q]) {
					continue
				}
				changed++
				if dryRun {
					a, b := fmt.Sprintf("%s version %d", q, now.Version), fmt.Sprintf("%s as in %s", q, args[0])
					if err := printDiff(c.OutOrStdout(), a, b, now.Document, wanted[q]); err != nil {
						return err
					}
					continue
				}
				w := statestore.PolicyWrite{Queue: q, Expect: now.Version, Document: wanted[q], Comment: comment}
				if err := put(ctx, c, from, f.printer, w, anyMember); err != nil {
					return err
				}
			}
			if f.printer.format != "table" {
				return nil
			}
			verb := map[bool]string{true: "would change", false: "changed"}[dryRun]
			_, err := fmt.Fprintf(c.OutOrStdout(), "%d of %d queues %s\n", changed, len(queues), verb)
			return err
		})
	}
	f.register(c)
	c.Flags().StringVar(&comment, "comment", "", "why, for the history")
	c.Flags().BoolVar(&anyMember, "any-member", false, "also if it names subclusters that do not exist yet")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "check and show, but change nothing")
	return c
}

func policyPreview() *cobra.Command {
	var f policyFlags
	var file string
	var last int
	var seed uint64
	c := &cobra.Command{
		Use:   "preview QUEUE",
		Short: "decide a queue's last submissions again under a new document: homes before and after",
		Long: `Takes the last submissions of the queue that the router remembers, up to 1,000, and
decides them one after another on the members as they are now: by the policy in
force, and by the new one. Each decided submission counts as sent, as in a router.
There is no preview for a queue without submissions at this router.`,
		Example: "  creel policy preview root.prod --file new.json",
		Args:    exactly(1, "one queue"), ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		t := trial{in: c.InOrStdin()}
		b, err := t.file("--file", file)
		if err != nil {
			return err
		}
		fresh, err := policies.Parse(b)
		if err != nil {
			return usage(err)
		}
		if len(f.conf.flags) > 0 {
			return usage(errors.New("submissions are known to routers, not to the store: leave out --store"))
		}
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			view, err := from.view(ctx)
			if err != nil {
				return err
			}
			var seen rest.SubmissionsDoc
			_, err = f.call(ctx, http.MethodGet, policyPath(q)+"/submissions",
				url.Values{"limit": {strconv.Itoa(last)}}, nil, &seen)
			if err != nil {
				return err
			}
			if len(seen.Submissions) == 0 {
				return &exitError{exitNotFound, fmt.Errorf("the router at %s has seen no submission to %s since its start", f.server, q)}
			}
			held, _ := policies.NewTable(nil, view.Policies).For(q)
			submitted, err := rest.SubmittedOf(seen.Submissions)
			if err != nil {
				return err
			}
			doc := router.NewPreview(view, q, submitted, held, fresh, seed)
			return printOne(c.OutOrStdout(), f.printer, doc, string(q), func(w io.Writer) error {
				return printPreview(w, doc)
			})
		})
	}
	f.register(c)
	fl := c.Flags()
	fl.StringVar(&file, "file", "", "the new document in `FILE`; - is standard input")
	fl.StringVar(&file, "policy", "", "as --file")
	_ = fl.MarkHidden("policy") // its former name
	fl.IntVar(&last, "last", 1000, "at most the last `N` submissions")
	fl.Uint64Var(&seed, "seed", 1, "of policies that draw; the same seed draws the same")
	return c
}

// printPreview prints the members that submissions would go to.
func printPreview(w io.Writer, d router.Preview) error {
	fmt.Fprintf(w, "the last %d submissions to %s: %d would have another home, %d none\n",
		d.Submissions, d.Queue, d.Moved, d.Homeless)
	n := func(v func(router.PreviewMember) int) func(router.PreviewMember) string {
		return func(m router.PreviewMember) string { return strconv.Itoa(v(m)) }
	}
	return printList(w, printer{format: "table"}, d.Members, []column[router.PreviewMember]{
		{"MEMBER", false, func(m router.PreviewMember) string { return string(m.Member) }},
		{"WERE", false, n(func(m router.PreviewMember) int { return m.Were })},
		{"IN-FORCE", false, n(func(m router.PreviewMember) int { return m.Now })},
		{"NEW", false, n(func(m router.PreviewMember) int { return m.After })},
	})
}
