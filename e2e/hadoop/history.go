// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
)

// historyServer is MapReduce's server of finished jobs.
const historyServer = "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer"

// StartHistory starts a history server of MapReduce at a port of a host, and returns the settings of its clients.
func StartHistory(t testing.TB, host string, conf Conf) (*Daemon, Conf) {
	t.Helper()
	dir := tempDir(t, "history")
	at := func() string {
		_, port, _ := strings.Cut(process.FreeAddress(t, "127.0.0.1"), ":")
		return host + ":" + port
	}
	clients := Conf{
		"mapreduce.jobhistory.address":               at(),
		"mapreduce.jobhistory.done-dir":              "file://" + filepath.Join(dir, "done"),
		"mapreduce.jobhistory.intermediate-done-dir": "file://" + filepath.Join(dir, "intermediate"),
	}
	d := launch(t, "history", dir, common(t, dir).With(Conf{
		"mapreduce.jobhistory.admin.address":  at(),
		"mapreduce.jobhistory.webapp.address": at(),
	}, conf, clients), []string{heap(0, 256), AddOpens}, historyServer, "Instantiated HistoryClientService")
	return d, clients
}
