// SPDX-License-Identifier: Apache-2.0

// Shape measures how far each package is from parts that a reader understands one at a time:
//
//   - methods: the type, or the interface, with the most methods;
//   - fields: the struct with the most fields;
//   - longest: the longest function, and the length that 99 of 100 do not exceed;
//   - up: of the pairs of files of which one uses the other, those against the order of the files with the fewest.
//     In a package that is read from top to bottom there are none;
//   - caches: types with that name.
//
// With -walk it follows one parameter through the calls that pass it, or a part of it, on. Each such call is a stay. A
// stay in a file that the walk had left is a return. Each function is followed once, in the order of its text, with
// all its branches. Results of calls are not followed, nor are numbers, texts, and calls of interfaces.
//
// With -check it compares the figures with the limits of a file, where each may only fall. See limits.go.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	file := flag.String("check", "", "file with the limits; without it, print the figures of all packages")
	start := flag.String("walk", "", "function and parameter to follow, as in (*example.com/m/p.T).Run:r")
	flag.Parse()
	do := func() error { return run(*file, flag.Args(), os.Stdout) }
	if *start != "" {
		do = func() error { return runWalk(*start, flag.Args(), os.Stdout) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string, patterns []string, out io.Writer) error {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	list, err := load(patterns)
	if err != nil {
		return err
	}
	var all []*shape
	for _, s := range list {
		all = append(all, measure(s))
	}
	if file == "" {
		return table(all, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	limits, err := parseLimits(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	above, notes := compare(all, limits)
	for _, line := range notes {
		fmt.Fprintln(out, line+": write that into "+file)
	}
	if len(above) > 0 {
		return fmt.Errorf("%s: divide the type, the function or the package:\n%s", file, strings.Join(above, "\n"))
	}
	return nil
}

// runWalk prints a walk through packages.
func runWalk(start string, patterns []string, out io.Writer) error {
	list, err := load(patterns)
	if err != nil {
		return err
	}
	w := newWalk(list)
	if err := w.from(start); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d stays, %d files, %d returns\n", w.stays, len(w.rooms), w.returns)
	return err
}

// table prints the packages, the largest first.
func table(all []*shape, out io.Writer) error {
	slices.SortStableFunc(all, func(a, b *shape) int { return cmp.Compare(b.lines, a.lines) })
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\tfiles\tlines\tmethods\tfields\tlongest\tp99\tup\tcaches")
	for _, m := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%d\t%d of %d\t%s\n", m.path, m.files, m.lines, m.methods, m.fields,
			m.longest, m.p99, m.up, m.arrows, strings.Join(m.caches, " "))
	}
	return w.Flush()
}

func (n named) String() string {
	if n.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %s", n.n, n.name)
}
