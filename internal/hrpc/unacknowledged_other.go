// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hrpc

import (
	"syscall"
	"time"
)

// DropUnacknowledged leaves a net.Dialer unchanged: only Linux supports the limit.
func DropUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
