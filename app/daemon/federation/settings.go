// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"os"
	"path/filepath"

	"github.com/creelrm/creel/internal/settings"
)

// queueFile has the default queues of the federation: three teams with guarantees, which the demo's load does not
// follow.
const queueFile = `<?xml version="1.0"?>
<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>default,prod,research</value></property>
  <property><name>yarn.scheduler.capacity.root.default.capacity</name><value>20</value></property>
  <property><name>yarn.scheduler.capacity.root.default.maximum-capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.default.user-limit-factor</name><value>10</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.capacity</name><value>50</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.maximum-capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.user-limit-factor</name><value>10</value></property>
  <property><name>yarn.scheduler.capacity.root.research.capacity</name><value>30</value></property>
  <property><name>yarn.scheduler.capacity.root.research.maximum-capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.research.user-limit-factor</name><value>10</value></property>
  <property><name>yarn.scheduler.capacity.maximum-am-resource-percent</name><value>0.5</value></property>
  <property><name>yarn.scheduler.capacity.resource-calculator</name><value>` +
	`org.apache.hadoop.yarn.util.resource.DominantResourceCalculator</value></property>
</configuration>
`

// Settings returns the settings of a federation in one process: defaults for small machines, overridden by the files
// in confDir, then by defines, then by flags. Without a confDir it writes default queues to dir/conf.
func Settings(dir, confDir string, defines []string, flags ...settings.Flag) (*settings.Settings, error) {
	if confDir == "" {
		confDir = filepath.Join(dir, "conf")
		if err := os.MkdirAll(confDir, 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(confDir, "capacity-scheduler.xml"), []byte(queueFile), 0o600); err != nil {
			return nil, err
		}
	}
	own := []string{ // override the files, so that a real cluster's store and journal are never used
		"creel.rm.data=" + dir, // each ResourceManager has a separate directory below it
		"creel.store.url=memory",
	}
	s, err := settings.Load(settings.Sources{
		ConfDir: confDir, Defines: append(own, defines...), Flags: flags,
		Defaults: map[string]string{
			"yarn.scheduler.minimum-allocation-mb": "128",
			"creel.log.level":                      "warn", // so that the printed text stays readable
		},
	})
	return s, settings.Invalid(err)
}
