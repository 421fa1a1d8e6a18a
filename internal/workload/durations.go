// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Durations contains the sorted durations of recorded tasks per kind. A hash of a task's identity draws its duration.
type Durations struct {
	Maps, Reduces []time.Duration
}

// ReadAttempts reads the CSV of Rumen attempts (columns job_id, task_id, type, attempt, result, start_ms, finish_ms,
// duration_ms, ...). It stores the durations of successful maps and reduces. Negative ones, from skewed clocks, count
// as 0.
func ReadAttempts(r io.Reader) (*Durations, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), 1<<20)
	if !lines.Scan() {
		return nil, errors.Join(fmt.Errorf("the attempts file is empty"), lines.Err())
	}
	column := map[string]int{}
	for i, name := range strings.Split(lines.Text(), ",") {
		column[name] = i
	}
	for _, name := range []string{"type", "result", "duration_ms"} {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("the attempts file has no column %q in its first line", name)
		}
	}
	var d Durations
	for n := 2; lines.Scan(); n++ {
		f := strings.Split(lines.Text(), ",")
		if len(f) <= column["duration_ms"] || len(f) <= column["type"] || len(f) <= column["result"] {
			return nil, fmt.Errorf("attempts line %d has only %d columns", n, len(f))
		}
		text := f[column["duration_ms"]]
		if f[column["result"]] != "SUCCESS" || text == "" {
			continue
		}
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms > 366*86400*1000 {
			return nil, fmt.Errorf("attempts line %d: duration %q is no sensible number of milliseconds", n, text)
		}
		v := time.Duration(max(ms, 0)) * time.Millisecond
		switch f[column["type"]] {
		case "MAP":
			d.Maps = append(d.Maps, v)
		case "REDUCE":
			d.Reduces = append(d.Reduces, v)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(d.Maps) == 0 || len(d.Reduces) == 0 {
		return nil, fmt.Errorf(
			"the attempts file has %d successful maps and %d reduces; both are needed",
			len(d.Maps),
			len(d.Reduces),
		)
	}
	slices.Sort(d.Maps)
	slices.Sort(d.Reduces)
	return &d, nil
}

// Draw returns the duration of one task. It depends only on seed, job, kind and index, not on earlier draws.
func (d *Durations) Draw(seed uint64, job int, kind TaskKind, index int) time.Duration {
	from := d.Maps
	if kind == Reduce {
		from = d.Reduces
	}
	h := mix(seed, uint64(job), uint64(kind), uint64(index))
	return from[h%uint64(len(from))]
}

// mix is a chain of splitmix64 steps. This hash is good enough for drawing, and the same on every machine.
func mix(words ...uint64) uint64 {
	var h uint64
	for _, w := range words {
		h += w + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
