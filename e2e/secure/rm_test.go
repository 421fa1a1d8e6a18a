// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func TestMain(m *testing.M) { rm.Main(m) }

// cluster is a secure ResourceManager with a NodeManager of Hadoop's. Its user is the operating system's: the files of
// a job belong to it.
type cluster struct {
	*KDC
	*rm.Creel
	user, userKeytab, nodeKeytab string
	secure                       *webTLS     // of the web port; nil: HTTP
	conf                         hadoop.Conf // of clients and nodes
}

// atLocalhost names an address by the host of the principals.
func atLocalhost(t testing.TB) string {
	t.Helper()
	_, port, err := net.SplitHostPort(process.FreeAddress(t, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return "localhost:" + port
}

// java is the variable by which JVMs find the realm.
func (k *KDC) java() string { return "JDK_JAVA_OPTIONS=-Djava.security.krb5.conf=" + k.ConfigFile() }

// setenv lets all programs of the test find the realm by their environment.
func (k *KDC) setenv(t *testing.T) {
	t.Helper()
	t.Setenv("KRB5_CONFIG", k.ConfigFile())
	t.Setenv("JDK_JAVA_OPTIONS", "-Djava.security.krb5.conf="+k.ConfigFile())
}

// newCluster returns a cluster without a ResourceManager yet.
func newCluster(t *testing.T, k *KDC, protection string) *cluster {
	t.Helper()
	k.setenv(t)
	c := &cluster{KDC: k, user: hadoop.OSUser(t)}
	c.userKeytab, c.nodeKeytab = k.AddPrincipal(t, c.user), k.AddPrincipal(t, "nm/localhost")
	c.conf = hadoop.Conf{
		"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": protection,
		"yarn.resourcemanager.principal": "yarn/_HOST@" + k.Realm,
		"yarn.nodemanager.principal":     "nm/localhost@" + k.Realm,
		"yarn.nodemanager.keytab":        c.nodeKeytab,
		"yarn.nodemanager.admin-env":     k.java(),
		"mapreduce.jobhistory.address":   "", // no tokens of a history server
		// Hadoop's native library is not here, without which secure nodes neither aggregate logs nor shuffle.
		"yarn.log-aggregation-enable": "false",
	}
	return c
}

// startRM starts the cluster's ResourceManager, whose principal is yarn/HOST.
func (c *cluster) startRM(t *testing.T, host string, o rm.Options) {
	t.Helper()
	o.Conf = c.conf.With(hadoop.Conf{
		"yarn.nodemanager.principal":  "nm/_HOST@" + c.Realm,
		"yarn.resourcemanager.keytab": c.AddPrincipal(t, "yarn/"+host),
		"yarn.acl.enable":             "true", "yarn.admin.acl": c.user,
	}, o.Conf)
	c.Creel = rm.Start(t, o)
}

// startSecure starts a ResourceManager.
func startSecure(t *testing.T, k *KDC, protection string, more hadoop.Conf) *cluster {
	t.Helper()
	c := newCluster(t, k, protection)
	c.startRM(t, "localhost", rm.Options{Conf: more, Addresses: hadoop.Addresses{
		Client: atLocalhost(t), Scheduler: atLocalhost(t), Tracker: atLocalhost(t), Admin: atLocalhost(t), Web: atLocalhost(t),
	}})
	return c
}

// startNode starts a NodeManager and waits until it has registered.
func (c *cluster) startNode(t *testing.T) *hadoop.NodeManager {
	t.Helper()
	return hadoop.StartNM(t, hadoop.NM{RM: c.Addresses, Conf: c.conf})
}

// client returns a client with a ticket of a user.
func (c *cluster) client(t *testing.T, user, keytab string, more hadoop.Conf) hadoop.Client {
	t.Helper()
	return hadoop.Client{
		Timeout: time.Minute,
		Conf:    c.Addresses.Conf().With(c.conf, more), Env: []string{"KRB5CCNAME=" + c.Login(t, user, keytab)},
	}.Setup(t)
}

func TestSecureClusterRunsJobsAtEachProtection(t *testing.T) {
	for _, p := range []gssapi.Protection{gssapi.Privacy, gssapi.Integrity, gssapi.Authentication} {
		t.Run(p.String(), func(t *testing.T) {
			c := startSecure(t, StartKDC(t, Realm{}), p.String(), nil)
			node := c.startNode(t)
			client := c.client(t, c.user, c.userKeytab, nil)
			if out := client.Run(t, hadoop.NodeCLI, "-list").OK(t).Stdout; !strings.Contains(out, node.ID) {
				t.Errorf("nodes\n%s", out)
			}
			touched := filepath.Join(t.TempDir(), "touched")
			jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
			shell := client.Run(t, hadoop.DistributedShell, "-jar", jar, "-num_containers", "2", "-master_memory", "256",
				"-container_memory", "128", "-timeout", "100000", "-shell_command", "touch "+touched).OK(t)
			if _, err := os.Stat(touched); err != nil || !strings.Contains(shell.All, "Application completed successfully") {
				t.Errorf("distributed shell: %v\n%.3000s", err, shell.All)
			}
			client.Run(t, hadoop.SleepJob, "-m", "2", "-r", "0", "-mt", "100").OK(t)
			list := client.Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "FINISHED").OK(t).Stdout
			if n := strings.Count(list, "SUCCEEDED"); n != 2 {
				t.Errorf("%d applications succeeded\n%s", n, list)
			}
		})
	}
}

// Hadoop's own clients and NodeManager, without what they need.
func TestSecureResourceManagerRejectsHostileCallers(t *testing.T) {
	c := startSecure(t, StartKDC(t, Realm{}), "privacy", nil)
	me := c.client(t, c.user, c.userKeytab, nil)
	me.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t)
	alice := c.AddPrincipal(t, "alice")
	refused := func(name string, r hadoop.Result, want string) {
		t.Helper()
		if r.Code == 0 || !strings.Contains(r.All, want) {
			t.Errorf("%s: code %d\n%.4000s\nwant %s", name, r.Code, r.All, want)
		}
	}
	list := func(client hadoop.Client) hadoop.Result {
		return client.Run(t, hadoop.ApplicationCLI, "application", "-list")
	}
	none := me
	none.Env = []string{"KRB5CCNAME=" + filepath.Join(t.TempDir(), "empty")}
	refused("without a ticket", list(none), "Client cannot authenticate via:[TOKEN, KERBEROS]")
	simple := c.client(t, "alice", alice, hadoop.Conf{"hadoop.security.authentication": "simple"})
	simple.User = c.user
	refused("by a bare name", list(simple), "SIMPLE authentication is not enabled")
	refused("with less protection", list(c.client(t, "alice", alice, hadoop.Conf{"hadoop.rpc.protection": "integrity"})),
		"No common protection layer between client and server")
	refused("an administrator's call", c.client(t, "alice", alice, nil).Run(t, hadoop.RMAdminCLI, "-refreshNodes"),
		"User alice doesn't have permission")

	// The web port believes no name, even an administrator's.
	for _, k := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/ws/v1/cluster/info", http.StatusOK},
		{http.MethodPost, "/ws/v1/cluster/apps/new-application?user.name=" + c.user, http.StatusForbidden},
		{http.MethodPut, "/api/v1/drains/localhost?user.name=" + c.user, http.StatusForbidden},
	} {
		request, err := http.NewRequestWithContext(t.Context(), k.method, "http://"+c.Web+k.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != k.status {
			t.Errorf("%s %s: %s", k.method, k.path, answer.Status)
		}
	}

	// A user with a ticket is no NodeManager.
	stranger := hadoop.LaunchNM(t, hadoop.NM{RM: c.Addresses, Conf: c.conf.With(hadoop.Conf{
		"yarn.nodemanager.principal": "alice", "yarn.nodemanager.keytab": alice,
	})})
	stranger.WaitLine(t, "this service is only accessible by nm/_HOST@"+c.Realm)
	if out := me.Run(t, hadoop.NodeCLI, "-list", "-all").OK(t).Stdout; !strings.Contains(out, "Total Nodes:0") {
		t.Errorf("nodes\n%s", out)
	}
}

// byTicket calls the ResourceManager as a principal of a keytab.
func (c *cluster) byTicket(
	t *testing.T, calls *hrpc.Client, name, keytab string,
) yarnrpc.ApplicationClientProtocolClient {
	t.Helper()
	l := keytabLogin(t, c.config(t), name+"@"+c.Realm, keytab)
	return yarnrpc.NewApplicationClientProtocolClient(calls, c.Client, hrpc.Login{Kerberos: rpcauth.Client(
		l, []gssapi.Principal{principal(t, service)}, []gssapi.Protection{gssapi.Privacy})})
}

// fetch gets a delegation token that the ResourceManager may renew.
func (c *cluster) fetch(t *testing.T, client yarnrpc.ApplicationClientProtocolClient) token.Token {
	t.Helper()
	renewer := service
	answer, err := client.GetDelegationToken(t.Context(), &yarnpb.GetDelegationTokenRequestProto{Renewer: &renewer})
	if err != nil {
		t.Fatal(err)
	}
	held := token.FromProto(answer.GetToken())
	held.Service = strings.Replace(c.Client, "localhost", "127.0.0.1", 1)
	return held
}

// byToken returns Hadoop's client with a delegation token and without a ticket.
func (c *cluster) byToken(t *testing.T, held token.Token) hadoop.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, token.Credentials{}.With("rm", held).Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	client := c.client(t, c.user, c.userKeytab, nil)
	client.Env = []string{"HADOOP_TOKEN_FILE_LOCATION=" + file, "KRB5CCNAME=" + filepath.Join(t.TempDir(), "empty")}
	return client
}

// A delegation token serves Hadoop's client without a ticket, until it is cancelled. It begets no other token.
func TestDelegationTokensNeedTickets(t *testing.T) {
	c := startSecure(t, StartKDC(t, Realm{}), "privacy", nil)
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { calls.Close() })
	alice := c.byTicket(t, calls, "alice", c.AddPrincipal(t, "alice"))
	held := c.fetch(t, alice)
	client, renewer := c.byToken(t, held), service
	client.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t)
	client.Run(t, hadoop.QueueCLI, "-status", "default").OK(t)

	login := hrpc.Login{Credential: &hrpc.Credential{
		Identifier: held.Identifier, Password: held.Password, Kind: held.Kind, Service: held.Service,
	}}
	_, err := yarnrpc.NewApplicationClientProtocolClient(calls, c.Client, login).
		GetDelegationToken(t.Context(), &yarnpb.GetDelegationTokenRequestProto{Renewer: &renewer})
	if err == nil || !strings.Contains(err.Error(), "only with kerberos authentication") {
		t.Errorf("a token for a token: %v", err)
	}
	rm := c.byTicket(t, calls, "yarn/localhost", c.Conf["yarn.resourcemanager.keytab"])
	if _, err := rm.RenewDelegationToken(
		t.Context(), &yarnpb.RenewDelegationTokenRequestProto{Token: held.Proto()}); err != nil {
		t.Errorf("renew: %v", err)
	}
	if _, err := alice.CancelDelegationToken(
		t.Context(), &yarnpb.CancelDelegationTokenRequestProto{Token: held.Proto()}); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if r := client.Run(t, hadoop.ApplicationCLI, "application", "-list"); r.Code == 0 ||
		!strings.Contains(r.All, "is not known here") {
		t.Errorf("a cancelled token: code %d\n%.3000s", r.Code, r.All)
	}
}
