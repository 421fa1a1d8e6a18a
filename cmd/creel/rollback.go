// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

// rollbackTo is the version that a rollback returns to: a version, or below 0 the number of versions before the newest.
type rollbackTo int64

func (to *rollbackTo) register(c *cobra.Command) {
	c.Flags().Int64Var((*int64)(to), "to", -1, "the `VERSION` to return to, -1 for the one before, -2 for the one before that")
	c.Flags().Lookup("to").Annotations = map[string][]string{belowZero: nil}
}

func (to rollbackTo) check() error {
	if to == 0 {
		return usage(errors.New("--to 0: give a version such as 7, or -1 for the one before"))
	}
	return nil
}

// most is the number of versions to read.
func (to rollbackTo) most() int {
	if to > 0 {
		return statestore.KeptVersions
	}
	return int(min(-to+1, statestore.KeptVersions))
}

// pick finds the version in a history, newest first. Before the first version there was none: nil.
func pick[T any](to rollbackTo, history []T, version func(T) int64, where, list string) (*T, error) {
	none := func(why string) error {
		return &exitError{exitNotFound, fmt.Errorf("%s %s; see `%s`", where, why, list)}
	}
	if len(history) == 0 {
		return nil, none("never had a document of its own")
	}
	if back := -to; back > 0 {
		switch {
		case int64(back) < int64(len(history)):
			return &history[back], nil
		case int64(back) == int64(len(history)) && len(history) < statestore.KeptVersions:
			return nil, nil
		}
		return nil, none(fmt.Sprintf("has %d stored versions", len(history)))
	}
	for i := range history {
		if version(history[i]) == int64(to) {
			return &history[i], nil
		}
	}
	return nil, none(fmt.Sprintf("has no version %d", to))
}

func queueRollback() *cobra.Command {
	var f clientFlags
	to := rollbackTo(-1)
	c := &cobra.Command{
		Use:   "rollback",
		Short: "put an earlier version of the federation's queue tree in force again, as a new one",
		Long: `Puts an earlier version of the queue tree's document in force again, as a new version, and prints the difference.
A second rollback undoes the first. The rebalancer's recomputed percentages are no versions.`,
		Example: `  creel queue rollback
  creel queue rollback --to -2
  creel queue rollback --to 1764353628120`,
		Args: noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := to.check(); err != nil {
			return err
		}
		now, err := f.queueTree(c.Context())
		if err != nil {
			return err
		}
		found, err := f.queueTrees(c.Context(), 0, to.most())
		if err != nil {
			return err
		}
		versionOf := func(d rest.QueueTreeDoc) int64 { return d.Version }
		old, err := pick(to, found, versionOf, "the queue tree", "creel queue history")
		if err != nil {
			return err
		}
		order := rest.QueueTreeOrder{Expect: now.Version, Comment: "rollback to none"}
		if old != nil {
			order.Document, order.Text = old.Document, old.Text
			order.Comment = fmt.Sprintf("rollback to version %d", old.Version)
			if old.Text != "" { // the stored document has amounts of the federation's size at that time
				if order.Document, err = parseTreeText("the stored text", []byte(old.Text)); err != nil {
					return err
				}
			}
		}
		if err := f.putTree(c, order, now.Queues); err != nil || f.printer.format != "table" {
			return err
		}
		text := "no document holds: the members' own files apply"
		if len(order.Document) > 0 {
			text = fmt.Sprintf("the document of version %d holds:\n%s", old.Version,
				documentText(old.Text, old.Document))
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), text)
		return err
	}
	f.register(c)
	to.register(c)
	return c
}

func policyRollback() *cobra.Command {
	var f policyFlags
	to := rollbackTo(-1)
	c := &cobra.Command{
		Use:   "rollback QUEUE",
		Short: "put an earlier version of a queue's policy in force again, as a new one",
		Long: `Puts an earlier version of a queue's policy in force again, as a new version, and prints the difference and the
document that holds now. A second rollback undoes the first.`,
		Example: `  creel policy rollback root.prod
  creel policy rollback root.prod --to -2
  creel policy rollback root.prod --to 1764353628120`,
		Args: exactly(1, "one queue"), ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err == nil {
			err = to.check()
		}
		if err != nil {
			return err
		}
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			found, err := from.PolicyHistory(ctx, q, 0, to.most())
			if err != nil {
				return err
			}
			old, err := pick(to, found, func(p subcluster.Policy) int64 { return p.Version }, "queue "+string(q),
				"creel policy history "+string(q))
			if err != nil {
				return err
			}
			w := statestore.PolicyWrite{Queue: q, Expect: found[0].Version, Comment: "rollback to none"}
			if old != nil {
				w.Document, w.Comment = old.Document, fmt.Sprintf("rollback to version %d", old.Version)
			}
			made, err := from.put(ctx, w, true) // it was accepted once
			if err != nil {
				return err
			}
			return f.printRollback(ctx, c, from, found[0], made)
		})
	}
	f.register(c)
	to.register(c)
	return c
}

// printRollback prints the difference, and the document that holds for the queue now.
func (f *policyFlags) printRollback(
	ctx context.Context, c *cobra.Command, from policySource, before, made subcluster.Policy,
) error {
	return printOne(c.OutOrStdout(), f.printer, rest.PolicyDocOf(made), string(made.Queue), func(out io.Writer) error {
		fmt.Fprintf(out, "- %s\n+ %s\nqueue %s is at version %d; the one before was %d\n", shown(before.Document),
			shown(made.Document), made.Queue, made.Version, before.Version)
		holds, err := operator.PolicyAt(ctx, from, made.Queue, 0)
		switch {
		case errors.Is(err, creel.ErrQueueNotFound):
			_, err = fmt.Fprintf(out, "no document holds for %s: creel.router.policy and creel.proxy.policy apply\n", made.Queue)
			return err
		case err != nil:
			return err
		case holds.Queue != made.Queue:
			_, err = fmt.Fprintf(out, "the document of %s holds for %s:\n%s\n", holds.Queue, made.Queue,
				documentText("", holds.Document))
			return err
		}
		// A router's view may be a moment older than this write.
		_, err = fmt.Fprintf(out, "this document holds for %s:\n%s\n", made.Queue, documentText("", made.Document))
		return err
	})
}

// documentText returns a document as its author wrote it, else indented.
func documentText(text string, document []byte) string {
	if text != "" {
		return string(bytes.TrimRight([]byte(text), "\n"))
	}
	var out bytes.Buffer
	if json.Indent(&out, document, "", "  ") != nil {
		return string(document)
	}
	return out.String()
}
