// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/app/daemon/role"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/rebuild"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

func storeCommand() *cobra.Command {
	return daily("store", "look after the state store", storeRebuild())
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
