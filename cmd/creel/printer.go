// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v4"
)

// column is one column of a table. Wide columns appear only with -o wide.
type column[T any] struct {
	title string
	wide  bool
	text  func(T) string
}

// printer writes lists in the format that the user requested.
type printer struct {
	format string // table, wide, json, yaml, name
}

const outputUsage = "`FORMAT`: table, wide, json, yaml or name"

func (p printer) check() error {
	switch p.format {
	case "table", "wide", "json", "yaml", "name":
		return nil
	}
	return usage(fmt.Errorf("unknown output %q; use table, wide, json, yaml or name", p.format))
}

// printList writes items. The first column is the name.
func printList[T any](w io.Writer, p printer, items []T, columns []column[T]) error {
	switch p.format {
	case "json":
		if items == nil {
			items = []T{}
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(items)
	case "yaml":
		return writeYAML(w, items)
	case "name":
		for _, item := range items {
			if _, err := fmt.Fprintln(w, columns[0].text(item)); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	var shown []column[T]
	var titles []string
	for _, c := range columns {
		if !c.wide || p.format == "wide" {
			shown = append(shown, c)
			titles = append(titles, c.title)
		}
	}
	fmt.Fprintln(t, strings.Join(titles, "\t"))
	for _, item := range items {
		cells := make([]string, len(shown))
		for i, c := range shown {
			cells[i] = strings.ReplaceAll(c.text(item), "\t", " ")
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// printOne writes a single object. text writes its form for people.
func printOne(w io.Writer, p printer, item any, name string, text func(io.Writer) error) error {
	switch p.format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(item)
	case "yaml":
		return writeYAML(w, item)
	case "name":
		_, err := fmt.Fprintln(w, name)
		return err
	}
	return text(w)
}

// writeYAML writes the JSON form as YAML, so that both have the same keys.
func writeYAML(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var plain any
	if err := yaml.Unmarshal(b, &plain); err != nil {
		return err
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(plain); err != nil {
		return err
	}
	return e.Close()
}
