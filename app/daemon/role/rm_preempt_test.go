// SPDX-License-Identifier: Apache-2.0

package role

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/settings"
)

// Preemption keys in the queue file override the site files. The queue file can disable preemption but not enable it.
// Without Hadoop's policy class there is no preemption either.
func TestPreemptionIsAsBothFilesSay(t *testing.T) {
	const queue = "yarn.scheduler.capacity.root.queues=a yarn.scheduler.capacity.root.a.capacity=100 "
	const policies = "yarn.resourcemanager.scheduler.monitor.policies="
	for _, c := range []struct {
		site, file string
		on         bool
		wait       time.Duration
	}{
		{"", "", false, 15 * time.Second},
		{"yarn.resourcemanager.scheduler.monitor.enable=true", "", true, 15 * time.Second},
		{"yarn.resourcemanager.scheduler.monitor.enable=true", "yarn.resourcemanager.scheduler.monitor.enable=false",
			false, 15 * time.Second},
		{"", "yarn.resourcemanager.scheduler.monitor.enable=true", false, 15 * time.Second},
		{"yarn.resourcemanager.scheduler.monitor.enable=true " + policies + "org.example.Other", "", false, 15 * time.Second},
		{"yarn.resourcemanager.scheduler.monitor.enable=true " + monitor + "max_wait_before_kill=2000",
			monitor + "max_wait_before_kill=3000", true, 3 * time.Second},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"yarn-site.xml": c.site, "capacity-scheduler.xml": queue + c.file} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(fileOf(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := settings.Load(settings.Sources{ConfDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		q, err := QueueConfig(s, false)
		if err != nil {
			t.Fatal(err)
		}
		if p := q.Queues.Preemption; p.On != c.on || p.Wait != c.wait {
			t.Errorf("%q and %q: on %t, kills after %v", c.site, c.file, p.On, p.Wait)
		}
	}
}

// fileOf writes "key=value key=value" as a Hadoop configuration file.
func fileOf(text string) string {
	out := "<configuration>"
	for _, kv := range strings.Fields(text) {
		name, value, _ := strings.Cut(kv, "=")
		out += "<property><name>" + name + "</name><value>" + value + "</value></property>"
	}
	return out + "</configuration>"
}
