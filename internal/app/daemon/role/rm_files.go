// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bufio"
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
		return nil, fmt.Errorf("host list %s: %s", path, fileReason(err))
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
