// SPDX-License-Identifier: Apache-2.0

//go:build control

package clients

import (
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// The control: Hadoop's own ResourceManager passes the cases.
func TestHadoopRM(t *testing.T) {
	logs := t.TempDir()
	rm := hadoop.StartRM(t, hadoop.RM{})
	conf := hadoop.Conf{"yarn.nodemanager.remote-app-log-dir": logs}
	nm1 := hadoop.StartNM(t, hadoop.NM{Name: "nm1", RM: rm.Addresses, Conf: conf})
	nm2 := hadoop.StartNM(t, hadoop.NM{Name: "nm2", RM: rm.Addresses, Conf: conf})
	c := &Cluster{Conf: rm.ClientConf(), Web: rm.Web, Nodes: []string{nm1.ID, nm2.ID}, Logs: logs}
	Run(t, c)
	t.Run("promoted", func(t *testing.T) { PromotesShell(t, c) })
}
