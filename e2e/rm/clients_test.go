// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

func TestMain(m *testing.M) { Main(m) }

// cluster is our ResourceManager with two real NodeManagers.
func cluster(t *testing.T, conf hadoop.Conf) (*Creel, *clients.Cluster) {
	t.Helper()
	rm := Start(t, Options{Conf: conf})
	c := &clients.Cluster{Conf: rm.Addresses.Conf(), Web: rm.Web, Logs: t.TempDir()}
	for _, name := range []string{"nm1", "nm2"} {
		nm := hadoop.StartNM(t, hadoop.NM{Name: name, RM: rm.Addresses, Conf: hadoop.Conf{"yarn.nodemanager.remote-app-log-dir": c.Logs}})
		c.Nodes = append(c.Nodes, nm.ID)
	}
	return rm, c
}

// Everything a user does with Hadoop's ResourceManager, done with ours.
func TestUsersDoWhatTheyDoWithHadoop(t *testing.T) {
	_, c := cluster(t, nil)
	c.Without = map[string]string{
		"dshell_placement":     "",
		"dshell_opportunistic": "",
	}
	clients.Run(t, c)
}
