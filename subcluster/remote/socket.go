// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
)

// SocketLife is the time for which the kernel retains bytes that a member's machine does not acknowledge. Then it
// drops them with the connection, even if this process closed the connection earlier. So an abandoned submission
// cannot arrive later, although TCP would send it again for a quarter of an hour. router.UnclearWait must be longer.
// Only Linux supports it.
const SocketLife = 30 * time.Second

// dial connects to a member.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: SocketLife, KeepAlive: SocketLife, Control: hrpc.DropUnacknowledged(SocketLife)}
	return d.DialContext(ctx, network, address)
}
