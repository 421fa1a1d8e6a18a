// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/creelrm/creel/subcluster/rm/journal"
	"github.com/spf13/cobra"
)

// repairCommand salvages a journal that a ResourceManager rejected at its start.
func repairCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{Use: "repair", Short: "salvage a damaged journal", Args: noArguments,
		Long: `Rebuilds the journal of a stopped ResourceManager from every readable block. The
damaged files stay beside the new ones with ".damaged" appended to their names;
losses are listed. A journal without damage is not changed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				return usage(errors.New("missing --data DIR, the journal's directory"))
			}
			if _, err := os.Stat(dir); err != nil {
				return usage(fmt.Errorf("--data: %w", err))
			}
			s, err := journal.Repair(dir)
			if err != nil {
				return err
			}
			for _, d := range s.Damage {
				fmt.Fprintf(
					c.OutOrStdout(),
					"%s: %d bytes at byte %d are lost: %s\n",
					d.Segment,
					d.Bytes,
					d.At,
					d.Reason,
				)
			}
			fmt.Fprintf(
				c.OutOrStdout(),
				"%d entries of %d blocks kept, %d damaged places\n",
				s.Entries,
				s.Blocks,
				len(s.Damage),
			)
			return nil
		}}
	c.Flags().StringVar(&dir, "data", "", "the journal's `DIR`, as given to creel rm")
	return c
}
