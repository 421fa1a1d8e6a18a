// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"net"
	"os"
)

// notify sends the service's state to systemd, see sd_notify(3): READY=1 once everything serves, STOPPING=1 at the
// end. It does nothing without NOTIFY_SOCKET in the environment, which systemd sets for units of Type=notify.
func notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		slog.Warn("failed to notify systemd of the service's state", "state", state, "error", err)
	}
}
