// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// webTLS is the TLS of a web port.
type webTLS struct {
	address               string
	keystore, certificate string // of Java's keytool, and as PEM
}

const keystorePassword = "changeit"

// url is the address of the web port.
func (c *cluster) url() string {
	if c.secure != nil {
		return "https://" + c.secure.address
	}
	return "http://" + c.Web
}

// run runs a program to its end, with an input.
func run(t *testing.T, input string, args ...string) (all string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	name := args[0]
	args[0] = program(t, name)
	_, all, code = process.Run(ctx, t, process.Command{
		Name: name, Args: args, Dir: t.TempDir(), Stdin: strings.NewReader(input),
	})
	return all, code
}

// keytool runs Java's keytool on a keystore.
func keytool(t *testing.T, keystore string, args ...string) {
	t.Helper()
	all := append([]string{"keytool"}, args...)
	if out, code := run(t, "", append(all, "-keystore", keystore, "-storepass", keystorePassword)...); code != 0 {
		t.Fatalf("keytool %s: %d\n%s", args, code, out)
	}
}

// newKeystore makes a keystore with a certificate of localhost, and returns its path and that of the PEM file.
func newKeystore(t *testing.T, kind string) (keystore, certificate string) {
	t.Helper()
	dir := t.TempDir()
	keystore, certificate = filepath.Join(dir, "keystore"), filepath.Join(dir, "certificate.pem")
	keytool(t, keystore, "-genkeypair", "-alias", "web", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=localhost",
		"-ext", "san=dns:localhost,ip:127.0.0.1", "-validity", "100", "-storetype", kind, "-keypass", keystorePassword)
	keytool(t, keystore, "-exportcert", "-rfc", "-alias", "web", "-file", certificate)
	return keystore, certificate
}

// newTruststore makes a truststore with a certificate.
func newTruststore(t *testing.T, certificate string) (truststore string) {
	t.Helper()
	truststore = filepath.Join(t.TempDir(), "truststore")
	keytool(t, truststore, "-importcert", "-noprompt", "-alias", "web", "-file", certificate, "-storetype", "JKS")
	return truststore
}

// startTLS is startWeb with TLS at the web port.
func startTLS(t *testing.T, kind string) *cluster {
	t.Helper()
	s := &webTLS{address: atLocalhost(t)}
	s.keystore, s.certificate = newKeystore(t, kind)
	c := startWeb(t, hadoop.Conf{
		"yarn.http.policy": "HTTPS_ONLY", "yarn.resourcemanager.webapp.https.address": s.address,
		"ssl.server.keystore.location": s.keystore, "ssl.server.keystore.password": keystorePassword,
		"ssl.server.keystore.type": strings.ToLower(kind),
	})
	c.secure = s
	return c
}

// Logins over TLS are those without it, and the cookie is for TLS only. Hadoop's client and creel's commands trust the
// certificate by their own settings.
func TestClientsLogInOverTLS(t *testing.T) {
	c := startTLS(t, "JKS")
	alice := c.browser(t, "alice")
	first := alice.call(t, "GET", whoAmI)
	first.is(t, "a ticket", "200", `"requestedUser":"alice"`)
	if !strings.Contains(first.headers, "; Secure") || !strings.Contains(first.headers, "Strict-Transport-Security: max-age=31536000") {
		t.Errorf("the headers are\n%s", first.headers)
	}
	browser{c, "", alice.cookies}.call(t, "GET", whoAmI).is(t, "the cookie", "200", `"requestedUser":"alice"`)
	id := alice.submit(t, "")
	alice.call(t, "GET", "/proxy/"+id).is(t, "a redirect", "302", "Location: https://"+c.secure.address+"/cluster/app/"+id)
	alice.call(t, "GET", "/cluster/app/"+id).is(t, "a page", "200", "--server https://"+c.secure.address)
	if conn, err := net.Dial("tcp", c.Web); err == nil {
		conn.Close()
		t.Error("the port without TLS is open")
	}

	truststore := newTruststore(t, c.secure.certificate)
	change := func(more hadoop.Conf) hadoop.Result {
		client := c.client(t, c.user, c.userKeytab, hadoop.Conf{
			"yarn.http.policy": "HTTPS_ONLY", "yarn.resourcemanager.webapp.https.address": c.secure.address,
		}.With(more))
		return client.Run(t, hadoop.SchedConfCLI, "-global", "yarn.scheduler.capacity.maximum-applications=500")
	}
	const changed = "Configuration changed successfully."
	trusting := change(hadoop.Conf{
		"ssl.client.truststore.location": truststore, "ssl.client.truststore.password": keystorePassword,
		"ssl.client.truststore.type": "jks",
	})
	if !strings.Contains(trusting.All, changed) {
		t.Errorf("Hadoop's client: %d\n%.4000s", trusting.Code, trusting.All)
	}
	if r := change(nil); strings.Contains(r.All, changed) {
		t.Errorf("Hadoop's client without a truststore\n%.3000s", r.All)
	}
	c.Await(t, "the application's end", func() bool { return alice.kill(t, id, "").status == "200" })
	status := c.client(t, c.user, c.userKeytab, nil).Run(t, hadoop.ApplicationCLI, "application", "-status", id)
	_, port, _ := strings.Cut(c.secure.address, ":")
	if !regexp.MustCompile(`Tracking-URL : https://[^/]*:` + port + "/cluster/app/" + id).MatchString(status.All) {
		t.Errorf("no tracking URL by TLS\n%.3000s", status.All)
	}

	bob := "KRB5_CLIENT_KTNAME=" + c.AddPrincipal(t, "bob")
	trust := "SSL_CERT_FILE=" + c.secure.certificate
	if all, code := c.creel(t, c.url(), []string{bob, trust}, "app", "list"); code != 0 || !strings.Contains(all, id) {
		t.Errorf("creel app list: %d\n%s", code, all)
	}
	if all, code := c.creel(t, c.url(), []string{bob}, "app", "list"); code != 5 || !strings.Contains(all, "SSL_CERT_FILE adds signers") {
		t.Errorf("creel without the signer: %d\n%s", code, all)
	}
}

// Old versions, weak ciphers, renegotiation and wrong names are refused.
func TestTLSProbes(t *testing.T) {
	c := startTLS(t, "PKCS12")
	_, port, err := net.SplitHostPort(c.secure.address)
	if err != nil {
		t.Fatal(err)
	}
	probe := func(input string, args ...string) (string, bool) {
		all := append([]string{"openssl", "s_client", "-connect", c.secure.address, "-CAfile", c.secure.certificate,
			"-verify_return_error", "-verify_hostname", "localhost"}, args...)
		out, code := run(t, input, all...)
		return out, code == 0
	}
	for name, x := range map[string]struct {
		args []string
		want string // the reason of the refusal; "": it connects
	}{
		"TLS 1.3":               {[]string{"-tls1_3"}, ""},
		"TLS 1.2":               {[]string{"-tls1_2"}, ""},
		"AES-256":               {[]string{"-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"}, ""},
		"TLS 1.1":               {[]string{"-tls1_1", "-cipher", "ALL@SECLEVEL=0"}, "alert protocol version"},
		"TLS 1.0":               {[]string{"-tls1", "-cipher", "ALL@SECLEVEL=0"}, "alert protocol version"},
		"no forward secrecy":    {[]string{"-tls1_2", "-cipher", "AES128-GCM-SHA256"}, "alert handshake failure"},
		"CBC":                   {[]string{"-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA@SECLEVEL=0"}, "alert handshake failure"},
		"no encryption":         {[]string{"-tls1_2", "-cipher", "NULL@SECLEVEL=0"}, "alert handshake failure"},
		"no authentication":     {[]string{"-tls1_2", "-cipher", "ADH@SECLEVEL=0"}, "alert handshake failure"},
		"another expected name": {[]string{"-verify_hostname", "other.example"}, "hostname mismatch"},
	} {
		if out, ok := probe("", x.args...); ok != (x.want == "") || !strings.Contains(out, x.want) {
			t.Errorf("%s: connected is %v, want %q\n%.2000s", name, ok, x.want, out)
		}
	}
	if out, ok := probe("R\n", "-tls1_2"); ok && !strings.Contains(out, "no renegotiation") {
		t.Errorf("a renegotiation\n%.3000s", out)
	}
	at := "--resolve"
	if out, code := run(t, "", "curl", "--silent", "--show-error", "--cacert", c.secure.certificate, at,
		"other.example:"+port+":127.0.0.1", "https://other.example:"+port+"/livez"); code != 60 {
		t.Errorf("a wrong name: %d\n%s", code, out)
	}
	if out, code := run(t, "", "curl", "--silent", "--show-error", c.url()+"/livez"); code != 60 {
		t.Errorf("an unknown signer: %d\n%s", code, out)
	}
	none := browser{c: c}
	none.call(t, "GET", "/livez").is(t, "the right name", "200", "")
	if out, code := run(t, "", "curl", "--silent", "http://"+c.secure.address+"/livez"); code != 0 ||
		!strings.Contains(out, "HTTP request to an HTTPS server") {
		t.Errorf("without TLS: %d\n%s", code, out)
	}
}

// A changed keystore is read without a restart, and a broken one keeps the certificate.
func TestChangedKeystoreIsReadAgain(t *testing.T) {
	c := startTLS(t, "JKS")
	none := browser{c: c}
	none.call(t, "GET", "/livez").is(t, "the first certificate", "200", "")
	replace := func(text []byte) {
		t.Helper()
		part := c.secure.keystore + ".new"
		if err := os.WriteFile(part, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(part, c.secure.keystore); err != nil {
			t.Fatal(err)
		}
	}
	replace([]byte("not a keystore"))
	c.Await(t, "the report of a broken keystore", func() bool { return strings.Contains(c.Tail(40), "using the previous one") })
	none.call(t, "GET", "/livez").is(t, "with a broken keystore", "200", "")
	keystore, certificate := newKeystore(t, "PKCS12")
	text, err := os.ReadFile(keystore)
	if err != nil {
		t.Fatal(err)
	}
	replace(text)
	c.Await(t, "the new certificate", func() bool {
		_, code := run(t, "", "curl", "--silent", "--cacert", certificate, c.url()+"/livez")
		return code == 0
	})
	if out, code := run(t, "", "curl", "--silent", "--show-error", "--cacert", c.secure.certificate, c.url()+"/livez"); code != 60 {
		t.Errorf("the old certificate is in force: %d\n%s", code, out)
	}
}

// newClientKeystore makes a client's keystore, and returns it with its certificate and key in PEM files.
func newClientKeystore(t *testing.T) (keystore, certificate, key string) {
	t.Helper()
	keystore, certificate = newKeystore(t, "PKCS12")
	key = filepath.Join(filepath.Dir(keystore), "key.pem")
	if out, code := run(t, "", "openssl", "pkcs12", "-in", keystore, "-nocerts", "-nodes", "-passin", "pass:"+keystorePassword,
		"-out", key); code != 0 {
		t.Fatalf("openssl: %d\n%s", code, out)
	}
	return keystore, certificate, key
}

// In a federation whose web ports need certificates, the router shows its own to a member. Clients need one beside
// their tickets: curl, creel's commands, and Hadoop's.
func TestWebPortsNeedCertificates(t *testing.T) {
	s, conf := federationTLS(t)
	keystore, certificate, key := newClientKeystore(t)
	_, strange, strangeKey := newClientKeystore(t)
	conf = conf.With(hadoop.Conf{
		"hadoop.ssl.require.client.cert": "true",
		"ssl.server.truststore.location": newTruststore(t, certificate), "ssl.server.truststore.password": keystorePassword,
		"ssl.client.keystore.location": keystore, "ssl.client.keystore.password": keystorePassword,
	})
	f := startMembers(t, "privacy", 1, conf)
	member := &cluster{KDC: f.KDC, Creel: &rm.Creel{Addresses: f.Subclusters[0].Addresses}}
	for name, at := range map[string]*cluster{"router": f.router(), "member": member} {
		at.secure = &webTLS{address: at.Web, certificate: s.certificate}
		me, none := browser{at, f.cache, filepath.Join(t.TempDir(), "cookies")}, browser{c: at}
		own := []string{"--cert", certificate, "--key", key}
		me.call(t, "GET", allApps).is(t, "a ticket alone at the "+name, "403", "needs a certificate of the client")
		none.call(t, "GET", "/livez").is(t, "the health of the "+name, "200", "")
		none.call(t, "GET", allApps, own...).is(t, "a certificate alone at the "+name, "401", "")
		f.Routers[0].Await(t, "both at the "+name, func() bool {
			r := me.call(t, "GET", allApps, own...)
			return r.status == "200" && !strings.Contains(r.headers, "X-Missing-SubClusters")
		})
		if out, code := run(t, "", "curl", "--silent", "--show-error", "--cacert", s.certificate, "--cert", strange, "--key",
			strangeKey, at.url()+allApps); code == 0 || !strings.Contains(out, "alert") {
			t.Errorf("a certificate by another signer at the %s: %d\n%s", name, code, out)
		}
		ticket := []string{"KRB5CCNAME=" + f.cache, "SSL_CERT_FILE=" + s.certificate}
		if all, code := at.creel(t, at.url(), ticket, "app", "list"); code == 0 || !strings.Contains(all, "needs a certificate of the client") {
			t.Errorf("creel without a certificate at the %s: %d\n%s", name, code, all)
		}
		ticket = append(ticket, "CREEL_TLS_CERTIFICATE="+certificate, "CREEL_TLS_KEY="+key)
		if all, code := at.creel(t, at.url(), ticket, "app", "list"); code != 0 {
			t.Errorf("creel with a certificate at the %s: %d\n%s", name, code, all)
		}
	}
	change := func(more hadoop.Conf) hadoop.Result {
		return hadoop.Client{Timeout: time.Minute, Env: []string{"KRB5CCNAME=" + f.cache},
			Conf: member.Addresses.Conf().With(f.conf, hadoop.Conf{
				"yarn.http.policy": "HTTPS_ONLY", "yarn.resourcemanager.webapp.https.address": member.Web,
				"ssl.client.truststore.location": newTruststore(t, s.certificate), "ssl.client.truststore.password": keystorePassword,
				"ssl.client.truststore.type": "jks",
			}, more)}.Setup(t).Run(t, hadoop.SchedConfCLI, "-global", "yarn.scheduler.capacity.maximum-applications=500")
	}
	const rejected = "needs a certificate of the client"
	if r := change(nil); strings.Contains(r.All, "Configuration changed successfully.") {
		t.Errorf("Hadoop's client without a certificate: %d\n%.4000s", r.Code, r.All)
	}
	with := change(hadoop.Conf{
		"hadoop.ssl.require.client.cert": "true", "ssl.client.keystore.location": keystore, "ssl.client.keystore.type": "pkcs12",
		"ssl.client.keystore.password": keystorePassword, "ssl.client.keystore.keypassword": keystorePassword,
	})
	// The member keeps no changed queues, which it says only to a caller that it serves.
	if strings.Contains(with.All, rejected) || !strings.Contains(with.All, "only supported by mutable configuration store") {
		t.Errorf("Hadoop's client with a certificate: %d\n%.4000s", with.Code, with.All)
	}
}
