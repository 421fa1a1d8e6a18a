// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/gssapi"
)

// Hadoop's ResourceManager is a member of a federation with Kerberos, by its agent. Applications at home with either
// use both. Where calls are protected the proxies know Hadoop's AMs by its key file, else they relay the AMs' logins.
func TestSecureHadoopMemberRunsJobsAtEachProtection(t *testing.T) {
	for _, p := range []gssapi.Protection{gssapi.Privacy, gssapi.Integrity, gssapi.Authentication} {
		t.Run(p.String(), func(t *testing.T) {
			f, state := startMembers(t, p.String(), 1), t.TempDir()
			theirs := f.StartHadoopOf(t, hadoop.V342, 2, f.daemons.With(hadoop.Conf{
				"yarn.resourcemanager.fs.state-store.uri": "file://" + state,
			}))
			var keys hadoop.Conf
			if p != gssapi.Authentication {
				keys = hadoop.Conf{"creel.proxy.hadoop-key-files": "sc-2=" +
					filepath.Join(state, "FSRMStateRoot/AMRMTokenSecretManagerRoot/AMRMTokenSecretManagerNode")}
			}
			theirs.Proxy = f.StartProxy(t, theirs.ID, "127.0.0.3", f.daemons.With(keys))
			f.Subclusters = append(f.Subclusters, theirs)
			for queue, home := range map[string]string{"root.default": "sc-1", "root.other": "sc-2"} {
				f.Creel(t, "policy", "set", queue, strings.Replace(halves, `{"sc-1":1,"sc-2":1}`,
					fmt.Sprintf(`{%q:1}`, home), 1), "--store", f.Store)
			}
			f.startNode(t, 0)
			f.startNode(t, 1)
			client := f.client(t, f.cache)
			f.awaitNodes(t, client)
			for _, queue := range []string{"default", "other"} {
				f.shell(t, client, queue)
			}
			client.Run(t, hadoop.SleepJob, "-Dmapreduce.job.queuename=other", "-m", "4", "-r", "0", "-mt", "100").OK(t)
			list := client.Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "FINISHED").OK(t).Stdout
			if n := strings.Count(list, "SUCCEEDED"); n != 3 {
				t.Errorf("%d applications succeeded\n%s", n, list)
			}
			me, homes := browser{f.router(), f.cache, ""}, map[string]int{}
			for line := range strings.Lines(list) {
				if id, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); strings.HasPrefix(id, "application_") {
					why := me.call(t, "GET", "/api/v1/apps/"+strings.TrimSpace(id)+"/why").body
					for _, home := range []string{"sc-1", "sc-2"} {
						if strings.Contains(why, `"home":"`+home+`"`) {
							homes[home]++
						}
					}
				}
			}
			if homes["sc-1"] != 1 || homes["sc-2"] != 2 {
				t.Errorf("the homes are %v", homes)
			}
		})
	}
}
