// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// An administrator adds, updates, moves the limits of and removes queues with Hadoop's yarn schedulerconf. An invalid
// change is rejected as a whole, so is refreshQueues. A crash of creel's ResourceManager loses nothing, and a format
// returns to the file.
func TestQueuesAreChangedByHadoopsTools(t *testing.T) {
	rm := Start(t, Options{Conf: hadoop.Conf{"yarn.scheduler.configuration.store.class": "fs"}})
	client := hadoop.Client{Conf: rm.Addresses.Conf()}.Setup(t)
	conf := func(says string, args ...string) {
		t.Helper()
		if r := client.Run(t, hadoop.SchedConfCLI, args...); !strings.Contains(r.All, says) {
			t.Errorf("schedulerconf %s: %d, want %q\n%s", strings.Join(args, " "), r.Code, says, r.All)
		}
	}
	// in reports whether the scheduler's document has a text.
	in := func(want string) bool {
		t.Helper()
		res, err := http.Get("http://" + rm.Web + "/ws/v1/cluster/scheduler")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(body), want)
	}
	const changed = "Configuration changed successfully."
	conf(changed, "-add", "root.new:capacity=10,maximum-capacity=50", "-update", "root.default:capacity=60",
		"-global", "yarn.scheduler.capacity.maximum-applications=500")
	if !in("root.new") || !in(`"capacity":60.`) {
		t.Error("the new queue is not there")
	}
	conf("Configuration change unsuccessful: Failed to re-init queues : ", "-update", "root.new:capacity=11")
	if r := client.Run(t, hadoop.RMAdminCLI, "-refreshQueues"); r.Code == 0 ||
		!strings.Contains(r.All, "Scheduler configuration is mutable. refreshQueues is not allowed in this scenario.") {
		t.Errorf("refreshQueues: %d %s", r.Code, r.All)
	}
	rm.Kill9()
	rm.Restart(t)
	if !in("root.new") {
		t.Error("after a crash the new queue is not there")
	}
	conf("<name>yarn.scheduler.capacity.maximum-applications</name>", "-getConf")
	conf(changed, "-update", "root.new:state=STOPPED")
	conf(changed, "-remove", "root.new", "-update", "root.default:capacity=55;root.other:capacity=45")
	if in("root.new") || !in(`"capacity":55.`) {
		t.Error("the new queue was removed, and is there")
	}
	conf("", "-format")
	if !in(`"capacity":70.`) {
		t.Error("after a format the queues are not those of the file")
	}
}
