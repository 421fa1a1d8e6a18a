// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"unicode/utf8"
)

// diagnostics are the diagnostics of an attempt. Of long ones only the last characters are retained, after a line
// with the total number, as in Hadoop's BoundedAppender.
type diagnostics struct {
	text  string
	total int // number of all characters, including dropped ones
}

// add appends a message on a new line; at most limit characters are retained.
func (d *diagnostics) add(s string, limit int) {
	if s == "" {
		return
	}
	if d.text != "" {
		s = "\n" + s
	}
	d.total += utf8.RuneCountInString(s)
	d.text += s
	if len(d.text) <= limit { // bytes are at least as many as characters
		return
	}
	over := utf8.RuneCountInString(d.text) - limit
	for at := range d.text {
		if over--; over < 0 {
			d.text = d.text[at:]
			break
		}
	}
}

func (d *diagnostics) String() string {
	if kept := utf8.RuneCountInString(d.text); kept < d.total {
		return fmt.Sprintf(diagnosticsTruncated, kept, d.total, d.text)
	}
	return d.text
}
