// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// A job holds a token of HDFS that would end several times while it runs. The ResourceManager renews it, also after a
// restart, and cancels it when the job has ended, as the NameNode's own log says.
func TestTokenOfHDFSLivesAsLongAsItsJob(t *testing.T) {
	k := StartKDC(t, Realm{})
	names := hadoop.Conf{"dfs.namenode.kerberos.principal": "nn/localhost@" + k.Realm}
	c := startSecure(t, k, "privacy", names)
	c.startNode(t)
	web := k.AddPrincipal(t, "HTTP/127.0.0.1")
	nn := hadoop.StartNameNode(t, "localhost", names.With(hadoop.Conf{
		"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": "privacy",
		"dfs.namenode.keytab.file":                        k.AddPrincipal(t, "nn/localhost"),
		"dfs.block.access.token.enable":                   "true",
		"dfs.web.authentication.kerberos.principal":       "HTTP/127.0.0.1@" + k.Realm,
		"dfs.web.authentication.kerberos.keytab":          web,
		"dfs.namenode.kerberos.internal.spnego.principal": "HTTP/127.0.0.1@" + k.Realm,
		"dfs.namenode.delegation.token.renew-interval":    "10000",
	}))
	client := c.client(t, c.user, c.userKeytab, names)
	permitted := func(call string) int {
		n := 0
		for line := range strings.Lines(nn.Lines("cmd=" + call)) {
			if strings.Contains(line, "allowed=true") &&
				strings.Contains(line, "ugi=yarn/localhost@"+k.Realm) {
				n++
			}
		}
		return n
	}
	job := client.Start(t, hadoop.SleepJob, "-Dmapreduce.job.hdfs-servers=hdfs://"+nn.Address,
		"-m", "1", "-r", "0", "-mt", "40000")
	nn.Await(t, "two renewals", func() bool { return permitted("renewDelegationToken") >= 2 })
	before := permitted("renewDelegationToken")
	c.Restart(t)
	nn.Await(t, "renewals after the restart", func() bool { return permitted("renewDelegationToken") >= before+2 })
	if n := permitted("cancelDelegationToken"); n != 0 {
		t.Errorf("the token was cancelled %d times while its job ran", n)
	}
	if err := job.Exit(); err != nil {
		t.Fatalf("%v\n%s", err, job.Tail(60))
	}
	nn.Await(t, "the end of the token", func() bool { return permitted("cancelDelegationToken") == 1 })
}
