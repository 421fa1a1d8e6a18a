// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/role"
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
	var f confFlags
	c.Long += ofStopped
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := f.load()
		if err != nil {
			return err
		}
		l, name, err := role.OpenStopped(c.Context(), s, create)
		if errors.Is(err, creel.ErrInvalidRequest) {
			return usage(err)
		}
		if err != nil {
			return err
		}
		return run(c.Context(), l, name, args)
	}
	f.register(c)
	f.setting(c.Flags(), "data", "creel.rm.data", "the journal's `DIR`")
	return c
}

func exportCommand() *cobra.Command {
	c := &cobra.Command{Use: "export FILE", Short: "copy the state to a file", Args: exactly(1, "one FILE"),
		Long: `Copies all of the ResourceManager's state to a new file, for creel rm import. The file
has the master keys of the cluster, so only its owner may read it.`}
	return stateCommand(c, false, func(_ context.Context, l state.Log, name string, args []string) (err error) {
		defer func() { err = errors.Join(err, l.Close()) }()
		n, err := writeState(l, name, args[0])
		if err == nil {
			fmt.Fprintf(c.OutOrStdout(), "%d entries of %s are in %s\n", n, name, args[0])
		}
		return err
	})
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
	c := &cobra.Command{Use: "import FILE", Short: "fill an empty state from a file", Args: exactly(1, "one FILE"),
		Long: `Fills an empty state from a file of creel rm export. A damaged file changes nothing.
An import that did not end stops the ResourceManager's start; repeat it.`}
	return stateCommand(c, true, func(ctx context.Context, l state.Log, name string, args []string) error {
		file, err := os.Open(args[0])
		if err != nil {
			return errors.Join(usage(err), l.Close())
		}
		defer file.Close()
		n, err := transfer.Import(ctx, l, file)
		if err != nil {
			return fmt.Errorf("%s into %s: %w", args[0], name, err)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s has %d entries\n", name, n)
		return nil
	})
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
