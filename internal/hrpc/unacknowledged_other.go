// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hrpc

import (
	"syscall"
	"time"
)

// DropUnacknowledged leaves a net.Dialer as it is: only Linux does more.
func DropUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
