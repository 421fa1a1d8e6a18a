// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/zkclient"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/statestore/zookeeper"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// stateIn are the settings of a ResourceManager with its state in a ZooKeeper, which is a member of the federation whose
// store is there too.
func stateIn(address string) hadoop.Conf {
	return hadoop.Conf{
		"yarn.resourcemanager.store.class":      "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
		"yarn.resourcemanager.recovery.enabled": "true",
		"yarn.resourcemanager.cluster-id":       "c1",
		"hadoop.zk.address":                     address,
		"hadoop.zk.timeout-ms":                  "5000",
		"creel.store.url":                       "zk://" + address + "/federationstore",
	}
}

// listed calls the applications' path of a ResourceManager.
func listed(t *testing.T, c *rm.Creel, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.Web+allApps+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %v\n%s", method, path, answer.Status, err, b)
	}
	return string(b)
}

// stateOutlives submits an application to a ResourceManager, kills it, and finds the application after a restart.
func stateOutlives(t *testing.T, c *rm.Creel) {
	t.Helper()
	var made struct {
		ID string `json:"application-id"`
	}
	if err := json.Unmarshal([]byte(listed(t, c, "POST", "/new-application", "")), &made); err != nil {
		t.Fatal(err)
	}
	listed(t, c, "POST", "", fmt.Sprintf(`{"application-id":%q,"application-name":"one","queue":"default",`+
		`"application-type":"TEST","unmanaged-AM":true,"am-container-spec":{},"resource":{"memory":256,"vCores":1}}`, made.ID))
	c.Kill9()
	c.Restart(t)
	if all := listed(t, c, "GET", "", ""); !strings.Contains(all, made.ID) {
		t.Errorf("application %s is lost:\n%s", made.ID, all)
	}
}

// exportFails runs creel rm export with changed settings, which must fail with a reason.
func exportFails(t *testing.T, conf hadoop.Conf, reason string) {
	t.Helper()
	args := []string{rm.Binary(t), "rm", "export", "state"}
	for key, value := range conf {
		args = append(args, "-D", key+"="+value)
	}
	_, out, code := process.Run(context.Background(), t, process.Command{
		Name: "creel rm export", Dir: t.TempDir(), Args: args,
	})
	if code == 0 || !strings.Contains(out, reason) {
		t.Errorf("want %q, got exit code %d\n%s", reason, code, out)
	}
	t.Logf("exit code %d: %s", code, out)
}

// othersWork makes the other uses of a ZooKeeper: the elector of a pair, and the store of a federation with the member c1.
func othersWork(t *testing.T, servers zkclient.Servers) {
	t.Helper()
	elector, err := zkstate.OpenElector(zkstate.ElectorConfig{
		Servers: servers, Base: "/yarn-leader-election", Cluster: "c1", ID: "rm1",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer elector.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		claim, err := elector.Claim(ctx)
		if claim.Won {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the elector: %+v, %v", claim, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	store, err := zookeeper.Open(zookeeper.Config{Servers: servers, Parent: "/federationstore", Validate: storetest.Validate})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records, err := store.Records(ctx)
	if err != nil || len(records.Members) != 1 || records.Members[0].ID != "c1" {
		t.Errorf("the members are %+v (%v)", records.Members, err)
	}
	own, err := zookeeper.Open(zookeeper.Config{Servers: servers, Parent: "/own", Validate: storetest.Validate})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for range 2 {
		if home, _, err := own.Claim(ctx, storetest.App(1), "c1", nil); err != nil || home != "c1" {
			t.Errorf("the home is %s (%v)", home, err)
		}
	}
}

// A ResourceManager's state, the elector of a pair and the store of a federation are in a ZooKeeper that asks for
// certificates.
func TestZooKeeperIsUsedOverTLS(t *testing.T) {
	serverKey, serverCertificate := newKeystore(t, "PKCS12")
	ownKey, ownCertificate := newKeystore(t, "JKS")
	otherKey, _ := newKeystore(t, "JKS")
	_, address := hadoop.StartZooKeeperWith(t, hadoop.ZooKeeper{TLS: true, Lines: []string{
		"ssl.keyStore.location=" + serverKey, "ssl.keyStore.password=" + keystorePassword, "ssl.keyStore.type=PKCS12",
		"ssl.trustStore.location=" + newTruststore(t, ownCertificate), "ssl.trustStore.password=" + keystorePassword,
		"ssl.trustStore.type=JKS",
	}})
	address = strings.Replace(address, "127.0.0.1", "localhost", 1)
	signers := newTruststore(t, serverCertificate)
	conf := stateIn(address).With(hadoop.Conf{
		"hadoop.zk.ssl.enabled":             "true",
		"hadoop.zk.ssl.keystore.location":   ownKey,
		"hadoop.zk.ssl.keystore.password":   keystorePassword,
		"hadoop.zk.ssl.truststore.location": signers,
		"hadoop.zk.ssl.truststore.password": keystorePassword,
	})
	stateOutlives(t, rm.Start(t, rm.Options{Volatile: true, Conf: conf}))
	trust, err := certs.OpenTrust(signers, keystorePassword, slog.Default())
	if err == nil {
		err = trust.Present(certs.Store{Keystore: ownKey, Password: keystorePassword}, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	othersWork(t, zkclient.Servers{Addresses: []string{address}, Timeout: 4 * time.Second, TLS: trust})

	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.ssl.enabled": "false"}), "or its port is for TLS")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.ssl.keystore.location": otherKey}), "tls: ")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.ssl.keystore.location": ""}), "tls: ")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.ssl.truststore.location": newTruststore(t, ownCertificate)}),
		"its certificate has no signer that this machine trusts")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.ssl.truststore.password": "guess"}), "the password is wrong")
	_, plain := hadoop.StartZooKeeper(t)
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.address": plain}), "or its port is not for TLS")
}

// jaas writes the login of a ZooKeeper server.
func jaas(t *testing.T, principal, keytab string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "jaas.conf")
	text := fmt.Sprintf("Server {\n com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=%q\n"+
		" storeKey=true useTicketCache=false principal=%q;\n};\n", keytab, principal)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// zooKeeperLogin logs in at the ZooKeeper server of localhost.
func (k *KDC) zooKeeperLogin(t *testing.T, name, keytab string) zkclient.Login {
	t.Helper()
	conf, err := kerberos.LoadConfig(k.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := kerberos.LoadKeytab(keytab)
	if err != nil {
		t.Fatal(err)
	}
	principal, err := gssapi.ParsePrincipal(name + "@" + k.Realm)
	if err != nil {
		t.Fatal(err)
	}
	login, err := conf.LoginKeytab(principal, keys)
	if err != nil {
		t.Fatal(err)
	}
	server := gssapi.Principal{Names: []string{"zookeeper", "localhost"}, Realm: k.Realm}
	client := rpcauth.Client(login, []gssapi.Principal{server}, []gssapi.Protection{gssapi.Authentication})
	return func(string) (zkclient.Exchange, error) { return client.Begin("zookeeper", "localhost") }
}

// The same with a ZooKeeper that requires a login by Kerberos, whose nodes belong to the ResourceManager's principal.
func TestZooKeeperAcceptsKerberos(t *testing.T) {
	k := StartKDC(t, Realm{})
	t.Setenv("KRB5_CONFIG", k.ConfigFile())
	_, address := hadoop.StartZooKeeperWith(t, hadoop.ZooKeeper{
		Lines: []string{
			"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "sessionRequireClientSASLAuth=true",
		},
		Flags: []string{
			"-Djava.security.krb5.conf=" + k.ConfigFile(),
			"-Djava.security.auth.login.config=" +
				jaas(t, "zookeeper/localhost@"+k.Realm, k.AddPrincipal(t, "zookeeper/localhost")),
		},
	})
	address = strings.Replace(address, "127.0.0.1", "localhost", 1)
	keytab, eve := k.AddPrincipal(t, "rm/localhost"), k.AddPrincipal(t, "eve")
	k.AddPrincipal(t, "other/localhost")
	conf := stateIn(address).With(hadoop.Conf{
		"hadoop.zk.kerberos.principal": "rm/localhost@" + k.Realm,
		"hadoop.zk.kerberos.keytab":    keytab,
		"hadoop.zk.acl":                "sasl:rm/localhost@" + k.Realm + ":rwcda",
	})
	stateOutlives(t, rm.Start(t, rm.Options{Volatile: true, Conf: conf}))
	othersWork(t, zkclient.Servers{
		Addresses: []string{address}, Timeout: 4 * time.Second, SASL: k.zooKeeperLogin(t, "rm/localhost", keytab),
	})

	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.kerberos.principal": "", "hadoop.zk.kerberos.keytab": ""}),
		"ZooKeeper requires a login by Kerberos")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.kerberos.principal": "eve", "hadoop.zk.kerberos.keytab": eve}),
		"lacks the right")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.server.principal": "other/localhost"}), "the login by Kerberos failed")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.server.principal": "nobody/localhost"}), "the login by Kerberos failed")
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.address": strings.Replace(address, "localhost", "127.0.0.1", 1)}),
		"needs the server's host name")
	_, open := hadoop.StartZooKeeper(t)
	exportFails(t, conf.With(hadoop.Conf{"hadoop.zk.address": strings.Replace(open, "127.0.0.1", "localhost", 1)}),
		"the server has no login by Kerberos")

	session, err := zkstate.Connect(t.Context(), zkclient.Servers{
		Addresses: []string{address}, SASL: k.zooKeeperLogin(t, "eve", eve),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, _, err := session.Get(t.Context(), "/federationstore/memberships/c1"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("eve reads a member (%v)", err)
	}
}
