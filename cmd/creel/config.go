// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	daemonrole "github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/spf13/cobra"
)

// confFlags are the sources of settings for every daemon and tool.
type confFlags struct {
	dir     string
	defines []string
	flags   []settings.Flag
}

func (f *confFlags) register(c *cobra.Command) {
	c.Flags().
		StringVar(&f.dir, "conf", os.Getenv("HADOOP_CONF_DIR"), "Hadoop configuration `DIR` (default $HADOOP_CONF_DIR)")
	c.Flags().StringArrayVarP(&f.defines, "define", "D", nil, "set `KEY=VALUE`, over the files; may be repeated")
}

// load reads all sources and reports all errors at once, as a usage error.
func (f *confFlags) load() (*settings.Settings, error) {
	for _, d := range f.defines {
		if key, _, ok := strings.Cut(d, "="); !ok || strings.TrimSpace(key) == "" {
			return nil, usage(fmt.Errorf("-D %q: expected KEY=VALUE", d))
		}
	}
	s, err := settings.Load(settings.Sources{ConfDir: f.dir, Defines: f.defines, Flags: f.flags})
	if err != nil {
		return nil, usage(err)
	}
	return s, nil
}

func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "print, check and explain settings", GroupID: "daily", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(configPrint(), configExplain(), configCheck())
	return c
}

func configPrint() *cobra.Command {
	var f confFlags
	var effective, origin bool
	c := &cobra.Command{Use: "print", Short: "print the settings in force", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := f.load()
			if err != nil {
				return err
			}
			return s.Print(c.OutOrStdout(), effective, origin)
		}}
	f.register(c)
	c.Flags().BoolVar(&effective, "effective", false, "include settings left at their default")
	c.Flags().BoolVar(&origin, "origin", false, "show the origin of each value")
	return c
}

func configExplain() *cobra.Command {
	var f confFlags
	c := &cobra.Command{
		Use:   "explain KEY",
		Short: "show a setting's meaning, default and value",
		Args:  exactly(1, "one KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.load()
			if err != nil {
				return err
			}
			if err := s.Explain(c.OutOrStdout(), args[0]); err != nil {
				return &exitError{exitNotFound, err}
			}
			return nil
		},
	}
	f.register(c)
	return c
}

func configCheck() *cobra.Command {
	var f confFlags
	var role string
	var strict bool
	c := &cobra.Command{
		Use:   "check",
		Short: "check a configuration directory and list the settings in force",
		Long: `Reads the settings and lists which are in force, without effect, not yet in force
or unknown. --strict fails for a misspelt name. With --role it also reads every file that this daemon would read at
its start (queue files, lists of hosts, policies, secrets), and reports the error
that would stop the daemon.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := f.load()
			if err != nil {
				return err
			}
			report := s.Check()
			if _, err = report.WriteTo(c.OutOrStdout()); err != nil {
				return err
			}
			if strict && len(report.Misspelt) > 0 {
				return usage(errors.New(strings.Join(report.Misspelt, "\n")))
			}
			if role == "" {
				return nil
			}
			if overStores(settings.Role(role)) {
				if err := requireStore(s); err != nil {
					return err
				}
			}
			if err := daemonrole.Check(s, settings.Role(role)); err != nil {
				return err
			}
			for _, w := range daemonrole.Warnings(s, settings.Role(role)) {
				fmt.Fprintln(c.OutOrStdout(), "warning:", w)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s would start\n", role)
			return err
		},
	}
	f.register(c)
	c.Flags().BoolVar(&strict, "strict", false, "fail if a key is misspelt: unknown, but nearly the name of a known one")
	c.Flags().StringVar(&role, "role", "", "also read the files of this `DAEMON`: rm, nm, router, proxy, rebalancer or agent")
	for key, name := range map[string]string{
		"creel.rm.data": "data", "creel.subcluster.id": "subcluster",
		"creel.store.url": "store", "creel.nm.simulate": "simulate",
	} {
		f.setting(c.Flags(), name, key, "as given to the daemon")
	}
	return c
}
