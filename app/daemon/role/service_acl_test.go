// SPDX-License-Identifier: Apache-2.0

package role

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// policyFile is a hadoop-policy.xml.
func policyFile(t *testing.T, dir, properties string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("<configuration>")
	for line := range strings.Lines(properties) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			b.WriteString("<property><name>" + name + "</name><value>" + value + "</value></property>")
		}
	}
	b.WriteString("</configuration>")
	if err := os.WriteFile(filepath.Join(dir, "hadoop-policy.xml"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The protocol's lists apply, otherwise the default ones. An existing empty list admits no user; a blocked list
// overrides the others.
func TestServiceACLsLimitProtocols(t *testing.T) {
	dir := t.TempDir()
	policyFile(t, dir, `security.service.authorization.default.acl=alice,dan
security.service.authorization.default.acl.blocked=dan
security.service.authorization.default.hosts.blocked=10.9.0.0/16
security.applicationmaster.protocol.acl=*
security.resourcemanager-administration.protocol.acl= ops
security.resourcemanager-administration.protocol.acl.blocked= barred
security.resourcetracker.protocol.acl=
security.applicationclient.protocol.hosts=10.1.0.0/16,10.2.0.7
security.ha.service.protocol.acl=~gate
yarn.acl.enable=true`)
	s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: []string{"hadoop.security.authorization=true"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Bool("yarn.acl.enable") {
		t.Error("hadoop-policy.xml changes what is no access list of a protocol")
	}
	in := map[string][]string{"olga": {"ops"}, "bea": {"ops", "barred"}}
	acls, err := newServiceACLs(s, rmProtocols, groups.New(func(user string) []string { return in[user] }, 0))
	if err != nil {
		t.Fatal(err)
	}
	const (
		client, am       = yarnrpc.ApplicationClientProtocolName, yarnrpc.ApplicationMasterProtocolName
		tracker, admin   = yarnrpc.ResourceTrackerName, yarnrpc.ResourceManagerAdministrationProtocolName
		ha, other        = yarnrpc.HAServiceProtocolName, "org.example.Protocol"
		denied, fromHost = ": denied by configured ACL", "Host "
	)
	simple := func(user string) *hrpc.Identity { return &hrpc.Identity{User: user} }
	is := func(want string, who *hrpc.Identity, protocol, from string) {
		t.Helper()
		got := "in"
		if err := acls.authorize(who, protocol, netip.MustParseAddr(from)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v by %s from %s: %s, not %s", who, protocol, from, got, want)
		}
	}
	interfaceOf := " is not authorized for protocol interface "
	is("in", simple("alice"), client, "10.1.2.3")
	is("in", simple("alice"), client, "10.2.0.7")
	is(fromHost+"10.2.0.8"+interfaceOf+client, simple("alice"), client, "10.2.0.8")
	is("User dan (auth:SIMPLE)"+interfaceOf+client+denied, simple("dan"), client, "10.1.2.3")
	is("User eve (auth:SIMPLE)"+interfaceOf+client+denied, simple("eve"), client, "10.1.2.3")
	is("in", &hrpc.Identity{User: "appattempt_1_0001_000001", Method: hrpc.Token}, am, "10.3.0.1")
	is(fromHost+"10.9.0.1"+interfaceOf+am, simple("alice"), am, "10.9.0.1")
	is("User alice (auth:TOKEN)"+interfaceOf+tracker+denied, &hrpc.Identity{User: "alice", Method: hrpc.Token}, tracker, "10.1.0.1")
	is("in", simple("olga"), admin, "10.1.0.1")
	is("User bea (auth:SIMPLE)"+interfaceOf+admin+denied, simple("bea"), admin, "10.1.0.1")
	is("in", &hrpc.Identity{User: "eve", RealUser: "gate"}, ha, "10.1.0.1")
	is("User eve (auth:PROXY) via other (auth:SIMPLE)"+interfaceOf+ha+denied,
		&hrpc.Identity{User: "eve", RealUser: "other"}, ha, "10.1.0.1")
	is("Unknown protocol: "+other, simple("alice"), other, "10.1.0.1")
	is("Null protocol not authorized", simple("alice"), "", "10.1.0.1")

	policyFile(t, dir, "security.applicationclient.protocol.hosts=10.1.0.0/99")
	if err := acls.refresh(); err == nil || !strings.Contains(err.Error(), "security.applicationclient.protocol.hosts") {
		t.Errorf("a network that is none: %v", err)
	}
	is("in", simple("alice"), client, "10.1.2.3") // the lists of before hold on
	policyFile(t, dir, "security.applicationclient.protocol.acl=eve")
	if err := acls.refresh(); err != nil {
		t.Fatal(err)
	}
	is("User alice (auth:SIMPLE)"+interfaceOf+client+denied, simple("alice"), client, "10.1.2.3")
	is("in", simple("eve"), client, "10.1.2.3")
}

// Lists that are not in force are parsed but not applied.
func TestServiceACLsNeedAuthorizationOn(t *testing.T) {
	if acls, err := newServiceACLs(minimal(t, "security.applicationclient.protocol.acl=eve"), rmProtocols, nil); acls != nil || err != nil {
		t.Errorf("%v %v", acls, err)
	}
	for _, role := range []settings.Role{settings.RM, settings.Router, settings.Proxy} {
		const key = "security.service.authorization.default.hosts"
		if err := Check(minimal(t, key+"=10.0.0.0/99"), role); !settings.IsProblem(err) || !strings.Contains(err.Error(), key) {
			t.Errorf("a %s with a network that is none: %v", role, err)
		}
	}
}

// A list of groups only begins with a space and includes no users.
func TestAdministratorsMayBeAGroup(t *testing.T) {
	g := groups.New(func(user string) []string { return []string{user + "s"} }, 0)
	admin := administrators(minimal(t, "yarn.admin.acl= olgas"), g)
	if !admin("olga") || admin("olgas") {
		t.Error("the group is taken for a user")
	}
}
