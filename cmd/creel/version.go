// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/app/daemon/build"
)

func versionCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			b := build.Read()
			if output == "json" {
				return json.NewEncoder(c.OutOrStdout()).Encode(b)
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "creel %s (%s, %s/%s)\n", b.Version, b.Go, b.OS, b.Arch)
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	_ = c.RegisterFlagCompletionFunc("output", fixedWords("text", "json")) // the flag exists
	return c
}
