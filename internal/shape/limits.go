// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// usual are the limits of a package without a line of its own.
var usual = map[string]int{"methods": 60, "fields": 40, "longest": 100, "up": 40}

// figures are the measures with a limit, in the order of reports.
var figures = []string{"methods", "fields", "longest", "up"}

func (m *shape) figure(name string) named {
	switch name {
	case "methods":
		return m.methods
	case "fields":
		return m.fields
	case "longest":
		return m.longest
	}
	return named{m.up, "uses against the order of files"}
}

// limit identifies a figure of a package.
type limit struct{ path, figure string }

// parseLimits reads lines of package, figure and number. A comment begins with #.
func parseLimits(text string) (map[limit]int, error) {
	out := map[limit]int{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 3 {
			return nil, fmt.Errorf("line %d: want package, figure and number", i+1)
		}
		n, err := strconv.Atoi(f[2])
		switch {
		case usual[f[1]] == 0:
			return nil, fmt.Errorf("line %d: unknown figure %s", i+1, f[1])
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		case n <= usual[f[1]]:
			return nil, fmt.Errorf("line %d: every package may have %d", i+1, usual[f[1]])
		}
		out[limit{f[0], f[1]}] = n
	}
	return out, nil
}

// compare returns the figures above their limits, and notes about limits that can fall.
func compare(all []*shape, limits map[limit]int) (above, notes []string) {
	for _, m := range all {
		for _, figure := range figures {
			most, has := limits[limit{m.path, figure}]
			if !has {
				most = usual[figure]
			}
			switch is := m.figure(figure); {
			case is.n > most:
				above = append(above, fmt.Sprintf("%s %s %d, at most %d: %s", m.path, figure, is.n, most, is.name))
			case has && is.n <= usual[figure]:
				notes = append(notes, fmt.Sprintf("%s %s needs no limit any more", m.path, figure))
			case has && is.n < most:
				notes = append(notes, fmt.Sprintf("%s %s %d, not %d", m.path, figure, is.n, most))
			}
		}
	}
	return above, notes
}
