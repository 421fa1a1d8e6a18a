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
	"os/user"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/app/daemon/role"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

// policyFlags are what the commands that read and write policies take. They
// speak to the state store itself: who may reach it may change policies.
type policyFlags struct {
	confFlags
	printer printer
}

func (f *policyFlags) register(c *cobra.Command) {
	f.confFlags.register(c)
	f.setting(c.Flags(), "store", "creel.store.url", "state store `URL`")
	c.Flags().StringVarP(&f.printer.format, "output", "o", "table", outputUsage)
}

// with opens the store for one command.
func (f *policyFlags) with(ctx context.Context, do func(ctx context.Context, store statestore.Store) error) error {
	if err := f.printer.check(); err != nil {
		return err
	}
	s, err := f.load()
	if err != nil {
		return err
	}
	if s.String("creel.store.url") == "memory" {
		return usage(errors.New(
			"the store \"memory\" lives inside of a daemon: name the federation's with --store redis://HOST:PORT"))
	}
	store, closeStore, err := role.OpenStore(ctx, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return errors.Join(do(ctx, store), closeStore())
}

// policyDoc is a version of a queue's policy as the commands print it.
type policyDoc struct {
	Queue    creel.QueuePath `json:"queue"`
	Version  int64           `json:"version"`
	Home     string          `json:"home,omitempty"`
	Split    string          `json:"split,omitempty"`
	Author   string          `json:"author,omitempty"`
	Comment  string          `json:"comment,omitempty"`
	Time     time.Time       `json:"time"`
	Document json.RawMessage `json:"document,omitempty"`
	Removed  bool            `json:"removed,omitempty"`
}

func policyDocOf(p subcluster.Policy) policyDoc {
	d := policyDoc{
		Queue:   p.Queue,
		Version: p.Version,
		Author:  p.Author,
		Comment: p.Comment,
		Time:    p.Time,
		Removed: len(p.Document) == 0,
	}
	if parsed, err := policies.Parse(p.Document); err == nil && !d.Removed {
		d.Home, d.Split = parsed.HomeName(), parsed.SplitName()
	}
	if json.Valid(p.Document) {
		d.Document = p.Document
	}
	return d
}

var policyColumns = []column[policyDoc]{
	{"QUEUE", false, func(p policyDoc) string { return string(p.Queue) }},
	{"VERSION", false, func(p policyDoc) string { return strconv.FormatInt(p.Version, 10) }},
	{"HOME", false, func(p policyDoc) string {
		if p.Removed {
			return "(removed)"
		}
		return p.Home
	}},
	{"SPLIT", false, func(p policyDoc) string { return p.Split }},
	{"TIME", false, func(p policyDoc) string { return p.Time.Format(time.RFC3339) }},
	{"AUTHOR", false, func(p policyDoc) string { return p.Author }},
	{"COMMENT", false, func(p policyDoc) string { return p.Comment }},
	{"DOCUMENT", true, func(p policyDoc) string { return string(p.Document) }},
}

func policyCommand() *cobra.Command {
	return daily(
		"policy",
		"read and change how queues choose homes and split asks",
		policyList(),
		policyGet(),
		policySet(),
		policyHistory(),
		policyRollback(),
		policyTry(),
		policyView(),
	)
}

// queueArgument checks a queue path; "*" is the last resort of all queues.
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
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			records, err := store.Records(ctx)
			if err != nil {
				return err
			}
			var docs []policyDoc
			for _, p := range records.Policies {
				docs = append(docs, policyDocOf(p))
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
		Args:  exactly(1, "one queue"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			p, err := policyAt(ctx, store, q, version)
			if err != nil {
				return err
			}
			return printOne(c.OutOrStdout(), f.printer, policyDocOf(p), string(p.Queue), func(w io.Writer) error {
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

// policyAt is a version of a queue's own policy, or (0) the document that
// holds for the queue, which may be that of one above.
func policyAt(
	ctx context.Context,
	store statestore.Store,
	q creel.QueuePath,
	version int64,
) (subcluster.Policy, error) {
	if version == 0 {
		records, err := store.Records(ctx)
		if err != nil {
			return subcluster.Policy{}, err
		}
		_, at := policies.NewTable(nil, subcluster.NewPolicies(records.Policies)).For(q)
		for _, p := range records.Policies {
			if p.Queue == at && at != "" {
				return p, nil
			}
		}
		return subcluster.Policy{}, &coded{
			exitNotFound,
			fmt.Errorf(
				"no document holds for %s: its policies are those of creel.router.policy and creel.proxy.policy; write one with `creel policy set`",
				q,
			),
		}
	}
	// The history is asked for what is older than the next version.
	found, err := store.PolicyHistory(ctx, q, version+1, 1)
	if err != nil {
		return subcluster.Policy{}, err
	}
	if len(found) == 0 || found[0].Version != version {
		return subcluster.Policy{}, &coded{
			exitNotFound,
			fmt.Errorf("queue %s has no version %d; see `creel policy history %s`", q, version, q),
		}
	}
	return found[0], nil
}

// current is the newest version number of a queue, 0 for none.
func current(ctx context.Context, store statestore.Store, q creel.QueuePath) (int64, []byte, error) {
	found, err := store.PolicyHistory(ctx, q, 0, 1)
	if err != nil || len(found) == 0 {
		return 0, nil, err
	}
	return found[0].Version, found[0].Document, nil
}

func author() string {
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func policySet() *cobra.Command {
	var f policyFlags
	var file, comment string
	var expect int64
	var remove, dryRun, anyMember bool
	c := &cobra.Command{
		Use:     "set QUEUE [DOCUMENT]",
		Short:   "write a queue's policy: a document, - for standard input, or --file",
		Args:    cobra.RangeArgs(1, 2),
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
		default:
			document = []byte(args[1])
		}
		if err != nil {
			return usage(err)
		}
		var policy policies.Policy
		if !remove {
			if policy, err = policies.Parse(document); err != nil {
				return usage(err)
			}
		}
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			if !anyMember {
				if err := checkMembers(ctx, store, policy); err != nil {
					return err
				}
			}
			at, before, err := current(ctx, store, q)
			if err != nil {
				return err
			}
			if c.Flags().Changed("expect") && at != expect {
				return fmt.Errorf(
					"%w: queue %s is at version %d, not %d: somebody changed it; look with `creel policy history %s`",
					creel.ErrConflict,
					q,
					at,
					expect,
					q,
				)
			}
			if dryRun {
				fmt.Fprintf(
					c.OutOrStdout(),
					"queue %s, version %d would be followed by:\n- %s\n+ %s\n",
					q,
					at,
					shown(before),
					shown(document),
				)
				return nil
			}
			return put(
				ctx,
				c,
				store,
				f.printer,
				statestore.PolicyWrite{Queue: q, Expect: at, Document: document, Author: author(), Comment: comment},
			)
		})
	}
	f.register(c)
	c.Flags().StringVar(&file, "file", "", "read the document from `FILE`")
	c.Flags().StringVar(&comment, "comment", "", "why, for the history")
	c.Flags().Int64Var(&expect, "expect", 0, "only if the queue is at this `VERSION`, 0 for none")
	c.Flags().BoolVar(&remove, "remove", false, "remove the queue's own document: the one above holds")
	c.Flags().BoolVar(&anyMember, "any-member", false, "also if it gives weight to subclusters that do not exist yet")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "check and show, but change nothing")
	return c
}

// checkMembers refuses a policy with weights for subclusters that the store
// does not know: misspelt, it would decide nothing.
func checkMembers(ctx context.Context, store statestore.Store, policy policies.Policy) error {
	records, err := store.Records(ctx)
	if err != nil {
		return err
	}
	known := make([]creel.SubclusterID, len(records.Members))
	for i := range records.Members {
		known[i] = records.Members[i].ID
	}
	if err := policy.CheckMembers(known); err != nil {
		return usage(fmt.Errorf("%w; --any-member writes it all the same", err))
	}
	return nil
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

func put(ctx context.Context, c *cobra.Command, store statestore.Store, p printer, w statestore.PolicyWrite) error {
	made, err := store.PutPolicy(ctx, w)
	if err != nil {
		return err
	}
	return printOne(c.OutOrStdout(), p, policyDocOf(made), string(made.Queue), func(out io.Writer) error {
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
		Args:  exactly(1, "one queue"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		if limit < 1 {
			return usage(fmt.Errorf("--limit %d: at least 1", limit))
		}
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			found, err := store.PolicyHistory(ctx, q, 0, limit)
			if err != nil {
				return err
			}
			var docs []policyDoc
			for _, p := range found {
				docs = append(docs, policyDocOf(p))
			}
			return printList(c.OutOrStdout(), f.printer, docs, policyColumns)
		})
	}
	f.register(c)
	c.Flags().IntVar(&limit, "limit", 20, "at most `N` versions")
	return c
}

func policyRollback() *cobra.Command {
	var f policyFlags
	var to int64
	c := &cobra.Command{
		Use:   "rollback QUEUE",
		Short: "put an earlier version of a queue's policy in force again, as a new one",
		Args:  exactly(1, "one queue"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			found, err := store.PolicyHistory(ctx, q, 0, 2)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return &coded{exitNotFound, fmt.Errorf("queue %s never had a policy of its own", q)}
			}
			w := statestore.PolicyWrite{Queue: q, Expect: found[0].Version, Author: author()}
			switch {
			case to != 0:
				old, err := policyAt(ctx, store, q, to)
				if err != nil {
					return err
				}
				w.Document, w.Comment = old.Document, fmt.Sprintf("rollback to version %d", to)
			case len(found) > 1:
				w.Document, w.Comment = found[1].Document, fmt.Sprintf("rollback to version %d", found[1].Version)
			default:
				w.Comment = "rollback to none" // the first version is undone by removing it
			}
			return put(ctx, c, store, f.printer, w)
		})
	}
	f.register(c)
	c.Flags().Int64Var(&to, "to", 0, "the `VERSION` to return to (default: the one before)")
	return c
}
