// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"unicode/utf8"
)

// diagnostics are the diagnostics of an attempt. Of many characters only the last are retained, behind a line with
// their total number, as in Hadoop's BoundedAppender.
type diagnostics struct {
	text  string
	total int // number of all characters; more than in text once some are dropped
}

// add takes a further message, on a line of its own; at most limit characters are kept.
func (d *diagnostics) add(s string, limit int) {
	if s == "" {
		return
	}
	if d.text != "" {
		s = "\n" + s
	}
	d.total += utf8.RuneCountInString(s)
	d.text += s
	if len(d.text) <= limit { // as many bytes as characters at least
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
		return fmt.Sprintf("Diagnostic messages truncated, showing last %d chars out of %d:\n...%s", kept, d.total, d.text)
	}
	return d.text
}
