// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Property is one key of a Hadoop configuration with its position in a file.
type Property struct {
	Name, Value string
	File        string
	Line        int // from 1; 0 for a value without a file
}

// Options are settings of the cluster that affect a queue file.
type Options struct {
	MaxAllocation      creel.Resource       // largest container of the cluster
	ResourceTypes      []creel.ResourceType // beyond memory-mb and vcores
	MaxClusterPriority int32
	WorkflowTag        string // prefix of tags with a workflow's name

	// MappingRules is the content of the file named by yarn.scheduler.capacity.mapping-rule-json-file. The caller reads
	// the file.
	MappingRules []byte
	// Fair contains yarn.scheduler.fair.*.
	Fair FairOptions
}

// FairOptions are the FairScheduler's settings outside its allocation file.
type FairOptions struct {
	UserAsDefaultQueue    bool    // [true]
	AllowUndeclaredPools  bool    // [true]
	SizeBasedWeight       bool    // [false]
	NodeLocalityThreshold float64 // [-1]
	RackLocalityThreshold float64 // [-1]
}

// Config is the content of a queue file.
type Config struct {
	Queues    queues.Spec
	Placement queues.Placement // nil: the queue named in the submission
	// Warnings name settings that have no effect here (yet), in file order. They are for a log and `creel config
	// check`.
	Warnings []Warning
}

// Warning is a remark about one line of a queue file.
type Warning struct {
	File string
	Line int
	Text string
}

func (n Warning) String() string { return place(n.File, n.Line) + n.Text }

// Error is one error in a queue file. Readers report all of them, joined; errors.As finds the first. It wraps
// creel.ErrInvalidRequest.
type Error struct {
	File string
	Line int
	Text string
}

func (e *Error) Error() string { return place(e.File, e.Line) + e.Text }

// Unwrap makes errors.Is(err, creel.ErrInvalidRequest) true.
func (e *Error) Unwrap() error { return creel.ErrInvalidRequest }

func place(file string, line int) string {
	switch {
	case file == "" && line == 0:
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

// Limits on the content of a queue file.
const (
	maxQueues = 100_000
	maxDepth  = 32
	maxWeight = 10_000 // as in Hadoop
	maxErrors = 100
)

// report collects a reader's errors and warnings.
type report struct {
	errs     []*Error
	warnings []Warning
}

func (r *report) fail(file string, line int, format string, a ...any) {
	r.errs = append(r.errs, &Error{File: file, Line: line, Text: fmt.Sprintf(format, a...)})
}

func (r *report) warn(file string, line int, format string, a ...any) {
	r.warnings = append(r.warnings, Warning{File: file, Line: line, Text: fmt.Sprintf(format, a...)})
}

// err joins all errors, in line order.
func (r *report) err() error {
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	var all []error
	for i, e := range r.errs {
		if i == maxErrors {
			all = append(all, fmt.Errorf("and %d more", len(r.errs)-i))
			break
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

func (r *report) sortedWarnings() []Warning {
	slices.SortStableFunc(r.warnings, func(a, b Warning) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return r.warnings
}
