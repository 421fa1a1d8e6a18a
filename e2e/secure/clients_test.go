// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"maps"
	"slices"
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/gssapi"
)

// withoutNative lists the client cases that need Hadoop's native library on nodes with Kerberos: there Hadoop reads the
// outputs of maps, and the logs of containers, by no other way. The library is not in Hadoop's jars.
var withoutNative = func() map[string]string {
	const why = "Secure IO is necessary in a secure environment, but native code extensions not present"
	out := map[string]string{}
	for _, name := range []string{
		"logs", "mr_pi", "mr_sleep_red", "mr_wordcount", "mr_uber", "mr_opportunistic", "tez_wordcount",
	} {
		out[name] = why
	}
	return out
}()

// placing enables all that client cases place.
var placing = hadoop.Conf{
	"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
	"yarn.resourcemanager.placement-constraints.handler":              "placement-processor",
}

// login is the login of a principal by its keytab and a new ticket.
func (k *KDC) login(t *testing.T, name, keytab string) *clients.Login {
	t.Helper()
	return &clients.Login{
		Principal: name + "@" + k.Realm, Keytab: keytab, Cache: k.Login(t, name, keytab), Realm: k.ConfigFile(),
	}
}

// runClients runs the usual cases on a cluster, then the others, which .ci/long names.
func runClients(t *testing.T, c *clients.Cluster, usual ...string) {
	t.Helper()
	without := maps.Clone(withoutNative)
	maps.Copy(without, c.Without)
	c.Without = without
	var others []string
	for _, k := range clients.Cases() {
		if !slices.Contains(usual, k.Name) && c.Without[k.Name] == "" {
			others = append(others, k.Name)
		}
	}
	some := *c
	if some.Only = usual; len(usual) > 0 {
		t.Run("usual", func(t *testing.T) { clients.Run(t, &some) })
	}
	some.Only = others
	t.Run("others", func(t *testing.T) { clients.Run(t, &some) })
}

// The client cases by Kerberos: Hadoop's programs by their ticket, Spark, Flink and Skein by a keytab, web clients by
// curl --negotiate.
func TestClientCasesOnSecureResourceManager(t *testing.T) {
	c := startWeb(t, placing.With(hadoop.Conf{"yarn.scheduler.configuration.store.class": "file"}))
	users := &clients.Cluster{
		Conf: c.Addresses.Conf().With(c.conf), Web: c.Web, Login: c.login(t, c.user, c.userKeytab),
	}
	for _, name := range []string{"nm1", "nm2"} {
		users.Nodes = append(users.Nodes, hadoop.StartNM(t, hadoop.NM{Name: name, RM: c.Addresses, Conf: c.conf}).ID)
	}
	runClients(t, users, "rest_get", "spark_client")
}

// The client cases by Kerberos through a router, over two members.
func TestClientCasesOnSecureFederation(t *testing.T) {
	f := startMembers(t, "privacy", 2, placing)
	for i := range f.Subclusters {
		f.startNode(t, i)
	}
	f.runClients(t, false)
}

// The client cases by Kerberos through a router. One of its members is Hadoop's ResourceManager with its agent.
func TestClientCasesOverSecureHadoopMember(t *testing.T) {
	startMixed(t, gssapi.Privacy, placing).runClients(t, true)
}

// runClients runs the client cases through the router. Members of Hadoop's forget signals.
func (f *secured) runClients(t *testing.T, forgets bool) {
	t.Helper()
	f.awaitNodes(t, f.client(t, f.cache))
	runClients(t, &clients.Cluster{
		Conf: f.clientConf(), Web: f.RouterAddresses[0].Web, Nodes: f.Nodes(), OneNode: true, Forgets: forgets,
		Login: f.login(t, f.user, f.keytab),
		Without: map[string]string{
			"dshell_placement": "placement-constraints.handler is disabled",
			"rest_client":      "its library sends no cookie to the address of a redirect",
		},
	})
}

// The client cases by Kerberos on Hadoop's ResourceManager, as a control.
func TestClientCasesOnHadoopsSecureResourceManager(t *testing.T) {
	k := StartKDC(t, Realm{})
	c := newCluster(t, k, "privacy")
	web := k.webLogin(t, "127.0.0.1")
	theirs := hadoop.StartRM(t, hadoop.RM{Conf: c.conf.With(placing, web, hadoopsWebLogin(t), hadoop.Conf{
		"yarn.resourcemanager.keytab":                   k.AddPrincipal(t, "yarn/localhost"),
		"yarn.resourcemanager.webapp.spnego-principal":  "HTTP/127.0.0.1@" + k.Realm,
		"hadoop.http.authentication.kerberos.principal": "HTTP/127.0.0.1@" + k.Realm,
		"hadoop.http.authentication.kerberos.keytab":    web["yarn.resourcemanager.webapp.spnego-keytab-file"],
		"yarn.acl.enable":                               "true", "yarn.admin.acl": c.user,
		"yarn.scheduler.configuration.store.class": "file",
	})})
	users := &clients.Cluster{
		Conf: theirs.Addresses.Conf().With(c.conf), Web: theirs.Web, Login: k.login(t, c.user, c.userKeytab),
		Without: map[string]string{"uam": "it compares the whole principal with the owner, and so returns no token to a UAM"},
	}
	for _, name := range []string{"nm1", "nm2"} {
		users.Nodes = append(users.Nodes, hadoop.StartNM(t, hadoop.NM{Name: name, RM: theirs.Addresses, Conf: c.conf}).ID)
	}
	runClients(t, users)
}
