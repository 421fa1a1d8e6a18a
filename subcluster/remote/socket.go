// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
)

// SocketLife is how long the kernel retains bytes for a member that its machine does not acknowledge: after that it
// drops them with the connection, also when this process closed it before. An abandoned submission cannot arrive
// later from here, where TCP by itself would send it again for a quarter of an hour. router.UnclearWait has to
// outlast it. Only Linux supports it.
const SocketLife = 30 * time.Second

// dial connects to a member.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: SocketLife, KeepAlive: SocketLife, Control: hrpc.DropUnacknowledged(SocketLife)}
	return d.DialContext(ctx, network, address)
}
