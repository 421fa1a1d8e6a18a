// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// vectorMode is the setting that permits queues with mixed units.
const vectorMode = capacityPrefix + "legacy-queue-mode.enabled=false"

// unlimited is a bound that no cluster reaches.
const unlimited = math.MaxInt64

// explicitZero stores a configured zero where the zero value of a field means "not given".
const explicitZero = 1e-9

func parseFloat(text string) (float64, error) {
	// Java's floats may end in f or d.
	f, err := strconv.ParseFloat(strings.TrimRight(strings.TrimSpace(text), "fFdD"), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.Contains(text, "_") {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return f, nil
}

func parseInt(text string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number of 32 bits", text)
	}
	return int(n), nil
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

func splitList(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// units of resource amounts, as in Hadoop's resource-types.xml
var unitFactors = []struct {
	name string
	num  int64
	den  int64
}{
	{"Ki", 1 << 10, 1}, {"Mi", 1 << 20, 1}, {"Gi", 1 << 30, 1}, {"Ti", 1 << 40, 1}, {"Pi", 1 << 50, 1},
	{"k", 1e3, 1}, {"M", 1e6, 1}, {"G", 1e9, 1}, {"T", 1e12, 1}, {"P", 1e15, 1},
	{"m", 1, 1e3}, {"u", 1, 1e6}, {"n", 1, 1e9}, {"", 1, 1},
}

// ParseAmount parses a whole, non-negative number, with or without one of YARN's units ("2048", "2Gi"). Without a unit
// the number is in the type's unit. It returns MiB of memory, and plain amounts of other types.
func ParseAmount(text string, t creel.ResourceType) (int64, error) {
	text = strings.TrimSpace(text)
	digits := strings.TrimRightFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not an amount", text)
	}
	base := ""
	if t.Name == creel.MemoryName {
		base = t.Unit
	}
	unit := cmp.Or(strings.TrimSpace(text[len(digits):]), t.Unit)
	if unit == base {
		return n, nil
	}
	from, to := -1, -1
	for i, u := range unitFactors {
		if u.name == unit {
			from = i
		}
		if u.name == base {
			to = i
		}
	}
	if from < 0 || to < 0 {
		return 0, fmt.Errorf("%q has a unit that is not known", text)
	}
	f, b := unitFactors[from], unitFactors[to]
	v := float64(n) * (float64(f.num) / float64(f.den)) / (float64(b.num) / float64(b.den))
	if v > 1<<62 {
		return 0, fmt.Errorf("%q is beyond 62 bits", text)
	}
	return int64(math.Round(v)), nil
}

// typeNamed returns the resource type for a name in a file.
func (o *Options) typeNamed(name string) (creel.ResourceType, bool) {
	switch name {
	case "memory", creel.MemoryName:
		return creel.ResourceType{Name: creel.MemoryName, Unit: "Mi"}, true
	case creel.VCoresName, "cpu", "vcore":
		return creel.ResourceType{Name: creel.VCoresName}, true
	}
	for _, t := range o.ResourceTypes {
		if t.Name == name {
			return t, true
		}
	}
	return creel.ResourceType{Name: name}, false
}

// typeNames returns all resource types of the cluster.
func (o *Options) typeNames() []string {
	names := []string{creel.MemoryName, creel.VCoresName}
	for _, t := range o.ResourceTypes {
		names = append(names, t.Name)
	}
	return names
}

// vector is a list of resource types, each with an amount, a percentage or a weight.
type vector struct {
	names    []string
	amounts  map[string]int64
	percents map[string]float64
	weights  map[string]float64
}

// parseVector parses "memory-mb=1024, vcores=2" or "memory-mb=50%, vcores=25%"; if mixed, also "memory-mb=50%,
// vcores=2w, yarn.io/gpu=1".
func (o *Options) parseVector(text string, mixed bool) (vector, error) {
	v := vector{amounts: map[string]int64{}, percents: map[string]float64{}, weights: map[string]float64{}}
	for _, item := range splitList(text) {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			return v, fmt.Errorf("%q is not type=amount", item)
		}
		t, known := o.typeNamed(strings.TrimSpace(name))
		full := t.Name
		if !known {
			return v, fmt.Errorf(
				"resource type %q is not known; types are %s",
				strings.TrimSpace(name),
				strings.Join(o.typeNames(), ", "),
			)
		}
		if slices.Contains(v.names, full) {
			return v, fmt.Errorf("resource type %q is given twice", full)
		}
		v.names = append(v.names, full)
		value = strings.TrimSpace(value)
		switch {
		case strings.HasSuffix(value, "%"):
			p, err := parseFloat(strings.TrimSuffix(value, "%"))
			if err != nil || p < 0 {
				return v, fmt.Errorf("%q is not a percentage", value)
			}
			v.percents[full] = p
		case strings.HasSuffix(value, "w") && !mixed:
			return v, fmt.Errorf(
				"%q: a weight of one resource type needs %s; else give the queue one weight, such as 2w",
				item, vectorMode,
			)
		case strings.HasSuffix(value, "w"):
			w, err := parseFloat(strings.TrimSuffix(value, "w"))
			if err != nil || w < 0 {
				return v, fmt.Errorf("%q is not a weight", value)
			}
			v.weights[full] = w
		default:
			n, err := ParseAmount(value, t)
			if err != nil {
				return v, err
			}
			v.amounts[full] = n
		}
	}
	if len(v.names) == 0 {
		return v, errors.New("no resource is named")
	}
	if len(v.amounts) > 0 && len(v.percents) > 0 && !mixed {
		return v, errors.New("amounts and percentages are mixed; use one for all resource types, or " + vectorMode)
	}
	return v, nil
}

// amount converts a vector to an Amount. Types that it does not name get missing, or 100% if missing is unlimited.
func (v vector) amount(names []string, missing int64) queues.Amount {
	if len(v.weights) > 0 || len(v.amounts) > 0 && len(v.percents) > 0 {
		a := queues.Amount{Unit: queues.Mixed}
		for _, n := range v.names {
			t := queues.TypeAmount{Type: n, Unit: queues.Absolute, Value: float64(v.amounts[n])}
			if p, ok := v.percents[n]; ok {
				t.Unit, t.Value = queues.Percent, p
			} else if w, ok := v.weights[n]; ok {
				t.Unit, t.Value = queues.Weight, w
			}
			a.Mixed = append(a.Mixed, t)
		}
		if missing == unlimited {
			for _, n := range names {
				if !slices.Contains(v.names, n) {
					a.Mixed = append(a.Mixed, queues.TypeAmount{Type: n, Unit: queues.Percent, Value: 100})
				}
			}
		}
		return a
	}
	if len(v.percents) > 0 {
		a := queues.Amount{Unit: queues.PerType}
		for _, n := range v.names {
			a.Types = append(a.Types, queues.TypePercent{Type: n, Percent: v.percents[n]})
		}
		if missing == unlimited {
			for _, n := range names {
				if _, ok := v.percents[n]; !ok {
					a.Types = append(a.Types, queues.TypePercent{Type: n, Percent: 100})
				}
			}
		}
		return a
	}
	var r creel.Resource
	for _, n := range names {
		if _, ok := v.amounts[n]; !ok {
			r = r.With(n, missing)
		}
	}
	for _, n := range v.names {
		r = r.With(n, v.amounts[n])
	}
	return queues.AbsoluteOf(r)
}

// within reports whether each type of a maximum is at least the minimum.
func within(minimum, maximum creel.Resource) bool { return minimum.Fits(maximum) }

// maximumContainers parses a number of containers at a time; -1 is no maximum.
func maximumContainers(text string) (queues.Maximum, error) {
	n, err := parseInt(text)
	switch {
	case err != nil:
		return queues.Maximum{}, err
	case n < -1:
		return queues.Maximum{}, fmt.Errorf("%d is no number of containers; -1 means no maximum", n)
	}
	return queues.Maximum{Set: n >= 0, Most: max(n, 0)}, nil
}
