// SPDX-License-Identifier: Apache-2.0

package ldap

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// overTLS is Hadoop's configuration of the directory, with a truststore of Java's keytool.
func overTLS(t *testing.T, s *Slapd) hadoop.Conf {
	t.Helper()
	truststore, word := filepath.Join(t.TempDir(), "truststore"), filepath.Join(t.TempDir(), "word")
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	if _, all, code := process.Run(ctx, t, process.Command{
		Name: "keytool", Dir: t.TempDir(),
		Args: []string{program(t, "keytool"), "-importcert", "-noprompt", "-alias", "slapd", "-file", s.Certificate,
			"-keystore", truststore, "-storepass", "changeit", "-storetype", "JKS"},
	}); code != 0 {
		t.Fatalf("keytool: %d\n%s", code, all)
	}
	write(t, word, Password+"\n")
	const ldap = "hadoop.security.group.mapping.ldap."
	me := hadoop.OSUser(t)
	return hadoop.Conf{
		"hadoop.security.group.mapping":              "org.apache.hadoop.security.LdapGroupsMapping",
		"hadoop.security.groups.cache.secs":          "1",
		"hadoop.security.groups.negative-cache.secs": "0",
		"hadoop.user.group.static.mapping.overrides": me + "=operators",
		ldap + "url":                           s.TLS,
		ldap + "ssl":                           "true",
		ldap + "ssl.truststore":                truststore,
		ldap + "ssl.truststore.password":       "changeit",
		ldap + "bind.user":                     Admin,
		ldap + "bind.password.file":            word,
		ldap + "base":                          Base,
		ldap + "search.filter.user":            "(&(objectClass=inetOrgPerson)(uid={0}))",
		ldap + "search.filter.group":           "(objectClass=groupOfNames)",
		ldap + "search.group.hierarchy.levels": "1",
		ldap + "num.attempts":                  "1",
		"yarn.acl.enable":                      "true",
		"yarn.admin.acl":                       me,
		"yarn.scheduler.capacity.root.default.acl_submit_applications": " staff",
		"yarn.scheduler.capacity.root.acl_submit_applications":         " ",
		"yarn.scheduler.capacity.root.acl_administer_queue":            " ",
	}
}

var applicationID = regexp.MustCompile(`application_[0-9]+_[0-9]+`)

// submit submits an application as a user, and reports "accepted", or the reason of the rejection.
func submit(t *testing.T, a hadoop.Addresses, user string) string {
	t.Helper()
	call := func(path, body string) (int, string) {
		at := "http://" + a.Web + "/ws/v1/cluster/apps" + path + "?user.name=" + url.QueryEscape(user)
		r, err := http.Post(at, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
	_, fresh := call("/new-application", "")
	id := applicationID.FindString(fresh)
	status, body := call("", fmt.Sprintf(`{"application-id":%q,"application-name":"n","queue":"default",`+
		`"am-container-spec":{"commands":{"command":"true"}},"resource":{"memory":128,"vCores":1}}`, id))
	switch {
	case status == http.StatusAccepted:
		return "accepted"
	case strings.Contains(body, "cannot submit") || strings.Contains(body, "does not have permission to submit"):
		return "no right to submit"
	}
	t.Fatalf("the submission of %s: %d\n%s", user, status, body)
	return ""
}

// groupsBy returns the groups of users by `yarn rmadmin -getGroups`.
func groupsBy(t *testing.T, a hadoop.Addresses, users ...string) string {
	t.Helper()
	client := hadoop.Client{Conf: a.Conf()}.Setup(t)
	return client.Run(t, hadoop.RMAdminCLI, append([]string{"-getGroups"}, users...)...).OK(t).Stdout
}

// A queue that a group of the directory may use admits its members, nested ones too, as with Hadoop's ResourceManager.
// While the directory is away known users keep their groups, and others have none.
func TestQueueAdmitsGroupOfDirectory(t *testing.T) {
	s := Start(t, entries)
	conf := overTLS(t, s)
	theirs := hadoop.StartRM(t, hadoop.RM{Conf: conf})
	ours := rm.Start(t, rm.Options{Conf: conf})
	users := []string{"ann", "bob", "zoe", "ida", "eve", "*", "ann)(uid=*"}
	if got, want := groupsBy(t, ours.Addresses, users...), groupsBy(t, theirs.Addresses, users...); got != want ||
		!strings.Contains(got, "zoe : interns staff") {
		t.Errorf("groups of creel\n%s\nof Hadoop\n%s", got, want)
	}
	for user, want := range map[string]string{
		"ann": "accepted", "zoe": "accepted", "bob": "no right to submit", "eve": "no right to submit",
	} {
		got, hadoops := submit(t, ours.Addresses, user), submit(t, theirs.Addresses, user)
		if got != want || hadoops != want {
			t.Errorf("%s: creel %s, Hadoop %s, not %s", user, got, hadoops, want)
		}
	}

	for _, user := range []string{"ann", "ida"} { // groups of a good lookup serve for a minute
		submit(t, ours.Addresses, user)
	}
	s.Kill()
	time.Sleep(time.Second) // hadoop.security.groups.cache.secs
	for user, want := range map[string]string{"ann": "accepted", "ida": "accepted", "new": "no right to submit"} {
		if got := submit(t, ours.Addresses, user); got != want {
			t.Errorf("without a directory %s: %s, not %s", user, got, want)
		}
	}
	ours.WaitLine(t, "failed to look up the groups of a user")

	s.Run(t)
	s.Modify(t, "dn: cn=staff,ou=groups,"+Base+"\nchangetype: modify\ndelete: member\nmember: uid=ann,ou=people,"+Base+
		"\n-\nadd: member\nmember: uid=bob,ou=people,"+Base+"\n")
	admin := hadoop.Client{Conf: ours.Addresses.Conf()}.Setup(t)
	admin.Run(t, hadoop.RMAdminCLI, "-refreshUserToGroupsMappings").OK(t)
	for user, want := range map[string]string{"ann": "no right to submit", "bob": "accepted"} {
		if got := submit(t, ours.Addresses, user); got != want {
			t.Errorf("after the change %s: %s, not %s", user, got, want)
		}
	}
}
