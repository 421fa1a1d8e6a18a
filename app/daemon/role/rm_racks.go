// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/settings"
)

const defaultRack = "/default-rack"

// racks returns the look-up of a host's rack: from the configured table, else from the script. It returns nil without
// both: every host is in the default rack.
func racks(s *settings.Settings) (func(host string) string, error) {
	class := s.String("net.topology.node.switch.mapping.impl")
	script, table := s.String("net.topology.script.file.name"), s.String("net.topology.table.file.name")
	switch {
	case strings.HasSuffix(class, ".TableMapping") || strings.HasSuffix(class, ".ScriptBasedMapping"):
	default:
		slog.Warn("creel finds racks only by script or table", "net.topology.node.switch.mapping.impl", class)
	}
	switch {
	case table != "":
		find, err := rackTable(table)
		if err != nil {
			return nil, s.Problem(
				"net.topology.table.file.name",
				err.Error(),
				"give a file of two columns, host and rack",
			)
		}
		return find, nil
	case script != "" && !strings.HasSuffix(class, ".TableMapping"):
		if f, err := os.Stat(script); err != nil || f.IsDir() || f.Mode()&0o111 == 0 {
			return nil, s.Problem("net.topology.script.file.name", "it is not an executable program",
				"name a program that prints the rack of each host in its arguments")
		}
		return (&rackScript{program: script, found: map[string]string{}}).rack, nil
	}
	return nil, nil
}

// rackTable parses "host rack" lines.
func rackTable(path string) (func(host string) string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New(fileReason(err))
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
			return nil, fmt.Errorf("line %d is not a host and its rack", n)
		}
	}
	return func(host string) string {
		if r, ok := racks[host]; ok {
			return r
		}
		return defaultRack
	}, lines.Err()
}

// rackScript runs a program for racks, once for each host.
type rackScript struct {
	program string

	mu    sync.Mutex
	found map[string]string
}

// scriptTime limits the program's run for one host; a registering node waits for it.
const scriptTime = 10 * time.Second

// rack runs the program with the host as its argument. If that fails, the host is in the default rack until the next
// look-up, as in Hadoop.
func (r *rackScript) rack(host string) string {
	r.mu.Lock()
	known, ok := r.found[host]
	r.mu.Unlock()
	if ok {
		return known
	}
	ctx, cancel := context.WithTimeout(context.Background(), scriptTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, r.program, host).Output()
	words := strings.Fields(string(out))
	if err == nil && len(words) != 1 {
		err = fmt.Errorf("it prints %d racks", len(words))
	}
	if err != nil {
		slog.Warn("rack script failed: using the default rack",
			"net.topology.script.file.name", r.program, "host", host, "error", err)
		return defaultRack
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[host] = words[0]
	return words[0]
}
