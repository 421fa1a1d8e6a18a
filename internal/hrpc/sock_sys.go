// SPDX-License-Identifier: Apache-2.0

//go:build unix && (!linux || race)

package hrpc

import "syscall"

// With these the race detector sees that what was written happened before what
// read it.

func sysRead(fd uintptr, b []byte) (int, error)  { return syscall.Read(int(fd), b) }
func sysWrite(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
