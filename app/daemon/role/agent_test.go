// SPDX-License-Identifier: Apache-2.0

package role

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster"
)

// An agent reads where its ResourceManager is from the files of Hadoop, of an HA pair too:
// from each one's address, or from its host.
func TestWhereAnAgentsResourceManagersAre(t *testing.T) {
	for _, c := range []struct {
		name string
		site map[string]string
		want subcluster.Addresses
		err  string
	}{
		{
			"one",
			map[string]string{"hostname": "rm", "webapp.address": "rm:9088"},
			subcluster.Addresses{
				Client: "rm:8032", Scheduler: "rm:8030", Admin: "rm:8033", Tracker: "rm:8031", Web: "rm:9088",
			},
			"",
		},
		{
			"a pair by its hosts",
			map[string]string{
				"ha.enabled": "true", "ha.rm-ids": "rm1, rm2", "hostname.rm1": "one", "hostname.rm2": "two",
				"hostname": "neither", "ha.id": "rm2",
			},
			subcluster.Addresses{
				Client: "one:8032,two:8032", Scheduler: "one:8030,two:8030", Admin: "one:8033,two:8033",
				Tracker: "one:8031,two:8031", Web: "one:8088,two:8088",
			},
			"",
		},
		{
			"a pair by some addresses, with and without a port",
			map[string]string{
				"ha.enabled": "true", "ha.rm-ids": "b,a", "hostname.a": "one", "hostname.b": "two",
				"address.a": "a.example:1", "webapp.address.b": "b.example", "scheduler.address.b": "${yarn.resourcemanager.hostname.b}:2",
			},
			subcluster.Addresses{
				Client: "two:8032,a.example:1", Scheduler: "two:2,one:8030", Admin: "two:8033,one:8033",
				Tracker: "two:8031,one:8031", Web: "b.example:8088,one:8088",
			},
			"",
		},
		{
			"a pair that is switched off",
			map[string]string{"ha.rm-ids": "rm1,rm2", "hostname.rm1": "one", "hostname": "rm"},
			subcluster.Addresses{
				Client: "rm:8032", Scheduler: "rm:8030", Admin: "rm:8033", Tracker: "rm:8031", Web: "rm:8088",
			},
			"",
		},
		{"one id", map[string]string{"ha.enabled": "true", "ha.rm-ids": "rm1"}, subcluster.Addresses{}, "here 1"},
		{
			"an id that is a part of a name",
			map[string]string{"ha.enabled": "true", "ha.rm-ids": "rm1,rm.2", "hostname.rm1": "one"},
			subcluster.Addresses{},
			"rm.2 has a dot",
		},
		{
			"a host is missing",
			map[string]string{"ha.enabled": "true", "ha.rm-ids": "rm1,rm2", "hostname.rm1": "one", "address.rm2": "two:1"},
			subcluster.Addresses{},
			"scheduler.address.rm2: it is not set, nor is yarn.resourcemanager.hostname.rm2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var site strings.Builder
			site.WriteString("<configuration>")
			for name, value := range c.site {
				site.WriteString("<property><name>yarn.resourcemanager." + name + "</name><value>" + value + "</value></property>")
			}
			site.WriteString("</configuration>")
			if err := os.WriteFile(filepath.Join(dir, "yarn-site.xml"), []byte(site.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: []string{"creel.subcluster.id=sc-1"}})
			if err != nil {
				t.Fatal(err)
			}
			conf, err := AgentSettings(s)
			if conf.Member.Addresses != c.want || (err == nil) != (c.err == "") {
				t.Errorf("%+v, %v", conf.Member.Addresses, err)
			}
			if c.err == "" {
				return
			}
			if !settings.IsProblem(err) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v does not say %q", err, c.err)
			}
			if err := Check(s, settings.Agent); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("creel config check says %v", err)
			}
		})
	}
}
