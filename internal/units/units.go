// SPDX-License-Identifier: Apache-2.0

// Package units writes sizes, counts and times for readers, in one way: on pages, in tables and in sentences. What is
// for programs has base units instead.
package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Memory formats MB in a suitable unit.
func Memory(mb int64) string {
	switch {
	case mb >= 1<<20:
		return strconv.FormatFloat(float64(mb)/(1<<20), 'f', 1, 64) + " TiB"
	case mb >= 1<<10:
		return strconv.FormatFloat(float64(mb)/(1<<10), 'f', 1, 64) + " GiB"
	}
	return strconv.FormatInt(mb, 10) + " MiB"
}

// Number formats a whole number with separated thousands.
func Number(n any) string {
	text := fmt.Sprint(n)
	digits := strings.TrimPrefix(text, "-")
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if digits != text {
		return "-" + b.String()
	}
	return b.String()
}

// Age formats seconds for readers.
func Age(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < 10*time.Second:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(seconds/86400)) + " days"
}
