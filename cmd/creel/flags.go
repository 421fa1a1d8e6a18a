// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wantedOf describes a flag's value by its type; the library would use Go's type names.
var wantedOf = map[string]string{
	"duration": "a time, such as 90s or 2h",
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint64":   "a whole number from 0 up",
	"intSlice": "whole numbers, with commas between them",
	"float64":  "a number",
	"bool":     "true or false",
}

// flagError returns a command line's error as a usage error.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if wanted := wantedOf[invalid.GetFlag().Value.Type()]; wanted != "" {
			err = fmt.Errorf("--%s %q: expected %s", invalid.GetFlag().Name, invalid.GetValue(), wanted)
		}
	}
	return usage(err)
}

// belowZero annotates a flag that accepts negative numbers.
const belowZero = "below-zero"

// checkNumbers rejects a request timeout of 0, and negative times and numbers that the flag does not accept.
func checkNumbers(c *cobra.Command, _ []string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		kind, value := f.Value.Type(), f.Value.String()
		_, means := f.Annotations[belowZero]
		switch {
		case kind != "duration" && kind != "int" && kind != "int64", means:
		case strings.HasPrefix(value, "-"):
			err = usage(fmt.Errorf("--%s %s is below 0; expected %s", f.Name, value, wantedOf[kind]))
		case f.Name == "request-timeout" && value == "0s":
			err = usage(fmt.Errorf("--%s must be above 0", f.Name))
		}
	})
	return err
}

func daily(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:     use,
		Short:   short,
		GroupID: "daily",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(children...)
	return c
}

// noArguments rejects extra words with the exit code of a usage error.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	see := fmt.Sprintf("see %s --help", c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		see = "did you mean " + strings.Join(like, " or ") + "? " + see
	}
	return usage(fmt.Errorf("%q is not a command of %q; %s", args[0], c.CommandPath(), see))
}

// between requires least to most arguments, described by words. Otherwise the exit code is that of a usage error.
func between(least, most int, words string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage(fmt.Errorf("%s takes %s; it got %d arguments", c.CommandPath(), words, len(args)))
		}
		return nil
	}
}

// exactly requires n arguments. Otherwise the exit code is that of a usage error.
func exactly(n int, names string) cobra.PositionalArgs { return between(n, n, names) }
