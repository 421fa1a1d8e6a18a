// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"testing"

	"github.com/creelrm/creel/e2e/clients"
)

// Everything a user does with one YARN cluster, done with two behind a router,
// masters through the proxies.
func TestClients(t *testing.T) {
	f := Start(t, Options{})
	clients.Run(t, &clients.Cluster{Conf: f.ClientConf(0), Web: f.RouterDoors[0].Web, Nodes: f.Nodes(), Logs: f.Logs})
}
