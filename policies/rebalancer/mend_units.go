// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
)

// unitOf is the unit of a queue's configured capacity.
type unitOf int

const (
	percentUnit unitOf = iota
	weightUnit
	amountUnit
	mixedUnit // type by type; not changed
)

func unit(text string) (unitOf, float64) {
	switch {
	case strings.HasPrefix(text, "["):
		for _, part := range strings.Split(strings.Trim(text, "[]"), ",") {
			if _, v, _ := strings.Cut(part, "="); strings.HasSuffix(v, "%") || strings.HasSuffix(v, "w") {
				return mixedUnit, 0
			}
		}
		return amountUnit, 0
	case strings.HasSuffix(text, "w"):
		v, err := strconv.ParseFloat(strings.TrimSuffix(text, "w"), 64)
		if err != nil {
			return mixedUnit, 0
		}
		return weightUnit, v
	case text == "":
		return percentUnit, 0
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		return mixedUnit, 0
	}
	return percentUnit, v
}

// leastWeight is the weight of a queue with a zero share: a weight is above 0. Hadoop rejects weights above mostWeight.
const (
	leastWeight = 0.001
	mostWeight  = 10_000
)

// partOf returns a part of memory and cores.
func partOf(r creel.Resource, by float64) creel.Resource {
	return creel.NewResource(int64(math.Round(by*float64(r.MemoryMB))), int64(math.Round(by*float64(r.VCores))))
}

// partBelow is partOf, rounded down, so that the parts sum to at most the whole.
func partBelow(r creel.Resource, by float64) creel.Resource {
	below := func(v int64) int64 { return int64(math.Floor(by*float64(v) + 1e-6)) }
	return creel.NewResource(below(r.MemoryMB), below(r.VCores))
}

func sameNumber(a, b string) bool {
	ua, va := unit(a)
	ub, vb := unit(b)
	near := 1e-9
	if ua == weightUnit {
		near = max(va, vb) / 1000 // percentages have to sum to 100
	}
	return a == b || ua == ub && ua != amountUnit && math.Abs(va-vb) <= near && b != ""
}

// texts writes the shares in the unit of their level. Percentages sum to exactly 100. The weights of unnamed queues
// stay, unless a named one would be above mostWeight.
func texts(list []child, kind unitOf) []string {
	out := make([]string, len(list))
	shares, all, others, rest := make([]float64, len(list)), 0.0, 0.0, 0.0
	for i := range list {
		shares[i] = list[i].is * 100
		if all += list[i].value; !list[i].named {
			others += list[i].value
			rest += list[i].is
		}
	}
	if kind == percentUnit {
		for i, n := range Round(shares, 0.01, nil) {
			out[i] = strconv.FormatFloat(float64(n)/100, 'f', -1, 64)
		}
		return out
	}
	if rest > 0 {
		all = others / rest
	}
	if all == 0 { // all are new: thousandths of 1 would be too coarse
		all = 100
	}
	for i := range list {
		if list[i].is*all > mostWeight {
			all = mostWeight / list[i].is
		}
	}
	for i := range list {
		out[i] = weightText(list[i].is * all)
	}
	return out
}

func weightText(v float64) string {
	return strconv.FormatFloat(max(leastWeight, math.Round(v*1000)/1000), 'f', -1, 64) + "w"
}

// amountsIn reads "[memory=10240,vcores=12]"; types that are not named get the amounts of rest.
func amountsIn(text string, rest creel.Resource) creel.Resource {
	out := rest
	for _, part := range strings.Split(strings.Trim(text, "[]"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "memory", creel.MemoryName:
			out.MemoryMB = n
		case creel.VCoresName:
			out.VCores = n
		}
	}
	return out
}

// withAmounts replaces memory and cores in such a text; other resources in it stay.
func withAmounts(text string, r creel.Resource) string {
	out := []string{fmt.Sprintf("memory=%d", r.MemoryMB), fmt.Sprintf("vcores=%d", r.VCores)}
	for _, part := range strings.Split(strings.Trim(text, "[]"), ",") {
		switch name, _, ok := strings.Cut(strings.TrimSpace(part), "="); strings.ToLower(name) {
		case "memory", creel.MemoryName, creel.VCoresName:
		default:
			if ok {
				out = append(out, strings.TrimSpace(part))
			}
		}
	}
	return "[" + strings.Join(out, ",") + "]"
}
