// SPDX-License-Identifier: Apache-2.0

package role

import (
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster/rm/renewal"
)

// writeKeytab writes a keytab with a key of a type for service/host@REALM.
func writeKeytab(t *testing.T, service, host string, kind, size int) string {
	t.Helper()
	text := func(b []byte, s string) []byte { return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	e := binary.BigEndian.AppendUint16(nil, 2)
	e = text(text(text(e, "REALM"), service), host)
	e = append(binary.BigEndian.AppendUint64(e, 1<<32), 1) // type and time, version
	e = text(binary.BigEndian.AppendUint16(e, uint16(kind)), strings.Repeat("k", size))
	path := filepath.Join(t.TempDir(), "keytab")
	b := append(binary.BigEndian.AppendUint32([]byte{5, 2}, uint32(len(e))), e...)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kerberized returns the settings of a secure ResourceManager; defines come last.
func kerberized(t *testing.T, defines ...string) *settings.Settings {
	t.Helper()
	return minimal(t, append(kerberosDefines(t), defines...)...)
}

func kerberosDefines(t *testing.T) []string {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "krb5.conf")
	if err := os.WriteFile(conf, []byte("[libdefaults]\ndefault_realm = REALM\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KRB5_CONFIG", conf)
	return []string{
		"hadoop.security.authentication=kerberos", "yarn.resourcemanager.principal=rm/_HOST",
		"yarn.resourcemanager.address=rm1.test:8032", "yarn.nodemanager.principal=nm/_HOST@REALM",
		"yarn.resourcemanager.keytab=" + writeKeytab(t, "rm", "rm1.test", 18, 32),
	}
}

func TestSecureRMTakesTicketsAndTokensAlone(t *testing.T) {
	c, err := RMSettings(kerberized(t, "hadoop.rpc.protection=privacy,integrity"), nil)
	if err != nil {
		t.Fatal(err)
	}
	k := c.Ports.RPC.Kerberos
	if k == nil || k.Protocol != "rm" || k.ServerID != "rm1.test" {
		t.Errorf("the service is %+v", k)
	}
	if p := c.Ports.RPC.Protections; len(p) != 2 || p[0] != hrpc.Privacy || p[1] != hrpc.Integrity {
		t.Errorf("protections %q", p)
	}
	if c.RM.Secure == nil || c.Ports.Node == nil || !c.REST.Nameless || !c.WebServer.ReadOnly {
		t.Error("a part of the ResourceManager is not secure")
	}
	for name, want := range map[string]string{"alice@REALM": "alice", "alice@OTHER": ""} {
		if got, err := c.Ports.RPC.Names.Short(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if files := c.Secrets; len(files) != 1 || filepath.Base(files[0]) != "keytab" {
		t.Errorf("secret files %q", files)
	}
}

func TestIncompleteKerberosStopsTheStart(t *testing.T) {
	for define, want := range map[string]string{
		"yarn.resourcemanager.principal=":                  "yarn.resourcemanager.principal is not set",
		"yarn.resourcemanager.principal=rm@REALM":          "has no AES key of rm@REALM",
		"yarn.resourcemanager.principal=rm/rm2.test@REALM": "has no AES key of rm/rm2.test@REALM",
		"yarn.resourcemanager.principal=rm/a@b@c":          "has two realms",
		"yarn.resourcemanager.address=10.0.0.1:8032":       "_HOST needs a host name in yarn.resourcemanager.address",
		"yarn.resourcemanager.keytab=/nowhere/keytab":      "keytab /nowhere/keytab does not exist",
		"yarn.nodemanager.principal=":                      "yarn.nodemanager.principal is not set",
		"hadoop.rpc.protection=secrecy":                    `"secrecy" is none of authentication, integrity and privacy`,
		"hadoop.security.auth_to_local=RULE:[1":            "invalid rule",
		"creel.store.url=redis://r:6379":                   "a secret in the store would let its readers forge tokens",
		"hadoop.http.authentication.type=kerberos":         "webapp.spnego-principal is not set",
	} {
		err := Check(kerberized(t, define), settings.RM)
		if !settings.IsProblem(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", define, err, want)
		}
	}
	weak := writeKeytab(t, "rm", "rm1.test", 23, 16)
	if err := Check(kerberized(t, "yarn.resourcemanager.keytab="+weak), settings.RM); err == nil ||
		!strings.Contains(err.Error(), "no AES key") {
		t.Errorf("a keytab with RC4 alone: %v", err)
	}
	s := kerberized(t)
	t.Setenv("KRB5_CONFIG", "/nowhere/krb5.conf")
	if err := Check(s, settings.RM); err == nil || !strings.Contains(err.Error(), "has no realm") {
		t.Errorf("without a krb5.conf: %v", err)
	}
}

// secureRouter returns the settings of a secure router; defines come last.
func secureRouter(t *testing.T, defines ...string) *settings.Settings {
	t.Helper()
	return minimal(t, append(routerDefines(t), defines...)...)
}

func routerDefines(t *testing.T) []string {
	t.Helper()
	return append(kerberosDefines(t),
		"yarn.router.kerberos.principal=router/_HOST", "yarn.router.clientrm.address=r1.test:8050",
		"yarn.router.keytab.file="+writeKeytab(t, "router", "r1.test", 18, 32),
		"hadoop.http.authentication.type=kerberos", "hadoop.http.authentication.kerberos.principal=HTTP/_HOST",
		"hadoop.http.authentication.kerberos.keytab="+writeKeytab(t, "HTTP", "r1.test", 18, 32),
		"hadoop.proxyuser.oozie.hosts=*", "hadoop.proxyuser.oozie.users=alice",
		"yarn.router.webapp.address=r1.test:8089", "hadoop.rpc.protection=privacy",
		"creel.cluster.secret-file="+filepath.Join(t.TempDir(), "secret"), "creel.store.url=redis://r:6379")
}

func TestSecureRouterLogsInAsItsPrincipal(t *testing.T) {
	c, err := RouterSettings(secureRouter(t, "creel.router.proxy-user=other"))
	if err != nil {
		t.Fatal(err)
	}
	if k := c.RPC.Kerberos; k == nil || k.Protocol != "router" || k.ServerID != "r1.test" {
		t.Errorf("the service is %+v", k)
	}
	if c.Remote.User != "router" || c.Remote.Ticket == nil || c.Remote.Ticket.Service.String() != "rm/_HOST@REALM" {
		t.Errorf("as a client it is %q with %+v", c.Remote.User, c.Remote.Ticket)
	}
	if c.Site.Tickets == nil || c.TokenNames == nil || c.WebHost != "r1.test" ||
		len(c.RPC.Protections) != 1 || c.RPC.Protections[0] != hrpc.Privacy {
		t.Error("a part of the router is not secure")
	}
	at := netip.MustParseAddr("10.0.0.7")
	if err := c.Site.ActFor("oozie", "alice", at); err != nil {
		t.Error(err)
	}
	if err := c.RPC.Impersonate("oozie", "bob", at); err == nil {
		t.Error("oozie may act for bob")
	}
}

func TestSecureRouterRejectsBareNames(t *testing.T) {
	c, err := RouterSettings(secureRouter(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Client, c.Admin, c.Web = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	r, err := NewRouter(c, memory.New(memory.NewState("test", nil), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	running := r.Start()
	defer running.Stop()
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	defer calls.Close()
	as := hrpc.Login{User: "alice"}
	_, err = yarnrpc.NewApplicationClientProtocolClient(calls, r.Address("client"), as).
		GetClusterMetrics(t.Context(), &yarnpb.GetClusterMetricsRequestProto{})
	if err == nil || !strings.Contains(err.Error(), "SIMPLE authentication is not enabled") {
		t.Errorf("the client port: %v", err)
	}
	_, err = yarnrpc.NewResourceManagerAdministrationProtocolClient(calls, r.Address("admin"), as).
		RefreshNodes(t.Context(), &yarnpb.RefreshNodesRequestProto{})
	if err == nil || !strings.Contains(err.Error(), "SIMPLE authentication is not enabled") {
		t.Errorf("the admin port: %v", err)
	}
	_, port, err := net.SplitHostPort(r.Address("web")) // its name is in the record
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get("http://127.0.0.1:" + port + "/ws/v1/cluster/apps?user.name=alice")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("the web port: %s", answer.Status)
	}
}

func TestSecureProxyLogsInAsItsNode(t *testing.T) {
	c, err := ProxySettings(secureRouter(t, "hadoop.http.authentication.type=simple", "yarn.nodemanager.principal=nm/n1.test@REALM",
		"yarn.nodemanager.keytab="+writeKeytab(t, "nm", "n1.test", 18, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if c.Login.User != "nm" || c.Login.Ticket == nil || len(c.RPC.Protections) != 1 || c.RPC.Kerberos != nil {
		t.Errorf("login %+v, protections %q", c.Login, c.RPC.Protections)
	}
}

func TestSecureAgentLogsInAsItsResourceManager(t *testing.T) {
	c, err := AgentSettings(secureRouter(t, "creel.router.proxy-user=other", "creel.subcluster.id=sc-2",
		"yarn.resourcemanager.address=rm1.test:8032", "yarn.resourcemanager.principal=rm/_HOST@REALM",
		"yarn.resourcemanager.keytab="+writeKeytab(t, "rm", "rm1.test", 18, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if c.Login.User != "rm" || c.Login.Ticket == nil || c.Login.Ticket.Keytab.Principal.String() != "rm/rm1.test@REALM" {
		t.Errorf("login %+v", c.Login)
	}
	if c.Member.Addresses.Client != "rm1.test:8032" {
		t.Errorf("published is %s: tickets are for names", c.Member.Addresses.Client)
	}
}

func TestLoginsAreRelayedOnlyWithoutProtection(t *testing.T) {
	for _, c := range []struct {
		accepts []hrpc.Protection
		want    bool
	}{
		{nil, true}, // simple authentication
		{[]hrpc.Protection{hrpc.Privacy, hrpc.Authentication}, true},
		{[]hrpc.Protection{hrpc.Privacy}, false},
		{[]hrpc.Protection{hrpc.Integrity}, false},
	} {
		if mayRelay(c.accepts) != c.want {
			t.Errorf("%q", c.accepts)
		}
	}
}

func TestIncompleteSecureFederationStopsTheStart(t *testing.T) {
	for _, c := range []struct {
		role         settings.Role
		define, want string
	}{
		{settings.Router, "yarn.router.kerberos.principal=", "yarn.router.kerberos.principal is not set"},
		{settings.Router, "yarn.router.keytab.file=/nowhere/keytab", "keytab /nowhere/keytab does not exist"},
		{settings.Router, "yarn.router.kerberos.principal.hostname=r2.test", "no AES key of router/r2.test@REALM"},
		{settings.Router, "yarn.resourcemanager.principal=", "yarn.resourcemanager.principal is not set"},
		{settings.Router, "hadoop.http.authentication.type=simple", "must log in at the web port"},
		{settings.Router, "hadoop.http.authentication.kerberos.keytab=/nowhere/web", "keytab /nowhere/web does not exist"},
		{settings.Router, "hadoop.security.auth_to_local=RULE:[1:$1]", "no rule"},
		{settings.Router, "creel.cluster.secret-file=", "a secret in the store would let its readers forge tokens"},
		{settings.Proxy, "creel.cluster.secret-file=", "a secret in the store would let its readers forge tokens"},
		{settings.Rebalancer, "creel.cluster.secret-file=", "a secret in the store would let its readers forge tokens"},
		{settings.Proxy, "yarn.nodemanager.principal=nm/n2.test@REALM", "keytab"},
		{settings.Agent, "hadoop.http.authentication.type=simple", "must log in at the web port"},
		{settings.Agent, "yarn.resourcemanager.keytab=", "yarn.resourcemanager.keytab: it is not set"},
	} {
		err := Check(secureRouter(t, c.define), c.role)
		if !settings.IsProblem(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v\nwant %s", c.role, c.define, err, c.want)
		}
	}
}

func TestOpenAdministrationIsWarnedOf(t *testing.T) {
	for acl, warns := range map[string]bool{"*": true, "root,dr.who": true, "root": false, " ": false} {
		got := Warnings(kerberized(t, "yarn.admin.acl="+acl), settings.RM)
		if (len(got) > 0) != warns || warns && !strings.Contains(got[0], "includes dr.who") {
			t.Errorf("%q: %q", acl, got)
		}
	}
}

func TestDefaultRuleNeedsRealm(t *testing.T) {
	s := kerberized(t, "yarn.resourcemanager.principal=rm/rm1.test@REALM")
	t.Setenv("KRB5_CONFIG", "/nowhere/krb5.conf")
	if err := Check(s, settings.RM); err == nil || !strings.Contains(err.Error(), "DEFAULT needs default_realm") {
		t.Error(err)
	}
}

func TestTrackerAcceptsNodesPrincipalAlone(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.7")
	lives := func(host string, a netip.Addr) bool { return host == "n7" && a == at }
	check := func(pattern string, who hrpc.Identity) error {
		p, err := gssapi.ParsePrincipal(pattern)
		if err != nil {
			t.Fatal(err)
		}
		n := nodePrincipal{pattern: p, lives: lives}
		return n.authorize(&who, at)
	}
	kerberos := func(principal string) hrpc.Identity {
		return hrpc.Identity{User: "nm", Method: hrpc.Kerberos, Principal: principal}
	}
	acting := kerberos("nm/n7@REALM")
	acting.RealUser = "nm"
	for _, c := range []struct {
		pattern string
		who     hrpc.Identity
		want    bool
	}{
		{"nm/_HOST@REALM", kerberos("nm/n7@REALM"), true},
		{"nm/n9@REALM", kerberos("nm/n9@REALM"), true},
		{"nm@REALM", kerberos("nm@REALM"), true},
		{"nm/_HOST@REALM", kerberos("nm/n8@REALM"), false},
		{"nm/_HOST@REALM", kerberos("nm/*@REALM"), false},
		{"nm/_HOST@REALM", kerberos(`nm/10.0.0.0\/8@REALM`), false},
		{"nm/_HOST@REALM", kerberos("nm/_HOST@REALM"), false},
		{"nm/_HOST@REALM", kerberos("nm/n7@OTHER"), false},
		{"nm/_HOST@REALM", kerberos("alice/n7@REALM"), false},
		{"nm/_HOST@REALM", kerberos("nm@REALM"), false},
		{"nm/n9@REALM", kerberos("nm/n7@REALM"), false},
		{"nm/_HOST@REALM", acting, false},
		{"nm/_HOST@REALM", hrpc.Identity{User: "nm", Method: hrpc.Simple}, false},
		{"nm/_HOST@REALM", hrpc.Identity{User: "nm", Method: hrpc.Token}, false},
	} {
		err := check(c.pattern, c.who)
		if (err == nil) != c.want {
			t.Errorf("%s for %s: %v", c.who.Principal, c.pattern, err)
		}
		if err != nil && !strings.Contains(err.Error(), "this service is only accessible by "+c.pattern) {
			t.Errorf("the message is %q", err)
		}
	}
}

func TestNameNodesOfNameserviceAreRead(t *testing.T) {
	s := kerberized(t, "dfs.namenode.kerberos.principal=nn/_HOST@REALM", "dfs.ha.namenodes.prod=nn1,nn2,nn3",
		"dfs.namenode.rpc-address.prod.nn1=n1.test:8020", "dfs.namenode.rpc-address.prod.nn2=n2.test:8020",
		"dfs.namenode.rpc-address.other.nn3=n3.test:8020")
	if got := nameNodes(s); len(got) != 1 || !slices.Equal(got["prod"], []string{"n1.test:8020", "n2.test:8020"}) {
		t.Errorf("%q", got)
	}
	c, err := RMSettings(s, nil)
	if err != nil || c.RM.Renewals.Servers[renewal.KindHDFS] == nil {
		t.Errorf("%v: HDFS's tokens are not renewed", err)
	}
	if c, err = RMSettings(kerberized(t), nil); err != nil || c.RM.Renewals.Servers[renewal.KindHDFS] != nil ||
		c.RM.Renewals.Servers[token.KindDelegation] == nil {
		t.Errorf("%v: without a NameNode the servers are %v", err, c.RM.Renewals.Servers)
	}
}

func TestTokensAreObtainedOfDefaultFileSystem(t *testing.T) {
	const nn = "dfs.namenode.kerberos.principal=nn/_HOST@REALM"
	for fileSystem, want := range map[string]string{
		"file:///": "", "s3a://bucket": "", "hdfs://n1.test:9000/": "n1.test:9000", "hdfs://n1.test": "n1.test:8020",
		"hdfs://prod": "ha-hdfs:prod",
	} {
		s := kerberized(t, nn, proxyPrivileges+"=true", "dfs.ha.namenodes.prod=nn1", "dfs.namenode.rpc-address.prod.nn1=n1:1",
			"fs.defaultFS="+fileSystem)
		c, err := RMSettings(s, nil)
		if err != nil || !c.RM.Renewals.Obtains || c.RM.Renewals.Default.Service != want {
			t.Errorf("%s: %+v, %v", fileSystem, c.RM.Renewals.Default, err)
		}
	}
	_, err := RMSettings(kerberized(t, proxyPrivileges+"=true"), nil)
	if err == nil || !strings.Contains(err.Error(), "set dfs.namenode.kerberos.principal") {
		t.Errorf("without NameNodes: %v", err)
	}
	if c, err := RMSettings(kerberized(t, nn, "fs.defaultFS=hdfs://n1.test"), nil); err != nil || c.RM.Renewals.Obtains {
		t.Errorf("without the setting: %v", err)
	}
}

func TestHistoryServersTokensNeedItsPrincipal(t *testing.T) {
	c, err := RMSettings(kerberized(t, "mapreduce.jobhistory.principal=jhs/_HOST@REALM"), nil)
	if err != nil || c.RM.Renewals.Servers[renewal.KindHistory] == nil || c.RM.Renewals.Servers[renewal.KindHDFS] != nil {
		t.Errorf("%v, %v", c.RM.Renewals.Servers, err)
	}
}

func TestTokensOutliveLogAggregationOnly(t *testing.T) {
	c, err := RMSettings(kerberized(t), nil)
	if err != nil || c.RM.Renewals.Keep != 0 {
		t.Errorf("without aggregation: %v, %v", c.RM.Renewals.Keep, err)
	}
	if c, err = RMSettings(kerberized(t, "yarn.log-aggregation-enable=true"), nil); err != nil ||
		c.RM.Renewals.Keep != 30*time.Second {
		t.Errorf("with aggregation: %v, %v", c.RM.Renewals.Keep, err)
	}
}
