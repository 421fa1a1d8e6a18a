// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// referenceCommand writes the command line's reference: man pages for a package, and Markdown for docs/reference/cli.
func referenceCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "reference DIR", Short: "write the reference of the command line", Hidden: true,
		Args: exactly(1, "one directory"),
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := os.Unsetenv("HADOOP_CONF_DIR"); err != nil { // it would appear as the default of --conf
			return err
		}
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		switch format {
		case "man":
			built := time.Unix(0, 0)
			head := &doc.GenManHeader{Section: "1", Source: "creel", Manual: "creel", Date: &built}
			return doc.GenManTree(plainTree(), head, args[0])
		case "markdown":
			pages, err := referencePages()
			if err != nil {
				return err
			}
			for name, page := range pages {
				err = errors.Join(err, os.WriteFile(filepath.Join(args[0], name), page, 0o644))
			}
			return err
		}
		return usage(fmt.Errorf("--format %s: man or markdown", format))
	}
	c.Flags().StringVar(&format, "format", "markdown", "`FORMAT`: man or markdown")
	return c
}

// plainTree returns the command line without text that depends on the build.
func plainTree() *cobra.Command {
	root := rootCommand()
	root.DisableAutoGenTag = true
	root.Version = ""
	return root
}

// referencePages returns the Markdown pages by file name: README.md, and one for each top-level command with all
// commands below it.
func referencePages() (map[string][]byte, error) {
	root := plainTree()
	pages := map[string][]byte{}
	// Links go to the page of the top-level command, at the command's heading.
	link := func(name string) string {
		words := strings.Split(strings.TrimSuffix(name, ".md"), "_")
		if len(words) == 1 {
			return "README.md"
		}
		return words[1] + ".md#" + strings.Join(words, "-")
	}
	page := func(c *cobra.Command) ([]byte, error) {
		var b bytes.Buffer
		var write func(c *cobra.Command) error
		write = func(c *cobra.Command) error {
			c.DisableAutoGenTag = true
			if err := doc.GenMarkdownCustom(c, &b, link); err != nil {
				return err
			}
			for _, below := range c.Commands() {
				if below.Hidden || !below.IsAvailableCommand() {
					continue
				}
				if err := write(below); err != nil {
					return err
				}
			}
			return nil
		}
		err := write(c)
		return b.Bytes(), err
	}
	var list strings.Builder
	list.WriteString("# creel's command line\n\nMade by `creel reference docs/reference/cli` from the commands themselves.\n\n")
	for _, c := range root.Commands() {
		if c.Hidden || !c.IsAvailableCommand() {
			continue
		}
		b, err := page(c)
		if err != nil {
			return nil, err
		}
		pages[c.Name()+".md"] = b
		fmt.Fprintf(&list, "* [creel %s](%s.md): %s\n", c.Name(), c.Name(), c.Short)
	}
	list.WriteString("\n## Exit codes\n\nThe same for every command, for scripts; with `-o json` an error is a document on " +
		"standard error, with `exit_code`.\n\n| code | means |\n|---|---|\n")
	list.WriteString(exitText("| %d | %s |\n"))
	pages["README.md"] = []byte(list.String())
	return pages, nil
}
