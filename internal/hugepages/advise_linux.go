// SPDX-License-Identifier: Apache-2.0

package hugepages

import "syscall"

// Advice of madvise(2).
const (
	madvHugepage = 14
	madvCollapse = 25 // since Linux 6.1
)

func adviseHuge(s span) error { return madvise(s, madvHugepage) }

func collapse(s span) error { return madvise(s, madvCollapse) }

func madvise(s span, advice uintptr) error {
	if _, _, e := syscall.Syscall(syscall.SYS_MADVISE, s.from, s.to-s.from, advice); e != 0 {
		return e
	}
	return nil
}
