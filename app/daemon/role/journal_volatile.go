// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"
	"syscall"

	"github.com/creelrm/creel/app/daemon/health"
)

// The types of file systems in memory, as Linux' statfs reports them.
const (
	tmpfs = 0x01021994
	ramfs = 0x858458f6
)

// volatileJournal returns the reason why a journal in dir does not survive its process or machine; "" if it does.
func volatileJournal(dir string) string {
	if dir == "" {
		return "creel.rm.data is not set: a restart loses all applications"
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err == nil && (uint32(fs.Type) == tmpfs || uint32(fs.Type) == ramfs) {
		return "creel.rm.data is in memory (tmpfs): a restart of the machine loses all applications"
	}
	return ""
}

// volatile returns the reason why the state does not survive, "" if it does.
func (r *RM) volatile() string {
	if r.shared {
		return "" // its opening has logged what a Redis may lose
	}
	return volatileJournal(r.dir)
}

// reportVolatileJournal adds the metric of a journal that does not survive.
func reportVolatileJournal(h *health.Health, volatile func() string) {
	h.Gauge("creel_rm_journal_volatile",
		"1 if applications do not survive a restart: there is no journal, or it is on a file system in memory.",
		func() float64 {
			if volatile() != "" {
				return 1
			}
			return 0
		})
}

// WarnOfVolatileJournal logs a warning if the ResourceManager's applications do not survive a restart. `creel up`
// does not call it: it is for trials.
func (r *RM) WarnOfVolatileJournal(log *slog.Logger) {
	if why := r.volatile(); why != "" {
		log.Warn("the ResourceManager's state is volatile", "reason", why,
			"try", "name a directory on a disk by --data DIR or creel.rm.data")
	}
}
