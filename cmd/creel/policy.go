// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore"
	"github.com/spf13/cobra"
)

var policyColumns = []column[rest.PolicyDoc]{
	{"QUEUE", false, func(p rest.PolicyDoc) string { return string(p.Queue) }},
	{"VERSION", false, func(p rest.PolicyDoc) string { return strconv.FormatInt(p.Version, 10) }},
	{"HOME", false, func(p rest.PolicyDoc) string {
		if p.Removed {
			return "(removed)"
		}
		return p.Home
	}},
	{"SPLIT", false, func(p rest.PolicyDoc) string { return p.Split }},
	{"TIME", false, func(p rest.PolicyDoc) string { return p.Time.Format(time.RFC3339) }},
	{"AUTHOR", false, func(p rest.PolicyDoc) string { return p.Author }},
	{"COMMENT", false, func(p rest.PolicyDoc) string { return p.Comment }},
	{"DOCUMENT", true, func(p rest.PolicyDoc) string { return string(p.Document) }},
}

func policyCommand() *cobra.Command {
	return daily(
		"policy",
		"read and change how queues choose homes and split asks",
		policyList(),
		policyGet(),
		policySet(),
		policyEdit(),
		policyApply(),
		policyDiff(),
		policyPreview(),
		policyHistory(),
		policyRollback(),
		policyTry(),
		policyView(),
		schemaCommand("print the JSON Schema of policies, for editors", policies.Schema),
	)
}

// queueArgument checks a queue path; "*" is the fallback for all queues.
func queueArgument(text string) (creel.QueuePath, error) {
	if text == "*" {
		return "*", nil
	}
	q, err := creel.ParseQueuePath(text)
	if err == nil && !q.IsFull() {
		err = fmt.Errorf(
			"queue %q: policies are written for whole paths, such as %s",
			text,
			creel.RootQueue.Child(text),
		)
	}
	if err != nil {
		return "", usage(err)
	}
	return q, nil
}

func policyList() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{Use: "list", Short: "list the policies that hold", Args: noArguments}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			records, err := from.Records(ctx)
			if err != nil {
				return err
			}
			var docs []rest.PolicyDoc
			for _, p := range records.Policies {
				docs = append(docs, rest.PolicyDocOf(p))
			}
			return printList(c.OutOrStdout(), f.printer, docs, policyColumns)
		})
	}
	f.register(c)
	return c
}

func policyGet() *cobra.Command {
	var f policyFlags
	var version int64
	c := &cobra.Command{
		Use:   "get QUEUE",
		Short: "print a queue's policy document, its own or the one it inherits",
		Args:  exactly(1, "one queue"), ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			p, err := operator.PolicyAt(ctx, from, q, version)
			if err != nil {
				return err
			}
			return printOne(c.OutOrStdout(), f.printer, rest.PolicyDocOf(p), string(p.Queue), func(w io.Writer) error {
				var text bytes.Buffer
				if json.Indent(&text, p.Document, "", "  ") != nil {
					text.Write(p.Document)
				}
				_, err := fmt.Fprintf(w, "# of %s, version %d\n%s\n", p.Queue, p.Version, &text)
				return err
			})
		})
	}
	f.register(c)
	c.Flags().Int64Var(&version, "version", 0, "an earlier `VERSION`")
	return c
}

func policySet() *cobra.Command {
	var f policyFlags
	var file, comment string
	var expect int64
	var remove, dryRun, anyMember bool
	c := &cobra.Command{
		Use:     "set QUEUE [DOCUMENT]",
		Short:   "write a queue's policy: a document, - for standard input, or --file",
		Args:    between(1, 2, "one or two arguments: a queue, and a document"),
		Example: `  creel policy set root.prod '{"home":{"policy":"weighted","weights":{"east":2,"west":1}},"split":{"policy":"locality"}}'`,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		var document []byte
		switch given := len(args) == 2; {
		case remove && (given || file != ""), given && file != "", !remove && !given && file == "":
			return usage(errors.New("give one of: a document, --file FILE, --remove"))
		case remove:
		case file != "":
			document, err = os.ReadFile(file)
		case args[1] == "-":
			document, err = io.ReadAll(io.LimitReader(c.InOrStdin(), 1<<20))
		case !strings.HasPrefix(strings.TrimSpace(args[1]), "{"):
			return usage(fmt.Errorf("%.80q is not a JSON object; use --file for a file", args[1]))
		default:
			document = []byte(args[1])
		}
		if err != nil {
			return usage(err)
		}
		if !remove {
			if _, err := policies.Parse(document); err != nil {
				return usage(err)
			}
		}
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			now, err := operator.Current(ctx, from, q)
			if err != nil {
				return err
			}
			at := now.Version
			if c.Flags().Changed("expect") && at != expect {
				return fmt.Errorf(
					"%w: queue %s is at version %d, not %d: it was changed meanwhile; see `creel policy history %s`",
					creel.ErrConflict,
					q,
					at,
					expect,
					q,
				)
			}
			if dryRun {
				if err := checkMembers(ctx, from, document, anyMember); err != nil {
					return err
				}
				fmt.Fprintf(
					c.OutOrStdout(),
					"queue %s, version %d would be followed by:\n- %s\n+ %s\n",
					q,
					at,
					shown(now.Document),
					shown(document),
				)
				return nil
			}
			return put(
				ctx,
				c,
				from,
				f.printer,
				statestore.PolicyWrite{Queue: q, Expect: at, Document: document, Comment: comment},
				anyMember,
			)
		})
	}
	f.register(c)
	c.Flags().StringVar(&file, "file", "", "read the document from `FILE`")
	c.Flags().StringVar(&comment, "comment", "", "why, for the history")
	c.Flags().Int64Var(&expect, "expect", 0, "only if the queue is at this `VERSION`, 0 for none")
	c.Flags().BoolVar(&remove, "remove", false, "remove the queue's own document: the one above holds")
	c.Flags().BoolVar(&anyMember, "any-member", false, "also if it names subclusters that do not exist yet")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "check and show, but change nothing")
	return c
}

func shown(document []byte) string {
	if len(document) == 0 {
		return "(none)"
	}
	var text bytes.Buffer
	if json.Compact(&text, document) != nil {
		return string(document)
	}
	return text.String()
}

func put(
	ctx context.Context,
	c *cobra.Command,
	from policySource,
	p printer,
	w statestore.PolicyWrite,
	anyMember bool,
) error {
	made, err := from.put(ctx, w, anyMember)
	if err != nil {
		return err
	}
	return printOne(c.OutOrStdout(), p, rest.PolicyDocOf(made), string(made.Queue), func(out io.Writer) error {
		_, err := fmt.Fprintf(
			out,
			"queue %s is at version %d; the one before was %d\n",
			made.Queue,
			made.Version,
			w.Expect,
		)
		return err
	})
}

func policyHistory() *cobra.Command {
	var f policyFlags
	var limit int
	c := &cobra.Command{
		Use:   "history QUEUE",
		Short: "list the versions of a queue's policy, newest first",
		Args:  exactly(1, "one queue"), ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		if limit < 1 {
			return usage(fmt.Errorf("--limit %d: at least 1", limit))
		}
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			found, err := from.PolicyHistory(ctx, q, 0, limit)
			if err != nil {
				return err
			}
			var docs []rest.PolicyDoc
			for _, p := range found {
				docs = append(docs, rest.PolicyDocOf(p))
			}
			return printList(c.OutOrStdout(), f.printer, docs, policyColumns)
		})
	}
	f.register(c)
	c.Flags().IntVar(&limit, "limit", 20, "at most `N` versions")
	return c
}
