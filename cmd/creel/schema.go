// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"
)

// schemaCommand prints the JSON Schema of a document.
func schemaCommand(short, schema string) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: short, Args: noArguments,
		Long: short + `.

Routers serve it too, below /api/v1/schemas/.`,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), schema)
			return err
		},
	}
}
