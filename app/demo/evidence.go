// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// mostLog limits the log of a demo, in bytes.
const mostLog = 64 << 20

// cappedWriter is a file that accepts a limited number of bytes and drops the rest.
type cappedWriter struct {
	mu   sync.Mutex
	f    *os.File
	left int
}

func openLog(dir string) (*cappedWriter, error) {
	f, err := os.Create(filepath.Join(dir, "daemons.log"))
	if err != nil {
		return nil, fmt.Errorf("the log of the demo's daemons: %w", err)
	}
	return &cappedWriter{f: f, left: mostLog}, nil
}

// Write writes whole lines while there is space.
func (c *cappedWriter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < len(p) {
		if c.left > 0 {
			fmt.Fprintf(c.f, "the log is cut here, at %d bytes\n", mostLog-c.left)
			c.left = 0
		}
		return len(p), nil
	}
	c.left -= len(p)
	return c.f.Write(p)
}

func (c *cappedWriter) close() { c.f.Close() }

// keepEvidence stores data for the diagnosis of a bad verdict in dir, next to the ResourceManagers' journals and the
// daemons' log. It prints the path and the command that repeats the run.
func keepEvidence(c *Config, dir string, s *Summary, said []string) error {
	err := WriteFile(filepath.Join(dir, "summary.json"), s)
	list := func(name string, lines []string) {
		text := strings.Join(append(lines, ""), "\n")
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	list("broken.txt", said)
	list("repeat.txt", []string{c.Repeat})
	if err != nil {
		return fmt.Errorf("the evidence of a bad verdict: %w", err)
	}
	_, err = fmt.Fprintf(c.Out, "evidence: %s: the violations, the metrics, the daemons' log, the ResourceManagers' journals\nrepeat:   %s\n",
		dir, c.Repeat)
	return err
}

// lineRecorder is a writer that also stores the first lines it forwards.
type lineRecorder struct {
	io.Writer
	mu    sync.Mutex
	lines []string
}

const mostRemembered = 1000

func (r *lineRecorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	for line := range strings.Lines(string(p)) {
		if len(r.lines) < mostRemembered {
			r.lines = append(r.lines, strings.TrimSuffix(line, "\n"))
		}
	}
	r.mu.Unlock()
	return r.Writer.Write(p)
}
