// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
)

// SocketLife is how long bytes for a member live that its machine does not
// acknowledge: after that the kernel drops them with the connection, also when we
// closed it before. A submission that we gave up cannot arrive later from here,
// where TCP by itself would send it again for a quarter of an hour. It bounds
// what router.UnclearWait has to outlast. Only Linux keeps it.
const SocketLife = 30 * time.Second

// dial connects to a member.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: SocketLife, KeepAlive: SocketLife, Control: hrpc.DropUnacknowledged(SocketLife)}
	return d.DialContext(ctx, network, address)
}
