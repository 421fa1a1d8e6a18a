// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"os"
	"strings"
)

// watched notices changes of files, and reports a reason for which they cannot be used once.
type watched struct {
	files  []string
	seen   string // the files at the last successful read
	failed string // the last reported reason
}

// state describes files, so that a changed one is noticed.
func state(files []string) string {
	var b strings.Builder
	for _, path := range files {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(&b, info.Size(), info.ModTime().UnixNano())
		} else {
			fmt.Fprintln(&b, "absent")
		}
	}
	return b.String()
}

// check calls read if the files have changed since its last success. It returns whether they were read, or a reason
// that has not been reported yet.
func (w *watched) check(read func() error) (replaced bool, news error) {
	found := state(w.files)
	if found == w.seen {
		return false, nil
	}
	if err := read(); err != nil {
		known := err.Error() == w.failed
		if w.failed = err.Error(); known {
			return false, nil
		}
		return false, err
	}
	w.seen, w.failed = found, ""
	return true, nil
}
