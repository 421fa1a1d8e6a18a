// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

// Everything a user does with Hadoop's ResourceManager, done with ours.
func TestCreelRM(t *testing.T) {
	logs := t.TempDir()
	_, addresses := serve(t, config(t, t.TempDir()))
	conf := hadoop.Conf{"yarn.nodemanager.remote-app-log-dir": logs}
	nm1 := hadoop.StartNM(t, hadoop.NM{Name: "nm1", RM: addresses, Conf: conf})
	nm2 := hadoop.StartNM(t, hadoop.NM{Name: "nm2", RM: addresses, Conf: conf})
	clients.Run(t, &clients.Cluster{Conf: addresses.Conf(), Web: addresses.Web, Nodes: []string{nm1.ID, nm2.ID}, Logs: logs})
}
