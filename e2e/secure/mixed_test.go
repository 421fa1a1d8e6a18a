// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/gssapi"
)

// Hadoop's ResourceManager is a member of a federation with Kerberos, by its agent. Applications at home with either
// use both. Where calls are protected the proxies know Hadoop's AMs by its key file, else they relay the AMs' logins.
func TestSecureHadoopMemberRunsJobsAtEachProtection(t *testing.T) {
	for _, p := range []gssapi.Protection{gssapi.Privacy, gssapi.Integrity, gssapi.Authentication} {
		t.Run(p.String(), func(t *testing.T) {
			var tls *webTLS
			var more hadoop.Conf
			if p == gssapi.Authentication { // web ports have TLS, whatever the protection of RPC is
				tls, more = federationTLS(t)
			}
			f := startMixed(t, p, more)
			f.tls = tls
			client := f.client(t, f.cache)
			f.awaitNodes(t, client)
			for _, queue := range []string{"default", "other"} {
				f.shell(t, client, queue)
			}
			client.Run(t, hadoop.SleepJob, "-Dmapreduce.job.queuename=other", "-m", "4", "-r", "0", "-mt", "100").OK(t)
			var list string
			f.Routers[0].Await(t, "three applications that succeeded", func() bool {
				list = client.Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "FINISHED").OK(t).Stdout
				return strings.Count(list, "SUCCEEDED") == 3
			})
			me, homes := browser{f.router(), f.cache, ""}, map[string]int{}
			for line := range strings.Lines(list) {
				if id, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); strings.HasPrefix(id, "application_") {
					why := me.call(t, "GET", "/api/v1/apps/"+strings.TrimSpace(id)+"/why").body
					for _, home := range []string{"sc-1", "sc-2"} {
						if strings.Contains(why, `"home":"`+home+`"`) {
							homes[home]++
						}
					}
				}
			}
			if homes["sc-1"] != 1 || homes["sc-2"] != 2 {
				t.Errorf("the homes are %v", homes)
			}
			if tls != nil {
				f.checkTLS(t, me)
			}
		})
	}
}

// startMixed starts a federation of one member of creel's and one of Hadoop's, each with a node. Applications in queue
// default have their home in the first, those in queue other in the second.
func startMixed(t *testing.T, p gssapi.Protection, more hadoop.Conf) *secured {
	t.Helper()
	f, state := startMembers(t, p.String(), 1, more), t.TempDir()
	theirs := f.StartHadoopOf(t, hadoop.V342, 2, f.daemons.With(hadoop.Conf{
		"yarn.resourcemanager.fs.state-store.uri": "file://" + state,
	}, hadoopsWebLogin(t)))
	var keys hadoop.Conf
	if p != gssapi.Authentication {
		keys = hadoop.Conf{"creel.proxy.hadoop-key-files": "sc-2=" +
			filepath.Join(state, "FSRMStateRoot/AMRMTokenSecretManagerRoot/AMRMTokenSecretManagerNode")}
	}
	theirs.Proxy = f.StartProxy(t, theirs.ID, "127.0.0.3", f.daemons.With(keys))
	f.Subclusters = append(f.Subclusters, theirs)
	for queue, home := range map[string]string{"root.default": "sc-1", "root.other": "sc-2"} {
		f.Creel(t, "policy", "set", queue, strings.Replace(halves, `{"sc-1":1,"sc-2":1}`,
			fmt.Sprintf(`{%q:1}`, home), 1), "--store", f.Store, "--any-member")
	}
	f.startNode(t, 0)
	f.startNode(t, 1)
	return f
}

// hadoopsWebLogin are the settings that Hadoop's web ports need, beside creel's, for a login by ticket.
func hadoopsWebLogin(t *testing.T) hadoop.Conf {
	t.Helper()
	return hadoop.Conf{
		"hadoop.http.filter.initializers":                  "org.apache.hadoop.security.AuthenticationFilterInitializer",
		"hadoop.http.authentication.signature.secret.file": webSecretFile(t),
		"hadoop.http.staticuser.user":                      "dr.who",
	}
}

// federationTLS are the settings of TLS at all web ports of a federation, with Hadoop's keystore and truststore.
func federationTLS(t *testing.T) (*webTLS, hadoop.Conf) {
	t.Helper()
	s := &webTLS{}
	s.keystore, s.certificate = newKeystore(t, "JKS")
	return s, hadoop.Conf{
		"yarn.http.policy":                          "HTTPS_ONLY",
		"yarn.resourcemanager.webapp.https.address": "${yarn.resourcemanager.webapp.address}",
		"yarn.router.webapp.https.address":          "${yarn.router.webapp.address}",
		"ssl.server.keystore.location":              s.keystore,
		"ssl.server.keystore.password":              keystorePassword,
		"ssl.server.keystore.keypassword":           keystorePassword,
		"ssl.client.truststore.location":            newTruststore(t, s.certificate),
		"ssl.client.truststore.password":            keystorePassword,
	}
}

// checkTLS calls the router by TLS, and through it both members: one is creel's, one Hadoop's.
func (f *secured) checkTLS(t *testing.T, me browser) {
	t.Helper()
	withTLS := func(path string, n int) {
		t.Helper()
		f.Routers[0].Await(t, fmt.Sprintf("%d with TLS at %s", n, path), func() bool {
			return strings.Count(me.call(t, "GET", path).body, `"https":true`) >= n
		})
	}
	withTLS("/api/v1/subclusters", 2)
	f.Routers[0].Await(t, "the list of both members", func() bool {
		apps := me.call(t, "GET", allApps)
		apps.is(t, "the list of applications", "200", "finalStatus")
		return !strings.Contains(apps.headers, "X-Missing-SubClusters")
	})
	for range 6 { // the router draws a member for each
		me.call(t, "POST", newOne).is(t, "an id", "200", "application-id")
	}
	id := me.submit(t, "")
	submitted := me.call(t, "GET", allApps+"/"+id)
	submitted.is(t, "an application by REST", "200", id)
	me.kill(t, id, "").is(t, "its kill", "202", "")
	withTLS("/api/v1/daemons", 3)
	trust := []string{"KRB5CCNAME=" + f.cache, "SSL_CERT_FILE=" + f.tls.certificate}
	if all, code := me.c.creel(t, me.c.url(), trust, "subcluster", "list"); code != 0 || !strings.Contains(all, "sc-2") {
		t.Errorf("creel subcluster list: %d\n%s", code, all)
	}
	if out, code := run(t, "", "curl", "--silent", "http://"+me.c.Web+"/livez"); code != 0 ||
		!strings.Contains(out, "HTTP request to an HTTPS server") {
		t.Errorf("the router without TLS: %d\n%s", code, out)
	}
}
