// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// hostFile reads host names, any number on a line, # begins a comment. An
// empty path is an empty list; a file that is not there is an error.
func hostFile(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("host list: %w", err)
	}
	defer f.Close()
	var hosts []string
	lines := bufio.NewScanner(io.LimitReader(f, 64<<20))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		hosts = append(hosts, strings.Fields(line)...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), lines.Err()
}

// rackTable reads "host rack" lines; without a file every host is in the
// default rack.
func rackTable(path string) (func(host string) string, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("net.topology.table.file.name: %w", err)
	}
	defer f.Close()
	racks := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(f, 64<<20))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		switch words := strings.Fields(line); {
		case len(words) == 2:
			racks[words[0]] = words[1]
		case len(words) != 0:
			return nil, fmt.Errorf("%s:%d: expected a host and its rack", path, n)
		}
	}
	return func(host string) string {
		if r, ok := racks[host]; ok {
			return r
		}
		return "/default-rack"
	}, errors.Join(lines.Err())
}
