// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/federation"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/token"
)

// halves spreads applications and their containers over both members.
const halves = `{"home":{"policy":"weighted","weights":{"sc-1":1,"sc-2":1}},` +
	`"split":{"policy":"locality","weights":{"sc-1":1,"sc-2":1},"headroomAlpha":0}}`

// secured is a federation with Kerberos: two of creel's ResourceManagers with Hadoop's NodeManagers, creel's router and
// proxies. Its principals have localhost as their host, its web ports the address at which they are called.
type secured struct {
	*KDC
	*federation.Federation
	user    string // an administrator
	keytab  string // of user
	cache   string // with a ticket of user
	conf    hadoop.Conf
	daemons hadoop.Conf // conf, and the settings of creel's daemons and of members
	tls     *webTLS     // of all web ports, nil for none
}

// withoutNodes leaves out the NodeManagers of a federation.
const withoutNodes = false

func startFederation(t *testing.T, protection string, nodes bool) *secured {
	t.Helper()
	f := startMembers(t, protection, 2)
	for i := range f.Subclusters {
		if nodes {
			f.startNode(t, i)
		}
	}
	return f
}

// startMembers starts a federation with a number of creel's ResourceManagers and no nodes.
func startMembers(t *testing.T, protection string, members int, more ...hadoop.Conf) *secured {
	t.Helper()
	return startMembersIn(t, StartKDC(t, Realm{}), protection, members, more...)
}

// startMembersIn is startMembers in a realm.
func startMembersIn(t *testing.T, k *KDC, protection string, members int, more ...hadoop.Conf) *secured {
	t.Helper()
	k.setenv(t)
	f := &secured{KDC: k, user: hadoop.OSUser(t)}
	node, web := k.AddPrincipal(t, "nm/localhost"), k.AddPrincipal(t, "HTTP/127.0.0.1")
	f.conf = hadoop.Conf{
		"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": protection,
		"yarn.resourcemanager.principal": "yarn/localhost@" + k.Realm,
		"yarn.nodemanager.principal":     "nm/localhost@" + k.Realm,
		"yarn.nodemanager.keytab":        node,
	}
	f.daemons = f.conf.With(hadoop.Conf{
		"creel.cluster.secret-file":                      filepath.Join(t.TempDir(), "cluster-secret"),
		"yarn.resourcemanager.keytab":                    k.AddPrincipal(t, "yarn/localhost"),
		"yarn.router.kerberos.principal":                 "router/localhost@" + k.Realm,
		"yarn.router.keytab.file":                        k.AddPrincipal(t, "router/localhost"),
		"hadoop.http.authentication.type":                "kerberos",
		"hadoop.http.authentication.kerberos.principal":  "HTTP/127.0.0.1@" + k.Realm,
		"hadoop.http.authentication.kerberos.keytab":     web,
		"yarn.resourcemanager.webapp.spnego-principal":   "HTTP/127.0.0.1@" + k.Realm,
		"yarn.resourcemanager.webapp.spnego-keytab-file": web,
		// Routers and proxies act for their users, and routers see all applications.
		"hadoop.proxyuser.router.hosts": "*", "hadoop.proxyuser.router.groups": "*",
		"hadoop.proxyuser.nm.hosts": "*", "hadoop.proxyuser.nm.groups": "*",
		"hadoop.proxyuser.gate.hosts": "*", "hadoop.proxyuser.gate.users": f.user,
		"yarn.acl.enable": "true", "yarn.admin.acl": f.user + ",router",
		"yarn.scheduler.capacity.root.acl_administer_queue":         " ",
		"yarn.scheduler.capacity.root.default.acl_administer_queue": " ",
	}).With(more...)
	options := federation.Options{
		Subclusters: members, Routers: 1, NoNodes: true, NoWait: true, Policy: halves, Conf: f.daemons,
	}
	if f.daemons["creel.store.url"] != "" {
		options.Policy = "" // Hadoop's store has policies for queues below the root alone
	}
	f.Federation = federation.Start(t, options)
	f.keytab = k.AddPrincipal(t, f.user)
	f.cache = k.Login(t, f.user, f.keytab)
	return f
}

// startNode starts the NodeManager of a member.
func (f *secured) startNode(t *testing.T, member int, more ...hadoop.Conf) {
	t.Helper()
	s := f.Subclusters[member]
	s.Node = hadoop.StartNM(t, hadoop.NM{
		Name: "nm-" + s.ID, Host: fmt.Sprintf("127.0.0.%d", member+2), RM: s.Addresses,
		Conf: f.conf.With(more...).With(hadoop.Conf{
			"yarn.nodemanager.admin-env":   f.java(),
			"yarn.log-aggregation-enable":  "false", // without Hadoop's native library
			"mapreduce.jobhistory.address": "",
		}),
	})
}

// clientConf returns the settings of the router's clients.
func (f *secured) clientConf() hadoop.Conf { return f.clientConfOf(0) }

// clientConfOf returns the settings of clients of one of several routers.
func (f *secured) clientConfOf(router int) hadoop.Conf {
	return f.ClientConf(router).With(f.conf, hadoop.Conf{
		"yarn.resourcemanager.principal": "router/localhost@" + f.Realm,
		"mapreduce.jobhistory.address":   "", "yarn.log-aggregation-enable": "false",
	})
}

// client returns a client of the router with a ticket cache.
func (f *secured) client(t *testing.T, cache string, more ...hadoop.Conf) hadoop.Client {
	t.Helper()
	return hadoop.Client{
		Timeout: 2 * time.Minute,
		Conf:    f.clientConf().With(more...),
		Env:     []string{"KRB5CCNAME=" + cache},
	}.Setup(t)
}

// awaitNodes waits until the router lists the nodes of both members.
func (f *secured) awaitNodes(t *testing.T, client hadoop.Client) {
	t.Helper()
	f.Routers[0].Await(t, "the nodes of both members", func() bool {
		out := client.Run(t, hadoop.NodeCLI, "-list").Stdout
		return strings.Contains(out, f.Subclusters[0].Node.ID) && strings.Contains(out, f.Subclusters[1].Node.ID)
	})
}

// Hadoop's clients and NodeManagers run jobs over a federation in which every call has a login: client and router by
// ticket, router and member by ticket for the user, AM and proxy by token, proxy and members by ticket and by token.
func TestSecureFederationRunsJobsAtEachProtection(t *testing.T) {
	for _, p := range []gssapi.Protection{gssapi.Privacy, gssapi.Integrity, gssapi.Authentication} {
		t.Run(p.String(), func(t *testing.T) {
			f := startFederation(t, p.String(), true)
			client := f.client(t, f.cache)
			f.awaitNodes(t, client)
			f.shell(t, client, "default")
			client.Run(t, hadoop.SleepJob, "-m", "4", "-r", "0", "-mt", "100").OK(t)
			list := client.Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "FINISHED").OK(t).Stdout
			if n := strings.Count(list, "SUCCEEDED"); n != 2 {
				t.Errorf("%d applications succeeded\n%s", n, list)
			}
		})
	}
}

// shell runs a distributed shell in a queue. Its containers must run at both members.
func (f *secured) shell(t *testing.T, client hadoop.Client, queue string) {
	t.Helper()
	dir := t.TempDir()
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	shell := client.Run(t, hadoop.DistributedShell, "-jar", jar, "-num_containers", "4", "-master_memory", "256",
		"-container_memory", "128", "-timeout", "100000", "-queue", queue, "-shell_command", "touch "+dir+"/$NM_HOST").OK(t)
	hosts, err := os.ReadDir(dir)
	if err != nil || len(hosts) != 2 || !strings.Contains(shell.All, "Application completed successfully") {
		t.Errorf("distributed shell in %s on %v, %v\n%.5000s", queue, hosts, err, shell.All)
	}
}

// router is the router's web port, for curl and creel's commands.
func (f *secured) router() *cluster {
	c := &cluster{KDC: f.KDC, Creel: &rm.Creel{Addresses: f.RouterAddresses[0]}, user: f.user}
	if f.tls != nil {
		c.secure = &webTLS{address: c.Web, certificate: f.tls.certificate}
	}
	return c
}

// The router acts at members for the user that a caller proves, and for no other.
func TestSecureRouterActsForItsCallersAlone(t *testing.T) {
	f := startFederation(t, "privacy", withoutNodes)
	client, at := f.client(t, f.cache), f.router()
	alice, bob, gate := at.browser(t, "alice"), at.browser(t, "bob"), at.browser(t, "gate")
	f.Routers[0].Await(t, "both members", func() bool {
		return strings.Count(alice.call(t, "GET", "/api/v1/subclusters").body, `"active"`) == 2
	})

	// The web port: tickets, then cookies; a name in the query is no login.
	nobody := browser{c: at}
	for _, path := range []string{allApps, "/api/v1/apps", "/conf", "/"} {
		nobody.call(t, "GET", path+"?user.name="+f.user).is(t, "GET "+path, "401", notLogIn)
	}
	nobody.call(t, "GET", "/readyz").is(t, "health", "200", "")
	id := alice.submit(t, "?user.name="+f.user)
	alice.call(t, "GET", allApps+"/"+id).is(t, "her application", "200", `"user":"alice"`)
	bob.kill(t, id, "?user.name=alice").is(t, "another's kill", "403", "bob")
	bob.kill(t, id, "?doAs=alice").is(t, "doAs without right", "403", "User: bob is not allowed to impersonate alice")
	gate.kill(t, id, "?doAs=alice").is(t, "doAs for another user", "403", "User: gate is not allowed to impersonate alice")
	gate.kill(t, id, "?doAs="+f.user).is(t, "doAs of an administrator", "202", "")

	// RPC: Hadoop's clients by ticket, and nothing less.
	client.Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "ALL").OK(t)
	refused := func(name string, r hadoop.Result, want string) {
		t.Helper()
		if r.Code == 0 || !strings.Contains(r.All, want) {
			t.Errorf("%s: code %d\n%.4000s\nwant %s", name, r.Code, r.All, want)
		}
	}
	list := func(c hadoop.Client) hadoop.Result { return c.Run(t, hadoop.ApplicationCLI, "application", "-list") }
	refused("without a ticket", list(f.client(t, filepath.Join(t.TempDir(), "none"))),
		"Client cannot authenticate via:[TOKEN, KERBEROS]")
	simple := f.client(t, f.cache, hadoop.Conf{"hadoop.security.authentication": "simple"})
	simple.User = f.user
	refused("by a bare name", list(simple), "SIMPLE authentication is not enabled")
	refused("an administrator's call", f.client(t, bob.cache).Run(t, hadoop.RMAdminCLI, "-refreshQueues"), "bob")
	client.Run(t, hadoop.RMAdminCLI, "-refreshQueues").OK(t)

	// creel's commands.
	server := "http://" + at.Web
	if all, code := at.creel(t, server, []string{"KRB5CCNAME=" + bob.cache}, "app", "list"); code != 0 ||
		!strings.Contains(all, id) {
		t.Errorf("creel app list: code %d\n%s", code, all)
	}
	if all, code := at.creel(t, server, []string{"KRB5CCNAME=/nowhere/cache"}, "app", "list"); code != 4 {
		t.Errorf("creel app list without a ticket: code %d\n%s", code, all)
	}

	// A delegation token of the router serves RPC and the web port, and issues no other. It serves while the KDC is away.
	issued := alice.call(t, "POST", "/ws/v1/cluster/delegation-token", "--header", asJSON,
		"--data", `{"renewer":"yarn/localhost@`+f.Realm+`"}`)
	var doc struct{ Token, Renewer, Owner string }
	if err := json.Unmarshal([]byte(issued.body), &doc); err != nil || doc.Owner != "alice" || doc.Renewer != "yarn" {
		t.Fatalf("%s %s: %v", issued.status, issued.body, err)
	}
	held, err := token.ParseURLString(doc.Token)
	if err != nil {
		t.Fatal(err)
	}
	held.Service = at.Client
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, token.Credentials{}.With("router", held).Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	f.refusesForeignLogins(t, alice, doc.Token)
	f.KDC.process.Kill()
	byToken := f.client(t, filepath.Join(t.TempDir(), "none"))
	byToken.Env = append(byToken.Env, "HADOOP_TOKEN_FILE_LOCATION="+file)
	byToken.Run(t, hadoop.ApplicationCLI, "application", "-status", id).OK(t)
	show := []string{"--header", "X-Hadoop-Delegation-Token: " + doc.Token}
	nobody.call(t, "GET", whoAmI+"?doAs="+f.user, show...).is(t, "a token", "200", `"requestedUser":"alice"`)
	nobody.call(t, "POST", "/ws/v1/cluster/delegation-token",
		append(show, "--header", asJSON, "--data", `{"renewer":"yarn"}`)...).is(t, "a token for a token", "403", "only with kerberos")
	nobody.call(t, "GET", whoAmI, "--header", "X-Hadoop-Delegation-Token: "+doc.Token+"A").is(t, "a damaged token", "403", "")
}

// refusesForeignLogins shows delegation tokens and cookies to daemons that did not issue them.
func (f *secured) refusesForeignLogins(t *testing.T, alice browser, ofRouter string) {
	t.Helper()
	var at []*cluster // the members, then the router
	for _, s := range f.Subclusters {
		at = append(at, &cluster{KDC: f.KDC, Creel: &rm.Creel{Addresses: s.Addresses}, user: f.user})
	}
	at = append(at, f.router())
	tokens := []string{"", "", ofRouter}
	for i := range f.Subclusters {
		there := browser{at[i], alice.cache, ""}
		issued := there.call(t, "POST", "/ws/v1/cluster/delegation-token", "--header", asJSON, "--data", `{"renewer":"yarn"}`)
		var doc struct{ Token string }
		if err := json.Unmarshal([]byte(issued.body), &doc); err != nil {
			t.Fatalf("%s %s: %v", issued.status, issued.body, err)
		}
		tokens[i] = doc.Token
	}
	for issuer, text := range tokens {
		for i, c := range at {
			r := browser{c: c}.call(t, "GET", whoAmI, "--header", "X-Hadoop-Delegation-Token: "+text)
			if i == issuer {
				r.is(t, "a token at its issuer", "200", `"requestedUser":"alice"`)
			} else {
				r.is(t, fmt.Sprintf("the token of %d at %d", issuer, i), "403", "")
			}
		}
	}
	for i := range f.Subclusters {
		browser{at[i], "", alice.cookies}.call(t, "GET", whoAmI).is(t, "the router's cookie at a member", "401", notLogIn)
	}
}
