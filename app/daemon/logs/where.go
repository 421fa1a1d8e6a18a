// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"os"
	"strings"
)

// Where describes in one sentence where the process's log is: this process writes it to standard error.
func Where() string { return where(os.Stderr, os.Getenv("JOURNAL_STREAM")) }

// where describes a file. stream is the device and inode of the systemd journal's stream, "" without one.
func where(f *os.File, stream string) string {
	const begin = "This daemon writes its log to standard error, "
	info, err := f.Stat()
	if err != nil {
		return begin + "which is closed."
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	named := err == nil && strings.HasPrefix(name, "/") && !strings.HasSuffix(name, " (deleted)")
	switch mode := info.Mode(); {
	case stream != "" && stream == identity(info):
		return begin + fmt.Sprintf("which is the systemd journal: journalctl _PID=%d shows it.", os.Getpid())
	case mode.IsRegular() && named:
		return begin + "which is the file " + name + " on its host."
	case mode&os.ModeCharDevice != 0 && name == os.DevNull:
		return begin + "which is discarded (" + name + ")."
	case mode&os.ModeCharDevice != 0 && named:
		return begin + "which is the terminal " + name + " on its host."
	case mode&(os.ModeNamedPipe|os.ModeSocket) != 0:
		return begin + "which is a pipe to the program that started it: look at the log of that program or container."
	}
	return begin + "which has no name on its host."
}
