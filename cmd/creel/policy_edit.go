// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
)

// policyEdit opens a policy in an editor. If the result cannot be written, the file stays and the error names it.
func policyEdit() *cobra.Command {
	var f policyFlags
	var comment string
	var anyMember bool
	c := &cobra.Command{
		Use:   "edit QUEUE",
		Short: "change a queue's policy in your editor",
		Long: `Opens the document in force for the queue (its own, the inherited one, or a template)
in $VISUAL, else $EDITOR, else vi, and writes the saved text as the queue's own. Nothing
is written if the text is unchanged, or if the policy was changed meanwhile.`,
		Args: exactly(1, "one queue"), ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := queueArgument(args[0])
		if err != nil {
			return err
		}
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			own, err := operator.Current(ctx, from, q)
			if err != nil {
				return err
			}
			start := own.Document
			if len(start) == 0 {
				held, err := operator.PolicyAt(ctx, from, q, 0)
				switch {
				case exitCode(err) == exitNotFound:
					start = []byte(`{"home":{"policy":"balanced"},"split":{"policy":"balanced"}}`) // a template
				case err != nil:
					return err
				default:
					start = held.Document
				}
			}
			var text bytes.Buffer
			if json.Indent(&text, start, "", "  ") != nil {
				text.Write(start)
			}
			text.WriteByte('\n')
			file, err := edited(c, text.Bytes())
			if err != nil {
				return err
			}
			document, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if bytes.Equal(bytes.TrimSpace(document), bytes.TrimSpace(text.Bytes())) {
				fmt.Fprintf(c.OutOrStdout(), "queue %s: nothing was changed\n", q)
				return os.Remove(file)
			}
			_, err = policies.Parse(document)
			if err != nil {
				err = usage(err)
			} else {
				err = put(ctx, c, from, f.printer, statestore.PolicyWrite{
					Queue: q, Expect: own.Version, Document: document, Comment: comment,
				}, anyMember)
			}
			if err != nil {
				return fmt.Errorf("%w; your text is saved: creel policy set %s --file %s", err, q, file)
			}
			return os.Remove(file)
		})
	}
	f.register(c)
	c.Flags().StringVar(&comment, "comment", "", "why, for the history")
	c.Flags().BoolVar(&anyMember, "any-member", false, "also if it names subclusters that do not exist yet")
	return c
}

// edited opens a text in the user's editor, and returns the path of its file.
func edited(c *cobra.Command, text []byte) (file string, err error) {
	out, err := os.CreateTemp("", "creel-policy-*.json")
	if err != nil {
		return "", err
	}
	_, err = out.Write(text)
	if err := cmp.Or(err, out.Close()); err != nil {
		return "", err
	}
	// The variable may carry flags: "code --wait".
	editor := append(strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")), out.Name())
	run := exec.CommandContext(c.Context(), editor[0], editor[1:]...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		return "", usage(fmt.Errorf("editor %s: %w; name another with $EDITOR; the text is in %s",
			editor[0], err, out.Name()))
	}
	return out.Name(), nil
}
