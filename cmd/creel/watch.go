// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const watchUsage = "list again every two seconds: redrawn on a terminal, only changes in a pipe"

// watchEvery is the time between two lists.
const watchEvery = 2 * time.Second

// repeat lists once, or with watch until the context ends. It redraws a terminal. Into a pipe it writes new lines and,
// after a "-", lines that have disappeared.
func repeat(c *cobra.Command, watch bool, list func(out io.Writer) error) error {
	out := c.OutOrStdout()
	if !watch {
		return list(out)
	}
	var last []string
	for first := true; ; first = false {
		var b bytes.Buffer
		if err := list(&b); err != nil {
			return err
		}
		if terminal(out) {
			fmt.Fprintf(out, "\x1b[H\x1b[2J%s", b.Bytes())
		} else {
			now := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
			printChanges(out, last, now, first)
			last = now
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// printChanges compares lists by their words, so a wider column is not a change.
func printChanges(out io.Writer, last, now []string, first bool) {
	words := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	minus := func(a, b []string, prefix string) {
		there := map[string]bool{}
		for _, line := range b {
			there[words(line)] = true
		}
		for _, line := range a {
			if !there[words(line)] {
				fmt.Fprintln(out, prefix+line)
			}
		}
	}
	if !first {
		minus(last, now, "- ")
	}
	minus(now, last, "")
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
