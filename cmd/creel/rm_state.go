// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/transfer"
	"github.com/spf13/cobra"
)

// ofStopped adds to each of these commands the sentence that applies to all of them.
const ofStopped = "\n\nThe ResourceManager must be stopped, both of a pair. The state is the one that creel rm\n" +
	"would use with the same settings: a journal (--data), Redis (creel.rm.state.url) or\n" +
	"ZooKeeper (yarn.resourcemanager.store.class)."

// stateCommand is a command over the state of a stopped ResourceManager.
func stateCommand(
	c *cobra.Command, create bool, run func(ctx context.Context, l state.Log, name string, args []string) error,
) *cobra.Command {
	return stateCommandOf(c, create, func(ctx context.Context, in *stoppedState, args []string) error {
		l, err := in.open(ctx)
		if err != nil {
			return err
		}
		return run(ctx, l, in.name, args)
	})
}

// stoppedState is the state that the settings of a command name.
type stoppedState struct {
	s      *settings.Settings
	create bool
	name   string // after open
}

func (in *stoppedState) open(ctx context.Context) (l state.Log, err error) {
	l, in.name, err = role.OpenStopped(ctx, in.s, in.create)
	return l, wrongUsage(err)
}

// wrongUsage gives an invalid setting the exit code of a usage error.
func wrongUsage(err error) error {
	if errors.Is(err, creel.ErrInvalidRequest) {
		return usage(err)
	}
	return err
}

// stateCommandOf is stateCommand for a command that opens the state itself.
func stateCommandOf(
	c *cobra.Command, create bool, run func(ctx context.Context, in *stoppedState, args []string) error,
) *cobra.Command {
	var f confFlags
	c.Long += ofStopped
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := f.load()
		if err != nil {
			return err
		}
		return run(c.Context(), &stoppedState{s: s, create: create}, args)
	}
	f.register(c)
	f.setting(c.Flags(), "data", "creel.rm.data", "the journal's `DIR`")
	return c
}

func exportCommand() *cobra.Command {
	var to string
	c := &cobra.Command{Use: "export [FILE]", Short: "copy the state to a file, or for Hadoop's ResourceManager",
		Args: fileOr(&to, "to"),
		Long: `Copies all of the ResourceManager's state to a new file, for creel rm import. The file
has the master keys of the cluster, so only its owner may read it.

With --to it writes Hadoop's records into a ZooKeeper instead, from which Hadoop's
ResourceManager continues the applications. The path must have no state. The login at
that ZooKeeper is that of hadoop.zk.*, the rights of the nodes are hadoop.zk.acl.`}
	stateCommandOf(c, false, func(ctx context.Context, in *stoppedState, args []string) (err error) {
		l, err := in.open(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		if to != "" {
			m, err := role.WriteHadoop(ctx, in.s, l, to)
			if err != nil {
				return fmt.Errorf("%s to %s: %w", in.name, to, wrongUsage(err))
			}
			printMoved(c.OutOrStdout(), to, m)
			return nil
		}
		n, err := writeState(l, in.name, args[0])
		if err == nil {
			fmt.Fprintf(c.OutOrStdout(), "%d entries of %s are in %s\n", n, in.name, args[0])
		}
		return err
	})
	c.Flags().StringVar(&to, "to", "", "write Hadoop's records to `URL`, zk://HOST:PORT,.../PATH")
	completeZooKeeper(c, "to")
	return c
}

// fileOr requires either one FILE or the flag.
func fileOr(value *string, flag string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if (*value != "") == (len(args) == 0) && len(args) <= 1 {
			return nil
		}
		return usage(fmt.Errorf("%s takes one FILE, or --%s; it got %d arguments", c.CommandPath(), flag, len(args)))
	}
}

// completeZooKeeper completes a URL's scheme.
func completeZooKeeper(c *cobra.Command, flag string) {
	_ = c.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions([]string{"zk://"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// printMoved describes a state that moved from or to Hadoop's ResourceManager.
func printMoved(w io.Writer, name string, m role.Moved) {
	fmt.Fprintf(w, "%s has %d applications, of which %d have not ended, and %d delegation tokens; the next epoch is %d\n",
		name, m.Apps, m.Running, m.Tokens, m.Epoch)
	for _, part := range m.Omitted {
		fmt.Fprintf(w, "not moved: %s\n", part)
	}
}

// writeState exports to a new file, and leaves none if that fails.
func writeState(l state.Log, name, path string) (n int, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("the file must be a new one: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if n, err = transfer.Export(l, file, name, time.Now()); err != nil {
		return 0, err
	}
	return n, file.Sync()
}

func importCommand() *cobra.Command {
	var from string
	c := &cobra.Command{Use: "import [FILE]", Short: "fill an empty state from a file, or from Hadoop's ResourceManager",
		Args: fileOr(&from, "from"),
		Long: `Fills an empty state from a file of creel rm export. A damaged file changes nothing.
An import that did not end stops the ResourceManager's start; repeat it.

With --from it reads the state of a stopped Hadoop ResourceManager (ZKRMStateStore)
instead, and changes nothing there: applications, attempts, tokens, keys and the epoch.
The login at that ZooKeeper is that of hadoop.zk.*.`}
	stateCommandOf(c, true, func(ctx context.Context, in *stoppedState, args []string) error {
		if from != "" {
			return importHadoop(ctx, c.OutOrStdout(), in, from)
		}
		l, err := in.open(ctx)
		if err != nil {
			return err
		}
		file, err := os.Open(args[0])
		if err != nil {
			return errors.Join(usage(err), l.Close())
		}
		defer file.Close()
		n, err := transfer.Import(ctx, l, file)
		if err != nil {
			return fmt.Errorf("%s into %s: %w", args[0], in.name, err)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s has %d entries\n", in.name, n)
		return nil
	})
	c.Flags().StringVar(&from, "from", "", "read Hadoop's records from `URL`, zk://HOST:PORT,.../PATH")
	completeZooKeeper(c, "from")
	return c
}

// importHadoop reads Hadoop's state before it opens creel's, so that an error leaves nothing.
func importHadoop(ctx context.Context, w io.Writer, in *stoppedState, from string) error {
	p, err := role.ReadHadoop(ctx, in.s, from)
	if err != nil {
		return fmt.Errorf("%s: %w", from, wrongUsage(err))
	}
	l, err := in.open(ctx)
	if err != nil {
		return err
	}
	m, err := role.FillFromHadoop(ctx, in.s, l, p)
	if err != nil {
		return fmt.Errorf("%s into %s: %w", from, in.name, err)
	}
	printMoved(w, in.name, m)
	return nil
}

func formatCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{Use: "format", Short: "delete the state", Args: noArguments,
		Long: `Deletes the ResourceManager's state: applications, attempts, tokens, keys, labels and
queue changes. Like yarn resourcemanager -format-state-store.`}
	stateCommand(c, false, func(ctx context.Context, l state.Log, name string, _ []string) error {
		if !yes {
			return errors.Join(usage(fmt.Errorf("this deletes %s: repeat with --yes", name)), l.Close())
		}
		n, err := transfer.Format(ctx, l)
		if err == nil {
			fmt.Fprintf(c.OutOrStdout(), "%d entries of %s are deleted\n", n, name)
		}
		return err
	})
	c.Flags().BoolVar(&yes, "yes", false, "delete without a question")
	return c
}

func forgetCommand() *cobra.Command {
	c := &cobra.Command{Use: "forget APPLICATION", Short: "delete one application from the state",
		Args: exactly(1, "one APPLICATION"),
		Long: `Deletes an application and its attempts from the state, for example because the
ResourceManager cannot start with it. Nodes end its containers. Like
yarn resourcemanager -remove-application-from-state-store.`}
	return stateCommand(c, false, func(ctx context.Context, l state.Log, name string, args []string) error {
		app, err := creel.ParseApplicationID(args[0])
		if err != nil {
			return errors.Join(usage(err), l.Close())
		}
		n, err := transfer.RemoveApplication(ctx, l, app)
		if err == nil && n == 0 {
			return &exitError{exitNotFound, fmt.Errorf("%s does not have %s", name, app)}
		}
		if err == nil {
			fmt.Fprintf(c.OutOrStdout(), "%d entries of %s are deleted from %s\n", n, app, name)
		}
		return err
	})
}
