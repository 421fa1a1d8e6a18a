// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wantedOf says what a flag of a type takes, where the library says it in Go's words.
var wantedOf = map[string]string{
	"duration": "a time, such as 90s or 2h",
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint64":   "a whole number from 0 up",
	"intSlice": "whole numbers, with commas between them",
	"float64":  "a number",
	"bool":     "true or false",
}

// flagError is what is wrong with a command line, as a usage error.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if wanted := wantedOf[invalid.GetFlag().Value.Type()]; wanted != "" {
			err = fmt.Errorf("--%s %q: expected %s", invalid.GetFlag().Name, invalid.GetValue(), wanted)
		}
	}
	return usage(err)
}

// checkTimes refuses times that no flag means anything by.
func checkTimes(c *cobra.Command, _ []string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		d, parseErr := time.ParseDuration(f.Value.String())
		switch {
		case f.Value.Type() != "duration" || parseErr != nil:
		case d < 0:
			err = usage(fmt.Errorf("--%s %v is below 0; give a time, such as 90s or 2h", f.Name, d))
		case d == 0 && f.Name == "request-timeout":
			err = usage(fmt.Errorf("--%s must be above 0: no request is answered in no time", f.Name))
		}
	})
	return err
}
