// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Counts counts applications by state, and sums their resources.
type Counts struct {
	Running    int64 `json:"running"`
	Waiting    int64 `json:"waiting"`
	Ended      int64 `json:"ended"`
	Containers int64 `json:"containers"`
	MemoryMB   int64 `json:"memory_mb"`
	// OldestWait is the age of the oldest wait in seconds, omitted if none waits or if members do not report it.
	OldestWait float64 `json:"oldest_wait_s,omitempty"`
}

func (c *Counts) add(a *Row, seen bool, now time.Time) {
	switch a.rank {
	case running:
		c.Running++
	case waiting:
		c.Waiting++
		c.OldestWait = max(c.OldestWait, a.waitsFor(now))
	default:
		c.Ended++
	}
	if seen && a.at.IsZero() { // sums of used resources do not include stale rows
		c.Containers += a.Containers
		c.MemoryMB += a.MemoryMB
	}
}

// CountsBy counts applications by a key.
type CountsBy[K comparable] map[K]*Counts

// Add counts an application under a key.
func (m CountsBy[K]) Add(key K, a *Row, now time.Time) {
	if m[key] == nil {
		m[key] = &Counts{}
	}
	m[key].add(a, true, now)
}

// Of returns the counts of a key, which are zero without an application.
func (m CountsBy[K]) Of(key K) Counts {
	if c := m[key]; c != nil {
		return *c
	}
	return Counts{}
}

// Count counts all applications.
func (v *View) Count(now time.Time) *Counts {
	c := &Counts{}
	for _, a := range v.Rows {
		c.add(a, true, now)
	}
	return c
}

// WaitGroup counts applications of one queue that wait for the same reason.
type WaitGroup struct {
	Applications int64  `json:"apps"`
	Queue        string `json:"queue"`
	Code         string `json:"code"`           // as in /api/v1/apps/ID/why; "" if home reports none
	In           string `json:"in,omitempty"`   // the queue with the limit
	Text         string `json:"text,omitempty"` // text of one application if there is no code (diagnostics)
	Example      string `json:"example"`        // an application that the viewer may see, "" if there is none
	// OldestWait is the age of the oldest wait in seconds; omitted if the members do not report it.
	OldestWait float64 `json:"oldest_wait_s,omitempty"`
}

// digits are the parts in which texts for the same reason differ.
var digits = regexp.MustCompile(`[0-9]+`)

// Waits counts the reasons why applications wait, the most frequent first, at most most.
func (v *View) Waits(most int, now time.Time) []WaitGroup {
	type reason struct{ queue, code, in, text string }
	by := map[reason]*WaitGroup{}
	for _, a := range v.Rows {
		if a.rank != waiting {
			continue
		}
		key := reason{a.Queue, a.Waits, a.WaitsIn, digits.ReplaceAllString(a.WaitsText, "#")}
		if by[key] == nil {
			by[key] = &WaitGroup{Queue: a.Queue, Code: a.Waits, In: a.WaitsIn, Text: a.WaitsText}
		}
		by[key].Applications++
		by[key].OldestWait = max(by[key].OldestWait, a.waitsFor(now))
		if by[key].Example == "" && v.viewer.lists(a) {
			by[key].Example = a.ID
		}
	}
	out := []WaitGroup{}
	for _, g := range by {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b WaitGroup) int {
		return cmp.Or(cmp.Compare(b.Applications, a.Applications), strings.Compare(a.Example, b.Example))
	})
	return out[:min(len(out), most)]
}
