// SPDX-License-Identifier: Apache-2.0

package role

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/spnego"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// certificate writes a certificate of localhost as PEM files, and as a keystore with the password changeit.
func certificate(t *testing.T, end time.Time) (cert, key, keystore string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pkcs12.Modern.Encode(private, parsed, nil, "changeit")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), write("keystore", store)
}

// withServerFile returns minimal settings with the properties of an ssl-server.xml.
func withServerFile(t *testing.T, properties map[string]string, defines ...string) *settings.Settings {
	t.Helper()
	dir := t.TempDir()
	text := "<configuration>"
	for name, value := range properties {
		text += fmt.Sprintf("<property><name>%s</name><value>%s</value></property>", name, value)
	}
	if err := os.WriteFile(filepath.Join(dir, "ssl-server.xml"), []byte(text+"</configuration>"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: append([]string{httpPolicy + "=HTTPS_ONLY"}, defines...)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHTTPSOnlyServesTLSAtItsAddress(t *testing.T) {
	cert, key, keystore := certificate(t, time.Now().Add(time.Hour))
	for name, s := range map[string]*settings.Settings{
		"a keystore": withServerFile(t, map[string]string{webKeystore: keystore, webKeystoreWord: "changeit", "yarn.acl.enable": "true"}),
		"PEM":        withServerFile(t, map[string]string{webKeystore: "/nowhere"}, pemCertificate+"="+cert, pemKey+"="+key),
	} {
		c, err := RMSettings(s, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.WebKey != rmWebTLSAddress || !strings.HasSuffix(c.Web, ":8090") || !c.RM.WebTLS {
			t.Errorf("%s: the web port is %s of %s", name, c.Web, c.WebKey)
		}
		if w := c.WebServer; w.TLS == nil || w.TLS.MinVersion != tls.VersionTLS12 || w.StrictTransport != 365*24*time.Hour {
			t.Errorf("%s: the web port is %+v", name, w)
		}
		if s.Bool("yarn.acl.enable") {
			t.Errorf("%s: ssl-server.xml sets a key of another file", name)
		}
		if file := map[string]string{"a keystore": keystore, "PEM": key}[name]; !slices.Contains(c.Secrets, file) {
			t.Errorf("%s: secret files %q", name, c.Secrets)
		}
	}
	open, err := RMSettings(minimal(t), nil)
	if err != nil || open.WebServer.TLS != nil || open.WebKey != rmWebAddress || open.RM.WebTLS {
		t.Errorf("without HTTPS_ONLY: %+v, %v", open.WebServer, err)
	}
}

func TestCookieOfLoginNeedsTLS(t *testing.T) {
	cert, key, _ := certificate(t, time.Now().Add(time.Hour))
	secured := []string{
		httpPolicy + "=HTTPS_ONLY", pemCertificate + "=" + cert, pemKey + "=" + key, rmWebTLSAddress + "=rm1.test:8090",
		rmWebAddress + "=rm9.test:8088",
	}
	for defines, want := range map[int]bool{0: false, len(secured): true} {
		c, err := RMSettings(webbed(t, secured[:defines]...), nil)
		if err != nil {
			t.Fatal(err)
		}
		login, ok := c.WebServer.Tickets.(*spnego.Login)
		if !ok || login.Secure != want || login.Acceptor.Service.String() != "HTTP/rm1.test@REALM" {
			t.Errorf("%d settings: the login is %+v", defines, login)
		}
	}
}

func TestIncompleteTLSStopsTheStart(t *testing.T) {
	cert, key, keystore := certificate(t, time.Now().Add(time.Hour))
	old, oldKey, _ := certificate(t, time.Now().Add(-time.Minute))
	const both = pemCertificate + "="
	for _, c := range []struct {
		file    map[string]string
		defines []string
		want    string
	}{
		{nil, nil, "neither ssl.server.keystore.location in ssl-server.xml nor creel.http.tls.certificate is set"},
		{nil, []string{both + cert}, "creel.http.tls.key is not set"},
		{map[string]string{webKeystore: keystore}, []string{pemKey + "=" + key}, "creel.http.tls.certificate is not set"},
		{nil, []string{both + cert, pemKey + "=" + oldKey}, "does not match"},
		{nil, []string{both + old, pemKey + "=" + oldKey}, "expired at"},
		{map[string]string{webKeystore: "/nowhere/store"}, nil, "/nowhere/store cannot be read"},
		{map[string]string{webKeystore: keystore}, nil, "the password is wrong"},
		{map[string]string{webKeystore: keystore, webKeystoreWord: "other"}, nil, "the password is wrong"},
		{map[string]string{webKeystore: keystore, webKeystoreWord: "changeit", webKeystoreType: "bcfks"}, nil, "type bcfks are not supported"},
		{map[string]string{webKeystore: keystore, webKeystoreWord: "changeit", webWeakCiphers: "TLS_AES_128_GCM_SHA256"}, nil, "cannot exclude"},
		{nil, []string{both + cert, pemKey + "=" + key, needCertificate + "=true"}, clientSigners + " in ssl-server.xml is not set"},
		{nil, []string{both + cert, pemKey + "=" + key, needCertificate + "=true", clientSigners + "=/nowhere/store"}, "/nowhere/store cannot be read"},
	} {
		s := withServerFile(t, c.file, c.defines...)
		for _, role := range onWeb {
			for what, err := range map[string]error{"check": Check(s, role), "start": start(s, role)} {
				if !settings.IsProblem(err) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s of %s with %v %v: %v\nwant %s", what, role, c.file, c.defines, err, c.want)
				}
			}
		}
	}
}

// The switch of Hadoop's demands certificates of clients, and shows one to other daemons.
func TestPortsMayNeedCertificates(t *testing.T) {
	cert, key, keystore := certificate(t, time.Now().Add(time.Hour))
	settingsOf := func(more ...string) *settings.Settings {
		return withServerFile(t, nil, append(more, pemCertificate+"="+cert, pemKey+"="+key, clientSigners+"="+cert)...)
	}
	own := []string{needCertificate + "=true", ownKeystore + "=" + keystore, ownKeystoreWord + "=changeit"}
	c, err := webSettings(settingsOf(own...), settings.Router)
	if err != nil || !c.NeedCertificate || c.TLS.ClientAuth != tls.VerifyClientCertIfGiven {
		t.Errorf("the port is %+v, %v", c, err)
	}
	if c, err := webSettings(settingsOf(), settings.Router); err != nil || c.NeedCertificate || c.TLS.ClientAuth != tls.NoClientCert {
		t.Errorf("without the switch the port is %+v, %v", c, err)
	}
	for _, role := range []settings.Role{settings.Router, settings.Agent} {
		err := Check(settingsOf(needCertificate+"=true"), role)
		if !settings.IsProblem(err) || !strings.Contains(err.Error(), "it is not set in ssl-client.xml") {
			t.Errorf("%s without a certificate to show: %v", role, err)
		}
	}
	if _, err := dialTLS(settingsOf(append(own, ownKeystoreWord+"=guess")...)); err == nil {
		t.Error("a keystore with another password is shown")
	}
}

// start reads the settings of a role as at its start.
func start(s *settings.Settings, role settings.Role) (err error) {
	switch role {
	case settings.RM:
		_, err = RMSettings(s, nil)
	case settings.Router:
		_, err = RouterSettings(s)
	case settings.Proxy:
		_, err = ProxySettings(s)
	case settings.Rebalancer:
		_, err = RebalancerSettings(s)
	}
	return err
}

// In a federation each web port has TLS, and each record says so.
func TestDaemonsOfFederationServeTLS(t *testing.T) {
	cert, key, _ := certificate(t, time.Now().Add(time.Hour))
	s := minimal(t, httpPolicy+"=HTTPS_ONLY", pemCertificate+"="+cert, pemKey+"="+key, routerTLSAddress+"=router.test:9",
		rmWebTLSAddress+"=rm.test:8", "creel.subcluster.id=sc-1")
	router, err := RouterSettings(s)
	if err != nil || router.Web != "router.test:9" || router.WebHost != "router.test" || router.Site.TLS == nil ||
		router.Remote.DialTLS == nil {
		t.Errorf("the router: %+v, %v", router.Site, err)
	}
	proxy, err := ProxySettings(s)
	if err != nil || proxy.WebServer.TLS == nil {
		t.Errorf("the proxy: %+v, %v", proxy.WebServer, err)
	}
	rebalancer, err := RebalancerSettings(s)
	if err != nil || rebalancer.WebServer.TLS == nil {
		t.Errorf("the rebalancer: %+v, %v", rebalancer.WebServer, err)
	}
	agent, err := AgentSettings(s)
	if at := agent.Member.Addresses; err != nil || at.Web != "rm.test:8" || !at.HTTPS || agent.DialTLS == nil {
		t.Errorf("the agent: %+v, %v", at, err)
	}
	rm, err := RMSettings(s, memory.New(memory.NewState("test", nil), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	at := rm.Membership.published(subcluster.Addresses{Client: "0.0.0.0:1", Web: "127.0.0.1:8"})
	if at.Web != "rm.test:8" || !at.HTTPS {
		t.Errorf("the member's record has %+v", at)
	}
	broken := minimal(t, truststore+"="+key)
	for _, role := range []settings.Role{settings.Router, settings.Agent} {
		if err := Check(broken, role); !settings.IsProblem(err) || !strings.Contains(err.Error(), "is no truststore") {
			t.Errorf("%s with a useless truststore: %v", role, err)
		}
	}
}
