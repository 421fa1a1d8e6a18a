// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Property is one key of a Hadoop configuration with the place it was written.
type Property struct {
	Name, Value string
	File        string
	Line        int // 1-based; 0 when the value came from no file
}

// ConfigOptions is what a queue file means in the context of a cluster.
type ConfigOptions struct {
	MaxAllocation      creel.Resource // largest container of the cluster
	ResourceTypes      []ResourceType // beyond memory-mb and vcores
	MaxClusterPriority int32

	// MappingRules is the content of the file that
	// yarn.scheduler.capacity.mapping-rule-json-file names; the caller reads it.
	MappingRules []byte
	// Fair holds yarn.scheduler.fair.*.
	Fair FairOptions
}

// FairOptions are the settings of the FairScheduler outside its allocation file.
type FairOptions struct {
	UserAsDefaultQueue    bool    // [true]
	AllowUndeclaredPools  bool    // [true]
	SizeBasedWeight       bool    // kept and reported
	NodeLocalityThreshold float64 // [-1]
	RackLocalityThreshold float64 // [-1]
}

// QueueConfig is what a queue file says.
type QueueConfig struct {
	Queues    Queues
	Placement Placement // nil: the queue named in the submission
	// Notes tell what the file says that has no effect here (yet), in the
	// order of the file. They are for a log and `creel config check`.
	Notes []ConfigNote
}

// ConfigNote is a remark about one line of a queue file.
type ConfigNote struct {
	File string
	Line int
	Text string
}

func (n ConfigNote) String() string { return confPlace(n.File, n.Line) + n.Text }

// ConfigError is one thing wrong in a queue file. Readers report all of them,
// joined; errors.As finds the first. It is a creel.ErrInvalidRequest.
type ConfigError struct {
	File string
	Line int
	Text string
}

func (e *ConfigError) Error() string { return confPlace(e.File, e.Line) + e.Text }

// Unwrap makes errors.Is(err, creel.ErrInvalidRequest) hold.
func (e *ConfigError) Unwrap() error { return creel.ErrInvalidRequest }

func confPlace(file string, line int) string {
	switch {
	case file == "" && line == 0:
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

// Bounds on what a queue file may describe.
const (
	maxConfigQueues = 100_000
	maxConfigDepth  = 32
	maxConfigErrors = 100
)

// report gathers what a reader finds wrong or remarkable.
type confReport struct {
	errs  []*ConfigError
	notes []ConfigNote
}

func (r *confReport) fail(file string, line int, format string, a ...any) {
	r.errs = append(r.errs, &ConfigError{File: file, Line: line, Text: fmt.Sprintf(format, a...)})
}

func (r *confReport) note(file string, line int, format string, a ...any) {
	r.notes = append(r.notes, ConfigNote{File: file, Line: line, Text: fmt.Sprintf(format, a...)})
}

// err joins everything found, in the order of the lines.
func (r *confReport) err() error {
	slices.SortStableFunc(r.errs, func(a, b *ConfigError) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	var all []error
	for i, e := range r.errs {
		if i == maxConfigErrors {
			all = append(all, fmt.Errorf("and %d more", len(r.errs)-i))
			break
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

func (r *confReport) sortedNotes() []ConfigNote {
	slices.SortStableFunc(r.notes, func(a, b ConfigNote) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return r.notes
}
