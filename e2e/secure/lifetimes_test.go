// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// ticketTime is the lifetime of tickets in the tests that outlive them.
const ticketTime = time.Minute

// relogin lets Hadoop's programs log in again as often as such short tickets need.
var relogin = hadoop.Conf{"hadoop.kerberos.min.seconds.before.relogin": "1"}

// renewing returns a client of the cluster's user that renews its ticket.
func (c *cluster) renewing(t *testing.T) hadoop.Client {
	t.Helper()
	client := c.client(t, c.user, c.userKeytab, relogin)
	client.Env, client.Timeout = []string{"KRB5CCNAME=" + c.Login(t, c.user, c.userKeytab, "-r", "1h")}, process.Guard
	return client
}

// startWithToken starts a MapReduce job with a delegation token of its user in its credentials, like a job of a
// workflow engine. It returns when the map runs.
func (c *cluster) startWithToken(t *testing.T, length time.Duration) (token.Token, *process.Process) {
	t.Helper()
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { calls.Close() })
	held := c.fetch(t, c.byTicket(t, calls, c.user, c.userKeytab))
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, token.Credentials{}.With("rm", held).Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	// With a history server the client would need a token of it, too.
	job := c.renewing(t).Start(t, hadoop.SleepJob, "-Dmapreduce.job.credentials.binary="+file, "-Dmapreduce.jobhistory.address=",
		"-m", "1", "-r", "0", "-mt", strconv.FormatInt(length.Milliseconds(), 10))
	job.WaitLine(t, "map 0% reduce 0%")
	return held, job
}

// listByToken returns the number of applications at a client port that the owner of a token sees. The login is new.
func listByToken(ctx context.Context, address string, held token.Token) (int, error) {
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	defer calls.Close()
	answer, err := yarnrpc.NewApplicationClientProtocolClient(calls, address, hrpc.Login{Credential: &hrpc.Credential{
		Identifier: held.Identifier, Password: held.Password, Kind: held.Kind, Service: held.Service,
	}}).GetApplications(ctx, &yarnpb.GetApplicationsRequestProto{})
	return len(answer.GetApplications()), err
}

// A job runs on after all tickets have ended, its node's too, and after several intervals of its delegation token. The
// ResourceManager restarts meanwhile. The token serves until the job has ended.
func TestJobOutlivesTicketsAndTokens(t *testing.T) {
	const length = 110 * time.Second
	c := startSecure(t, StartKDC(t, Realm{Lifetime: "1m"}), "privacy", hadoop.Conf{
		"yarn.resourcemanager.delegation.token.renew-interval": "40000",
	})
	c.conf = c.conf.With(relogin)
	node := c.startNode(t)
	loggedIn := time.Now() // the node
	held, job := c.startWithToken(t, length)
	began := time.Now()
	serves := func(when string) {
		t.Helper()
		if time.Since(began) > length-10*time.Second {
			return // the job may end
		}
		if n, err := listByToken(t.Context(), c.Client, held); err != nil || n == 0 {
			t.Fatalf("the job's token, %s: %d applications, %v", when, n, err)
		}
	}
	for time.Since(loggedIn) < ticketTime+5*time.Second {
		serves("before the restart")
		time.Sleep(time.Second)
	}
	c.Restart(t)
	c.Await(t, "the node", func() bool {
		return strings.Contains(c.renewing(t).Run(t, hadoop.NodeCLI, "-list").Stdout, node.ID)
	})
	serves("after the restart")
	another := func() {
		t.Helper()
		c.renewing(t).Run(t, hadoop.SleepJob, "-m", "1", "-r", "0", "-mt", "100").OK(t)
	}
	another()
	for time.Since(began) < length-10*time.Second {
		serves("at the end")
		time.Sleep(time.Second)
	}
	if err := job.Exit(); err != nil {
		t.Fatalf("%v\n%s", err, job.Tail(60))
	}
	c.Await(t, "the end of the token", func() bool {
		_, err := listByToken(t.Context(), c.Client, held)
		return err != nil && strings.Contains(err.Error(), "is not known here")
	})
	another()
	list := c.renewing(t).Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "FINISHED").OK(t).Stdout
	if n := strings.Count(list, "SUCCEEDED"); n != 3 {
		t.Errorf("%d applications succeeded\n%s", n, list)
	}
	if failed := c.Lines("failed to renew a token"); failed != "" {
		t.Error(failed)
	}
}

// The owner cancels the token of a running job. Nothing accepts it any more, and the job, which makes no call by it,
// goes on.
func TestJobOutlivesItsCancelledToken(t *testing.T) {
	c := startSecure(t, StartKDC(t, Realm{}), "privacy", nil)
	c.startNode(t)
	held, job := c.startWithToken(t, 20*time.Second)
	client := c.byToken(t, held)
	client.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t)
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { calls.Close() })
	if _, err := c.byTicket(t, calls, c.user, c.userKeytab).CancelDelegationToken(
		t.Context(), &yarnpb.CancelDelegationTokenRequestProto{Token: held.Proto()}); err != nil {
		t.Fatal(err)
	}
	r := client.Run(t, hadoop.ApplicationCLI, "application", "-list")
	for _, want := range []string{"SecretManager$InvalidToken", "is not known here"} {
		if r.Code == 0 || !strings.Contains(r.All, want) {
			t.Errorf("a cancelled token: code %d, want %s\n%.3000s", r.Code, want, r.All)
		}
	}
	if err := job.Exit(); err != nil {
		t.Fatalf("%v\n%s", err, job.Tail(60))
	}
	c.WaitLine(t, "failed to cancel a token of an ended application")
	list := c.client(t, c.user, c.userKeytab, nil).
		Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "FINISHED").OK(t).Stdout
	if n := strings.Count(list, "SUCCEEDED"); n != 1 {
		t.Errorf("%d applications succeeded\n%s", n, list)
	}
}

// waiting is a distributed shell in a federation of two nodes. Its containers run until finish.
type waiting struct{ id, dir string }

// startWaiting starts it and returns when its containers run at both members.
func (f *secured) startWaiting(t *testing.T, client hadoop.Client) *waiting {
	t.Helper()
	w := &waiting{dir: t.TempDir()}
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	p := client.Start(t, hadoop.DistributedShell, "-jar", jar, "-num_containers", "4", "-master_memory", "256",
		"-container_memory", "128", "-timeout", "1000000", "-shell_command", fmt.Sprintf(
			"touch %[1]s/began.$NM_HOST.$CONTAINER_ID; until [ -e %[1]s/go ]; do sleep 0.2; done; "+
				"touch %[1]s/ended.$NM_HOST.$CONTAINER_ID", w.dir))
	p.Await(t, "four containers", func() bool { return len(w.marks(t, "began.")) == 4 })
	for i := range f.Subclusters {
		if len(w.marks(t, fmt.Sprintf("began.127.0.0.%d.", i+2))) == 0 {
			t.Fatalf("member %d has none of %v", i+1, w.marks(t, "began."))
		}
	}
	w.id = regexp.MustCompile(`application_\d+_\d+`).FindString(p.Output())
	return w
}

// marks returns the files that the containers left.
func (w *waiting) marks(t *testing.T, prefix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// finish lets the containers end, and waits until they and the AM have ended well by the logs of the nodes.
func (w *waiting) finish(t *testing.T, f *secured) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := regexp.MustCompile(`container_(e\d+_)?` + strings.TrimPrefix(w.id, "application_") +
		`_01_\d+ transitioned from RUNNING to EXITED_WITH_SUCCESS`)
	f.Subclusters[0].Node.Await(t, "the end of the AM and its containers", func() bool {
		n := 0
		for _, s := range f.Subclusters {
			n += len(ended.FindAllString(s.Node.Output(), -1))
		}
		return n == 5
	})
	if n := len(w.marks(t, "ended.")); n != 4 {
		t.Errorf("%d containers ended", n)
	}
}

// tokenOf adds a principal and returns a delegation token that it got from the router by its ticket.
func (f *secured) tokenOf(t *testing.T, user string) token.Token {
	t.Helper()
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	defer calls.Close()
	l := keytabLogin(t, f.config(t), user+"@"+f.Realm, f.AddPrincipal(t, user))
	renewer := service
	answer, err := yarnrpc.NewApplicationClientProtocolClient(calls, f.RouterAddresses[0].Client, hrpc.Login{
		Kerberos: rpcauth.Client(l, []gssapi.Principal{principal(t, "router/localhost@"+f.Realm)},
			[]gssapi.Protection{gssapi.Privacy}),
	}).GetDelegationToken(t.Context(), &yarnpb.GetDelegationTokenRequestProto{Renewer: &renewer})
	if err != nil {
		t.Fatal(err)
	}
	return token.FromProto(answer.GetToken())
}

// The KDC is away while a job runs over both members. The router logs in at them for a new user by the tickets that it
// has. A ResourceManager and the proxies restart, and the job goes on to its end. A router that starts then has no
// ticket, which its callers learn. It needs no other start when the KDC is back.
func TestSecureFederationOutlivesKDC(t *testing.T) {
	f := startFederation(t, "privacy", withoutNodes)
	router, at := f.Routers[0], f.RouterAddresses[0].Client
	f.run(t, "kadmin.local", "-r", f.Realm, "modprinc", "-maxlife", "1m", "router/localhost")
	router.Restart(t) // now its tickets last a minute
	loggedIn := time.Now()
	for i := range f.Subclusters {
		f.startNode(t, i)
	}
	client := f.client(t, f.cache)
	f.awaitNodes(t, client)
	job := f.startWaiting(t, client)
	alice, bob := f.tokenOf(t, "alice"), f.tokenOf(t, "bob")
	time.Sleep(time.Until(loggedIn.Add(ticketTime + time.Second)))
	if n, err := listByToken(t.Context(), at, alice); err != nil || n != 1 {
		t.Errorf("after the end of the router's first tickets: %d applications, %v", n, err)
	}

	f.KDC.process.Kill()
	if n, err := listByToken(t.Context(), at, bob); err != nil || n != 1 {
		t.Errorf("a new user at members without the KDC: %d applications, %v", n, err)
	}
	f.restartBelow(t)
	router.Restart(t)
	if n, err := listByToken(t.Context(), at, bob); err == nil || !strings.Contains(err.Error(), "no KDC of realm "+f.Realm+" answers") {
		t.Errorf("at a router without tickets: %d applications, %v", n, err)
	}
	job.finish(t, f)

	f.Serve(t)
	router.Await(t, "both members", func() bool {
		n, err := listByToken(t.Context(), at, bob)
		return err == nil && n == 1
	})
	fresh := f.client(t, f.Login(t, f.user, f.keytab))
	status := fresh.Run(t, hadoop.ApplicationCLI, "application", "-status", job.id).OK(t).Stdout
	if !strings.Contains(status, "State : FINISHED") || !strings.Contains(status, "Final-State : SUCCEEDED") {
		t.Errorf("the job\n%s", status)
	}
	f.shell(t, fresh, "default")
}

// restartBelow restarts the second ResourceManager, whose node registers again, and all proxies.
func (f *secured) restartBelow(t *testing.T) {
	t.Helper()
	s := f.Subclusters[1]
	s.RM.Restart(t)
	s.Node.Await(t, "another registration", func() bool {
		return strings.Count(s.Node.Output(), "Registered with ResourceManager as ") >= 2
	})
	for _, s := range f.Subclusters {
		s.Proxy.Restart(t)
	}
}
