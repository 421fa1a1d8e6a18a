// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"os"
	"syscall"
)

// identity returns a file's device and inode in the form of JOURNAL_STREAM.
func identity(info os.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}
