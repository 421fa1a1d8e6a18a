// SPDX-License-Identifier: Apache-2.0

package ldap

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/groups/directory"
)

// entries has people, groups of DNs with groups in them, and posix groups.
const entries = `dn: dc=creel,dc=test
objectClass: domain
dc: creel

dn: ou=people,dc=creel,dc=test
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=creel,dc=test
objectClass: organizationalUnit
ou: groups

dn: uid=ann,ou=people,dc=creel,dc=test
objectClass: inetOrgPerson
objectClass: posixAccount
uid: ann
cn: Ann
sn: A
uidNumber: 5001
gidNumber: 600
homeDirectory: /
employeeType: cn=staff,ou=groups,dc=creel,dc=test

dn: uid=bob,ou=people,dc=creel,dc=test
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: B
employeeType: ou=people,dc=creel,dc=test

dn: uid=zoe,ou=people,dc=creel,dc=test
objectClass: inetOrgPerson
uid: zoe
cn: Zoe
sn: twin

dn: cn=Zoe (interim)\, of (all),ou=people,dc=creel,dc=test
objectClass: inetOrgPerson
uid: ida
cn: Zoe (interim), of (all)
sn: twin

dn: cn=staff,ou=groups,dc=creel,dc=test
objectClass: groupOfNames
cn: staff
member: uid=ann,ou=people,dc=creel,dc=test
member: cn=interns,ou=groups,dc=creel,dc=test

dn: cn=interns,ou=groups,dc=creel,dc=test
objectClass: groupOfNames
cn: interns
member: uid=zoe,ou=people,dc=creel,dc=test
member: cn=Zoe (interim)\, of (all),ou=people,dc=creel,dc=test
member: cn=staff,ou=groups,dc=creel,dc=test

dn: cn=all,ou=groups,dc=creel,dc=test
objectClass: groupOfNames
cn: all
member: cn=staff,ou=groups,dc=creel,dc=test

dn: cn=wheel,ou=groups,dc=creel,dc=test
objectClass: posixGroup
cn: wheel
gidNumber: 601
memberUid: 5001

dn: cn=users,ou=groups,dc=creel,dc=test
objectClass: posixGroup
cn: users
gidNumber: 600
`

// plainConfig finds groups by their members.
func plainConfig(s *Slapd) directory.Config {
	return directory.Config{
		URLs: []string{s.Plain}, BindUser: Admin, BindPassword: Password,
		UserBase: Base, GroupBase: Base, UserFilter: "(&(objectClass=inetOrgPerson)(uid={0}))",
		GroupFilter: "(objectClass=groupOfNames)", Member: "member", GroupName: "cn",
		UID: "uidNumber", GID: "gidNumber",
		ConnectTime: 5 * time.Second, ReadTime: 5 * time.Second, SearchTime: 5 * time.Second,
		Attempts: 1, BeforeFailover: 1,
	}
}

// find returns a user's groups as text, or the error.
func find(t *testing.T, c directory.Config, user string) string {
	t.Helper()
	d, err := directory.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	found, err := d.Groups(context.Background(), user)
	if err != nil {
		return "error: " + err.Error()
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func TestGroupsOfUsersInOpenLDAP(t *testing.T) {
	s := Start(t, entries)
	nested := func(levels int) func(*directory.Config) {
		return func(c *directory.Config) { c.Levels = levels }
	}
	posix := func(c *directory.Config) {
		c.UserFilter, c.GroupFilter = "(&(objectClass=posixAccount)(uid={0}))", "(objectClass=posixGroup)"
		c.Member = "memberUid"
	}
	byUser := func(c *directory.Config) { c.MemberOf = "employeeType" }
	for _, c := range []struct {
		name   string
		change func(*directory.Config)
		user   string
		want   string
	}{
		{"members", nil, "ann", "staff"},
		{"no groups", nil, "bob", ""},
		{"unknown user", nil, "eve", ""},
		{"no name", nil, "", ""},
		{"a DN with the characters of filters", nil, "ida", "interns"},
		{"a pattern as a name", nil, "*", ""},
		{"part of a filter as a name", nil, "ann)(uid=*", ""},
		{"an or as a name", nil, "x)(|(uid=ann", ""},
		{"a name with a zero byte", nil, "ann\x00", ""},
		{"one level", nested(1), "zoe", "interns staff"},
		{"one level, escaped", nested(1), "ida", "interns staff"},
		{"groups in a circle", nested(9), "zoe", "all interns staff"},
		{"by number", posix, "ann", "users wheel"},
		{"an attribute of the user", byUser, "ann", "staff"},
		{"an attribute with another DN", byUser, "bob", ""},
		{"a missing attribute", byUser, "zoe", "interns"},
	} {
		conf := plainConfig(s)
		if c.change != nil {
			c.change(&conf)
		}
		if got := find(t, conf, c.user); got != c.want {
			t.Errorf("%s: %s has %q, not %q", c.name, c.user, got, c.want)
		}
	}
}

// What the directory cannot answer is an error, never "no groups".
func TestDirectoryFailuresAreErrors(t *testing.T) {
	s := Start(t, entries)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	roots, err := certs.Roots(s.Certificate, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		change     func(*directory.Config)
	}{
		{"wrong password", "the login of " + Admin + " failed", func(c *directory.Config) { c.BindPassword = "guess" }},
		{"missing base", `the base "dc=none" does not exist`, func(c *directory.Config) { c.UserBase = "dc=none" }},
		{"two users", "several entries", func(c *directory.Config) { c.UserFilter = "(|(uid={0})(sn=twin))" }},
		{"silent server", "timed out", func(c *directory.Config) {
			c.URLs, c.ReadTime = []string{"ldap://" + silent.Addr().String()}, 100*time.Millisecond
		}},
		{"unknown certificate", "certificate signed by unknown authority", func(c *directory.Config) {
			c.URLs = []string{s.TLS}
		}},
		{"another host's certificate", "certificate", func(c *directory.Config) {
			c.URLs = []string{strings.Replace(s.TLS, "localhost", "127.0.0.1", 1)}
			c.TLS = &tls.Config{RootCAs: roots}
		}},
		{"no server", "no connection", func(c *directory.Config) { c.URLs = []string{"ldap://127.0.0.1:1"} }},
	} {
		conf := plainConfig(s)
		c.change(&conf)
		if got := find(t, conf, "ann"); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	verified := plainConfig(s)
	verified.URLs, verified.TLS = []string{s.TLS}, &tls.Config{RootCAs: roots}
	if got := find(t, verified, "ann"); got != "staff" {
		t.Errorf("over TLS: %s", got)
	}
}

// After its attempts at a server a lookup uses the next one, and the next lookup begins there.
func TestLookupsFailOver(t *testing.T) {
	s := Start(t, entries)
	conf := plainConfig(s)
	conf.URLs, conf.Attempts, conf.BeforeFailover = []string{"ldap://127.0.0.1:1", s.Plain}, 3, 2
	d, err := directory.Open(conf)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "ann"} {
		if found, err := d.Groups(context.Background(), user); err != nil || !slices.Equal(found, []string{"staff"}) {
			t.Errorf("%s has %v, %v", user, found, err)
		}
	}
	s.Kill()
	if found, err := d.Groups(context.Background(), "ann"); err == nil {
		t.Errorf("no server runs, and ann has %v", found)
	}
	s.Run(t)
	if found, err := d.Groups(context.Background(), "ann"); err != nil || !slices.Equal(found, []string{"staff"}) {
		t.Errorf("after the return: %v, %v", found, err)
	}
}

func TestInvalidDirectoriesAreRefused(t *testing.T) {
	good := plainConfig(&Slapd{Plain: "ldap://localhost"})
	if _, err := directory.Open(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*directory.Config){
		"no server":               func(c *directory.Config) { c.URLs = nil },
		"is not ldap://HOST:PORT": func(c *directory.Config) { c.URLs = []string{"http://localhost"} },
		`dc=x" is not ldap`:       func(c *directory.Config) { c.URLs = []string{"ldap://localhost/dc=x"} },
		"has no {0}":              func(c *directory.Config) { c.UserFilter = "(uid=ann)" },
		"is invalid":              func(c *directory.Config) { c.GroupFilter = "(cn=" },
		"the password of":         func(c *directory.Config) { c.BindPassword = "" },
	} {
		conf := good
		change(&conf)
		if _, err := directory.Open(conf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
