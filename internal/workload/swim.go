// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// TraceRecord is one line of a SWIM trace: the time of a job's submission, and the bytes that it moved.
type TraceRecord struct {
	Name                   string
	Submit                 time.Duration // since the start of the day
	Input, Shuffle, Output int64         // bytes
}

const (
	maxLine    = 4 << 10
	maxRecords = 5_000_000
)

// ReadSWIM reads SWIM's tab-separated lines: name, submission in seconds, gap to the previous line, map input, shuffle
// and output bytes. Errors name the line. A trace whose times decrease is rejected.
func ReadSWIM(r io.Reader) ([]TraceRecord, error) {
	var out []TraceRecord
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) < 6 {
			return nil, fmt.Errorf(
				"trace line %d has %d columns; SWIM has 6, tab separated: name, submit s, gap s, input, shuffle and output bytes",
				n,
				len(f),
			)
		}
		var v [5]int64
		for i := range v {
			x, err := strconv.ParseInt(f[i+1], 10, 64)
			if err != nil || x < 0 {
				return nil, fmt.Errorf("trace line %d, column %d: %q is no whole number of at least 0", n, i+2, f[i+1])
			}
			v[i] = x
		}
		if v[0] > 100*365*86400 {
			return nil, fmt.Errorf("trace line %d: submission at %d s is later than a century", n, v[0])
		}
		rec := TraceRecord{
			Name: f[0], Submit: time.Duration(v[0]) * time.Second, Input: v[2], Shuffle: v[3], Output: v[4],
		}
		if len(out) > 0 && rec.Submit < out[len(out)-1].Submit {
			return nil, fmt.Errorf(
				"trace line %d: submission at %d s is before the line above; sort the trace by its second column",
				n,
				v[0],
			)
		}
		if len(out) == maxRecords {
			return nil, fmt.Errorf("the trace has more than %d lines; cut it", maxRecords)
		}
		out = append(out, rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace line %d: %w", n+1, err)
	}
	return out, nil
}
