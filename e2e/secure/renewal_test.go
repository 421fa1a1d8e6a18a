// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
)

// startSecureNameNode starts a NameNode whose tokens last ten seconds without a renewal.
func startSecureNameNode(t *testing.T, k *KDC, names hadoop.Conf) *hadoop.NameNode {
	t.Helper()
	web := k.AddPrincipal(t, "HTTP/127.0.0.1")
	return hadoop.StartNameNode(t, "localhost", hadoop.Conf{
		"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": "privacy",
		"dfs.namenode.keytab.file":                        k.AddPrincipal(t, "nn/localhost"),
		"dfs.block.access.token.enable":                   "true",
		"dfs.web.authentication.kerberos.principal":       "HTTP/127.0.0.1@" + k.Realm,
		"dfs.web.authentication.kerberos.keytab":          web,
		"dfs.namenode.kerberos.internal.spnego.principal": "HTTP/127.0.0.1@" + k.Realm,
		"dfs.namenode.delegation.token.renew-interval":    "10000",
	}.With(names))
}

// permittedCalls returns the lines of a NameNode's audit log about permitted calls of a user.
func permittedCalls(nn *hadoop.NameNode, call, user string) (lines []string) {
	for line := range strings.Lines(nn.Lines("cmd=" + call)) {
		if strings.Contains(line, "allowed=true") && strings.Contains(line, user) {
			lines = append(lines, line)
		}
	}
	return lines
}

// A job holds a token of HDFS that would end several times while it runs. The ResourceManager renews it, also after a
// restart, and cancels it when the job has ended, as the NameNode's own log says.
func TestTokenOfHDFSLivesAsLongAsItsJob(t *testing.T) {
	k := StartKDC(t, Realm{})
	names := hadoop.Conf{"dfs.namenode.kerberos.principal": "nn/localhost@" + k.Realm}
	c := startSecure(t, k, "privacy", names)
	c.startNode(t)
	nn := startSecureNameNode(t, k, names)
	client := c.client(t, c.user, c.userKeytab, names)
	permitted := func(call string) int { return len(permittedCalls(nn, call, "ugi=yarn/localhost@"+k.Realm)) }
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

// logTokensOf makes a node log the tokens that it gets with heartbeats.
func logTokensOf(t *testing.T, node *hadoop.NodeManager) {
	t.Helper()
	const class = "org.apache.hadoop.yarn.server.nodemanager.NodeStatusUpdaterImpl"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+node.Web+"/logLevel?level=DEBUG&log="+class, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the node's level of logs: %s", answer.Status)
	}
}

// A job runs longer than its token of HDFS may live. The ResourceManager obtains others as proxy of the job's user, also
// after a restart, at which the first one has ended. The job's node gets them, and the last one ends with the job.
func TestJobOutlivesMaximumOfItsToken(t *testing.T) {
	k := StartKDC(t, Realm{})
	names := hadoop.Conf{"dfs.namenode.kerberos.principal": "nn/localhost@" + k.Realm}
	c := startSecure(t, k, "privacy", names.With(hadoop.Conf{
		"yarn.resourcemanager.proxy-user-privileges.enabled": "true",
	}))
	node := c.startNode(t)
	logTokensOf(t, node)
	nn := startSecureNameNode(t, k, names.With(hadoop.Conf{
		"dfs.namenode.delegation.token.max-lifetime": "15000",
		"hadoop.proxyuser.yarn.hosts":                "127.0.0.1", "hadoop.proxyuser.yarn.users": c.user,
	}))
	obtained := func() int {
		return len(permittedCalls(nn, "getDelegationToken", "ugi="+c.user+" (auth:PROXY) via yarn/localhost@"+k.Realm))
	}
	client := c.client(t, c.user, c.userKeytab, names)
	job := client.Start(t, hadoop.SleepJob, "-Dmapreduce.job.hdfs-servers=hdfs://"+nn.Address,
		"-m", "1", "-r", "0", "-mt", "35000")
	nn.Await(t, "a token obtained for the user", func() bool { return obtained() >= 1 })
	nn.Await(t, "its renewal", func() bool {
		return len(permittedCalls(nn, "renewDelegationToken", "ugi=yarn/localhost@"+k.Realm)) >= 3
	})
	node.Await(t, "the token at the node", func() bool { return node.Lines("Retrieved credentials") != "" })
	c.Restart(t)
	before := obtained()
	nn.Await(t, "a token obtained after the restart", func() bool { return obtained() > before })
	if err := job.Exit(); err != nil {
		t.Fatalf("%v\n%s", err, job.Tail(60))
	}
	nn.Await(t, "the end of the token", func() bool {
		return len(permittedCalls(nn, "cancelDelegationToken", "ugi=yarn/localhost@"+k.Realm)) >= 1
	})
}

// A job of a secure cluster with a history server holds a token of it. The ResourceManager renews it there, and cancels
// it at the job's end.
func TestTokenOfHistoryServerLivesAsLongAsItsJob(t *testing.T) {
	k := StartKDC(t, Realm{})
	names := hadoop.Conf{"mapreduce.jobhistory.principal": "jhs/localhost@" + k.Realm}
	c := startSecure(t, k, "privacy", names)
	c.startNode(t)
	history, clients := hadoop.StartHistory(t, "localhost", c.conf.With(names, hadoop.Conf{
		"mapreduce.jobhistory.keytab":                       k.AddPrincipal(t, "jhs/localhost"),
		"mapreduce.cluster.delegation.token.renew-interval": "10000",
	}))
	// Hadoop's client requests a token of the history server for a job that has one of the ResourceManager.
	file := c.tokenFile(t, c.Client)
	job := c.client(t, c.user, c.userKeytab, names.With(clients)).Start(t, hadoop.SleepJob,
		"-Dmapreduce.job.credentials.binary="+file, "-m", "1", "-r", "0", "-mt", "25000")
	times := func(what string) int { return strings.Count(history.Lines("MR_DELEGATION_TOKEN"), what) }
	history.Await(t, "two renewals", func() bool { return times("Token renewal for identifier") >= 2 })
	if n := times("Token cancellation requested"); n != 0 {
		t.Errorf("the token was cancelled %d times while its job ran", n)
	}
	if err := job.Exit(); err != nil {
		t.Fatalf("%v\n%s", err, job.Tail(60))
	}
	history.Await(t, "the end of the token", func() bool { return times("Token cancellation requested") == 1 })
}

// tokenFile returns a file of Hadoop's with a delegation token of the user that a ResourceManager issued to be renewed by
// yarn.
func (c *cluster) tokenFile(t *testing.T, address string) string {
	t.Helper()
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	defer calls.Close()
	at := *c
	at.Creel = &rm.Creel{Addresses: hadoop.Addresses{Client: address}}
	held := at.fetch(t, at.byTicket(t, calls, c.user, c.userKeytab))
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, token.Credentials{}.With("rm", held).Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A job holds a token of another cluster, whose ResourceManager is Hadoop's. It is renewed and cancelled there.
func TestTokenOfOtherClusterLivesAsLongAsItsJob(t *testing.T) {
	c := startSecure(t, StartKDC(t, Realm{}), "privacy", nil)
	c.startNode(t)
	other := hadoop.StartRM(t, hadoop.RM{Name: "other", Conf: c.conf.With(hadoop.Conf{
		"yarn.resourcemanager.keytab":                          c.Conf["yarn.resourcemanager.keytab"],
		"yarn.resourcemanager.delegation.token.renew-interval": "10000",
	})})
	job := c.client(t, c.user, c.userKeytab, nil).Start(t, hadoop.SleepJob,
		"-Dmapreduce.job.credentials.binary="+c.tokenFile(t, other.Client), "-m", "1", "-r", "0", "-mt", "25000")
	times := func(what string) int { return strings.Count(other.Lines("RM_DELEGATION_TOKEN"), what) }
	other.Await(t, "two renewals", func() bool { return times("Token renewal for identifier") >= 2 })
	if n := times("Token cancellation requested"); n != 0 {
		t.Errorf("the token was cancelled %d times while its job ran", n)
	}
	if err := job.Exit(); err != nil {
		t.Fatalf("%v\n%s", err, job.Tail(60))
	}
	other.Await(t, "the end of the token", func() bool { return times("Token cancellation requested") == 1 })
}
