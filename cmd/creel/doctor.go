// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	daemonrole "github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/spf13/cobra"
)

func doctorCommand() *cobra.Command {
	var f confFlags
	var role string
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "try the logins and calls that a daemon would make",
		GroupID: "daily",
		Long: `Reads the configuration of a daemon, and does what the daemon would do at its start
and in its first calls: it reads its files, logs in at the KDC by its keytab, reads the
state store, and calls its peers. A router's are the members, which it calls in the name of
another user, by RPC and REST; a proxy calls the members, an agent its ResourceManager. It
serves nothing, and claims nothing. Each line is a check; the exit code is 1 if one fails.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(settings.Roles, settings.Role(role)) {
				roles := strings.Trim(fmt.Sprint(settings.Roles), "[]")
				return usage(fmt.Errorf("--role %q: the roles are %s", role, roles))
			}
			s, err := f.load()
			if err != nil {
				return err
			}
			if overStores(settings.Role(role)) {
				if err := requireStore(s); err != nil {
					return err
				}
			}
			failed := 0
			for _, found := range daemonrole.Examine(c.Context(), s, settings.Role(role)) {
				word := "ok"
				if found.Failed {
					word = "FAILED"
					failed++
				} else if found.Try != "" {
					word = "warning"
				}
				fmt.Fprintf(c.OutOrStdout(), "%-8s %s: %s\n", word, found.Subject, found.Text)
				if found.Try != "" {
					fmt.Fprintf(c.OutOrStdout(), "%-8s %s\n", "", "try: "+found.Try)
				}
			}
			if failed > 0 {
				return &exitError{exitGeneral, errSilent}
			}
			return nil
		},
	}
	f.register(c)
	c.Flags().StringVar(&role, "role", "", "act as this `DAEMON`: rm, nm, router, proxy, rebalancer or agent")
	for key, name := range map[string]string{
		"creel.rm.data": "data", "creel.subcluster.id": "subcluster", "creel.store.url": "store",
	} {
		f.setting(c.Flags(), name, key, "as given to the daemon")
	}
	return c
}
