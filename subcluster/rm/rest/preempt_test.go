// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// The document about preemption for a queue is only for its administrators.
func TestPreemptionPreviewIsForAdministrators(t *testing.T) {
	c := start(t, func(cfg *server.Config) {
		cfg.Machine.Queues.Preemption = queues.Preemption{On: true, Interval: time.Second, PerRound: 1}
	})
	const path = "/api/v1/queues/root.other/preempt?user.name="
	if on, of := c.get(path+"root", "on"), c.get(path+"root", "queue"); on != true || of != "root.other" {
		t.Errorf("on %v, of %v", on, of)
	}
	if v := fmt.Sprint(c.get(path+"root", "victims")); v != "[]" {
		t.Errorf("an empty cluster would lose %s", v)
	}
	if r := c.call("GET", "/api/v1/queues/root.nowhere/preempt?user.name=root", ""); r.status != 400 || !strings.Contains(r.body, "Unknown queue") {
		t.Errorf("an unknown queue: %d %s", r.status, r.body)
	}
	if off := c.get(base+"/scheduler", "scheduler", "schedulerInfo", "queues", "queue", 0, "preemptionDisabled"); off != false {
		t.Errorf("its queues say that nothing is taken from them: %v", off)
	}
}
