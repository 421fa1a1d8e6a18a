// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/creelrm/creel/internal/strictyaml"
)

// savedContext names a server and the user to act as on it.
type savedContext struct {
	Server string `yaml:"server" json:"server"`
	User   string `yaml:"user,omitempty" json:"user,omitempty"`
}

// contextDoc is a context in lists.
type contextDoc struct {
	Name string `json:"name"`
	savedContext
	Current bool `json:"current"`
}

// contextsFile is the file of all contexts: $CREEL_CONTEXTS, or creel/contexts.yaml in the user's configuration
// directory.
type contextsFile struct {
	Current  string                  `yaml:"current,omitempty" json:"current"`
	Contexts map[string]savedContext `yaml:"contexts" json:"contexts"`
}

func contextsPath() (string, error) {
	if at := os.Getenv("CREEL_CONTEXTS"); at != "" {
		return at, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", nil // a daemon's account may have no such directory
	}
	return filepath.Join(dir, "creel", "contexts.yaml"), nil
}

// readContexts reads the file. A missing file has no contexts.
func readContexts() (contextsFile, string, error) {
	var f contextsFile
	at, err := contextsPath()
	if err != nil || at == "" {
		return f, at, err
	}
	b, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return f, at, nil
	}
	if err == nil {
		b, err = strictyaml.JSON(b, reflect.TypeFor[contextsFile]())
	}
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		return f, at, usage(fmt.Errorf("the contexts in %s cannot be read: %w", at, err))
	}
	return f, at, nil
}

// currentContext returns the context with a name, by default $CREEL_CONTEXT or the current context. It returns an empty
// one if there is none.
func currentContext(name string) (savedContext, error) {
	f, at, err := readContexts()
	if err != nil {
		return savedContext{}, err
	}
	name = cmp.Or(name, os.Getenv("CREEL_CONTEXT"))
	found, ok := f.Contexts[cmp.Or(name, f.Current)]
	if !ok && name != "" {
		return found, &exitError{
			exitNotFound, fmt.Errorf("there is no context %q in %s; see creel context list", name, at),
		}
	}
	return found, nil
}

func (f contextsFile) write(at string) error {
	b, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if at == "" {
		return usage(errors.New("you have no configuration directory: name a file in $CREEL_CONTEXTS"))
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return replaceFile(at, b, 0o600)
}

// replaceFile replaces a file atomically.
func replaceFile(at string, b []byte, mode os.FileMode) error {
	part := at + ".new"
	if err := os.WriteFile(part, b, mode); err != nil {
		return err
	}
	return os.Rename(part, at)
}

func contextCommand() *cobra.Command {
	set := func(f *contextsFile, d contextDoc) error {
		if d.Server == "" {
			return usage(errors.New("missing --server URL, the router's address"))
		}
		if f.Contexts == nil {
			f.Contexts = map[string]savedContext{}
		}
		f.Contexts[d.Name] = d.savedContext
		f.Current = cmp.Or(f.Current, d.Name)
		return nil
	}
	use := func(f *contextsFile, d contextDoc) error {
		f.Current = d.Name
		return f.has(d.Name)
	}
	remove := func(f *contextsFile, d contextDoc) error {
		if err := f.has(d.Name); err != nil {
			return err
		}
		delete(f.Contexts, d.Name)
		if f.Current == d.Name {
			f.Current = ""
		}
		return nil
	}
	return daily("context", "name the federations you speak to",
		contextList(),
		contextChange("set NAME", "write a context: --server, --user", set),
		contextChange("use NAME", "make a context the current one", use),
		contextChange("remove NAME", "remove a context", remove),
	)
}

func (f *contextsFile) has(name string) error {
	if _, ok := f.Contexts[name]; !ok {
		return &exitError{exitNotFound, fmt.Errorf("there is no context %q; see creel context list", name)}
	}
	return nil
}

func contextList() *cobra.Command {
	var p printer
	c := &cobra.Command{Use: "list", Short: "list the contexts", Args: noArguments}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := p.check(); err != nil {
			return err
		}
		f, _, err := readContexts()
		if err != nil {
			return err
		}
		var list []contextDoc
		for name, saved := range f.Contexts {
			list = append(list, contextDoc{name, saved, name == f.Current})
		}
		slices.SortFunc(list, func(a, b contextDoc) int { return cmp.Compare(a.Name, b.Name) })
		return printList(c.OutOrStdout(), p, list, []column[contextDoc]{
			{"NAME", false, func(d contextDoc) string { return d.Name }},
			{"CURRENT", false, func(d contextDoc) string { return map[bool]string{true: "*"}[d.Current] }},
			{"SERVER", false, func(d contextDoc) string { return d.Server }},
			{"USER", false, func(d contextDoc) string { return d.User }},
		})
	}
	c.Flags().StringVarP(&p.format, "output", "o", "table", outputUsage)
	return c
}

// contextChange returns a command that changes the file.
func contextChange(use, short string, change func(*contextsFile, contextDoc) error) *cobra.Command {
	var d contextDoc
	c := &cobra.Command{Use: use, Short: short, Args: exactly(1, "the name of a context")}
	c.RunE = func(c *cobra.Command, args []string) error {
		d.Name = args[0]
		f, at, err := readContexts()
		if err != nil {
			return err
		}
		if err := change(&f, d); err != nil {
			return err
		}
		if err := f.write(at); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "context %s: %s\n", d.Name, strings.Fields(use)[0])
		return err
	}
	if strings.HasPrefix(use, "set") {
		c.Flags().StringVar(&d.Server, "server", "", "web `URL` of its router")
		c.Flags().StringVar(&d.User, "user", "", "act as `NAME` there")
	}
	return c
}
