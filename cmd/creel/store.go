// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/rebuild"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

func storeCommand() *cobra.Command {
	return daily("store", "look after the state store", storeRebuild(), storeRename())
}

// storeRebuild ends a rebuild's wait for members.
func storeRebuild() *cobra.Command {
	var f storeFlags
	var missing []string
	c := &cobra.Command{
		Use: "rebuild", Short: "go on rebuilding without a member that will never answer", Args: noArguments,
		Long: `A state store that came back empty accepts no claims until every member that any
router, proxy or ResourceManager knew has reported its applications. This command
ends the wait for a member that never will. A client that repeats its submission may
then start that member's applications a second time: be sure that the member is gone.`,
	}
	f.register(c)
	c.Flags().StringSliceVar(&missing, "accept-missing", nil, "`MEMBER` that need not answer; may be repeated")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if len(missing) == 0 {
			return usage(
				errors.New("name the members to give up: --accept-missing MEMBER; the routers' logs name them"),
			)
		}
		for _, id := range missing {
			if err := subcluster.ValidID(creel.SubclusterID(id)); err != nil {
				return usage(err)
			}
		}
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			s, ok := store.(interface {
				rebuild.Store
				AcceptMissing(ctx context.Context, id creel.SubclusterID) error
			})
			if !ok {
				return usage(errors.New("this store cannot be rebuilt"))
			}
			for _, id := range missing {
				if err := s.AcceptMissing(ctx, creel.SubclusterID(id)); err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "%s need not answer\n", id)
			}
			return nil
		})
	}
	return c
}

// storeRename changes the name of the federation that owns the store.
func storeRename() *cobra.Command {
	var f storeFlags
	var accept bool
	c := &cobra.Command{
		Use: "rename OLD NEW", Short: "rename the federation that owns the store",
		Args: exactly(2, "the old name and the new one"),
		Long: `A state store has the name of its federation, which the first process wrote
(creel.federation.name). Processes with another name do not start. This command
changes the name. Stop the federation's processes first, and set the new name in
their configuration. With --accept-running they may run meanwhile: they continue,
but do not start again before their configuration has the new name.`,
	}
	f.register(c)
	c.Flags().BoolVar(&accept, "accept-running", false, "rename although processes of the federation run")
	c.RunE = func(c *cobra.Command, args []string) error {
		from, to := args[0], args[1]
		if err := statestore.CheckName("name of a federation", to); err != nil {
			return usage(err)
		}
		f.defines = append(f.defines, "creel.federation.name=") // the configuration may have either name
		return f.with(c.Context(), func(ctx context.Context, store statestore.Store) error {
			r := statestore.Rename{From: from, To: to, AcceptRunning: accept}
			if u, err := user.Current(); err == nil {
				r.Author = u.Username
			}
			if err := statestore.RenameFederation(ctx, store, r); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "the federation is %s; set creel.federation.name=%s in all its processes\n", to, to)
			return nil
		})
	}
	return c
}

// storeFlags are the flags of commands that access the state store itself. Access to the store implies permission for
// these commands.
type storeFlags struct {
	confFlags
	printer printer
}

func (f *storeFlags) register(c *cobra.Command) {
	f.confFlags.register(c)
	f.setting(c.Flags(), "store", "creel.store.url", "state store `URL`")
	c.Flags().StringVarP(&f.printer.format, "output", "o", "table", outputUsage)
}

// with opens the store for one command.
func (f *storeFlags) with(ctx context.Context, do func(ctx context.Context, store statestore.Store) error) error {
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
