// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// hadoop-policy.xml controls the access to protocols as with a real ResourceManager: users, groups, impersonation,
// blocked users, and machines. A refresh applies another file to later connections.
func TestServiceAuthorizationMatchesHadoop(t *testing.T) {
	me := hadoop.OSUser(t)
	conf := hadoop.Conf{
		"hadoop.security.authorization":                        "true",
		"hadoop.user.group.static.mapping.overrides":           me + "=staff;gail=ops;olga=ops;alice=;bob=;eve=",
		"security.service.authorization.default.acl.blocked":   "nobody",
		"security.applicationclient.protocol.acl":              me + ",alice,bob ops",
		"security.applicationclient.protocol.acl.blocked":      "bob,olga",
		"security.applicationclient.protocol.hosts":            "localhost,10.0.0.0/8",
		"security.resourcemanager-administration.protocol.acl": " staff",
	}
	changed := conf.With(hadoop.Conf{
		"security.applicationclient.protocol.acl":         "eve,bob,~" + me,
		"security.applicationclient.protocol.acl.blocked": "",
	})
	elsewhere := conf.With(hadoop.Conf{"security.applicationclient.protocol.hosts.blocked": "127.0.0.0/8"})
	refusal := regexp.MustCompile(`(?m)^[^\n]*: (User|Host) [^\n]* is not authorized [^\n]*$`)
	tell := func(a hadoop.Addresses, whole hadoop.Conf, dir string) (said []string) {
		clients := map[string]hadoop.Client{}
		for _, user := range []string{me, "alice", "bob", "gail", "olga", "eve"} {
			clients[user] = hadoop.Client{User: user, Conf: a.Conf()}.Setup(t)
		}
		say := func(user, class string, args ...string) {
			t.Helper()
			r := clients[user].Run(t, class, args...)
			what := "is served"
			if line := refusal.FindString(r.All); line != "" {
				what = line
			} else if r.Code != 0 {
				what = r.All
			}
			said = append(said, user+" "+strings.Join(args, " ")+": "+what)
		}
		for _, user := range []string{"alice", "bob", "gail", "olga", "eve"} {
			say(user, hadoop.ApplicationCLI, "application", "-list")
		}
		say("alice", hadoop.RMAdminCLI, "-refreshServiceAcl")
		for _, next := range []hadoop.Conf{changed, elsewhere} {
			whole.With(next).Write(t, dir)
			say(me, hadoop.RMAdminCLI, "-refreshServiceAcl")
			for _, user := range []string{"alice", "eve"} {
				say(user, hadoop.ApplicationCLI, "application", "-list")
			}
		}
		return said
	}
	theirs := hadoop.StartRM(t, hadoop.RM{Conf: conf})
	want := tell(theirs.Addresses, theirs.Daemon.Conf, theirs.ConfDir)
	ours := Start(t, Options{Conf: conf})
	got := tell(ours.Addresses, ours.Conf, ours.ConfDir)
	if !slices.Equal(got, want) {
		t.Errorf("ours says\n%s\na real ResourceManager\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	t.Log(strings.Join(got, "\n"))
	served := 0
	for _, line := range want {
		if strings.HasSuffix(line, ": is served") {
			served++
		}
	}
	if served != 5 { // alice, gail, two refreshes, eve
		t.Errorf("a real ResourceManager serves %d of\n%s", served, strings.Join(want, "\n"))
	}
}
