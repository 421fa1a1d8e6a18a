// SPDX-License-Identifier: Apache-2.0

package role

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/spnego"
)

// secretFile writes a secret for cookies.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// webbed returns the settings of a secure ResourceManager whose web clients log in; defines come last.
func webbed(t *testing.T, defines ...string) *settings.Settings {
	t.Helper()
	return kerberized(t, append(webDefines(t), defines...)...)
}

func webDefines(t *testing.T) []string {
	t.Helper()
	return []string{
		"hadoop.http.authentication.type=kerberos", "yarn.resourcemanager.webapp.spnego-principal=HTTP/_HOST@REALM",
		"yarn.resourcemanager.webapp.spnego-keytab-file=" + writeKeytab(t, "HTTP", "rm1.test", 18, 32),
		"yarn.resourcemanager.webapp.address=rm1.test:8088",
	}
}

func TestWebLoginReplacesReadOnlyPort(t *testing.T) {
	const secret = "a secret of the cluster"
	file := secretFile(t, secret)
	c, err := RMSettings(webbed(t, "hadoop.http.authentication.signature.secret.file="+file,
		"hadoop.http.authentication.token.validity=60", "hadoop.http.authentication.cookie.domain=example.org",
		"hadoop.http.authentication.kerberos.endpoint.whitelist=/metrics"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.WebServer.ReadOnly || c.REST.Nameless || !slices.Equal(c.WebServer.Open, []string{"/metrics"}) {
		t.Errorf("the web port is %+v", c.WebServer)
	}
	login, ok := c.WebServer.Tickets.(*spnego.Login)
	if !ok || login.Acceptor.Service.String() != "HTTP/rm1.test@REALM" || !login.Acceptor.OneWay ||
		login.Valid != time.Minute || login.Domain != "example.org" {
		t.Fatalf("the login is %+v", login)
	}
	if user, err := login.Short("alice@OTHER"); err == nil {
		t.Errorf("alice of another realm is %q", user)
	}
	r := httptest.NewRequest("GET", "/ws/v1/cluster/info", nil)
	r.Header.Set("Cookie", spnego.CookieName+`="`+
		spnego.NewSigner([]byte(secret)).Sign("alice", "alice@REALM", time.Now().Add(time.Hour))+`"`)
	if who, _ := login.User(httptest.NewRecorder(), r); who.User != "alice" {
		t.Errorf("a cookie of another holder of the secret names %q", who.User)
	}
	if !slices.Contains(c.Secrets, file) || len(c.Secrets) != 3 {
		t.Errorf("secret files %q", c.Secrets)
	}
}

func TestWithoutSecretFileCookiesAreThisProcess(t *testing.T) {
	s := webbed(t)
	one, err := webLogin(s, settings.RM)
	if err != nil {
		t.Fatal(err)
	}
	two, err := webLogin(s, settings.RM)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	cookie := one.Signer.Sign("alice", "alice@REALM", now.Add(time.Hour))
	if one.Signer.User(cookie, now) != "alice" || two.Signer.User(cookie, now) != "" {
		t.Error("two processes sign with the same secret")
	}
}

func TestIncompleteWebLoginStopsTheStart(t *testing.T) {
	const prefix = "yarn.resourcemanager.webapp.spnego-"
	const secret = "hadoop.http.authentication.signature.secret.file="
	for define, want := range map[string]string{
		prefix + "principal=":                              prefix + "principal is not set",
		prefix + "principal=rm/_HOST@REALM":                "web clients ask for a ticket of HTTP/host",
		prefix + "principal=HTTP@REALM":                    "web clients ask for a ticket of HTTP/host",
		prefix + "principal=HTTP/rm2.test@REALM":           "has no AES key of HTTP/rm2.test@REALM",
		prefix + "keytab-file=":                            prefix + "keytab-file: it is not set",
		prefix + "keytab-file=/nowhere/web":                "keytab /nowhere/web does not exist",
		secret + "/nowhere/secret":                         "/nowhere/secret does not exist",
		secret + secretFile(t, ""):                         "can be guessed",
		secret + secretFile(t, "fifteen letters"):          "can be guessed",
		secret + t.TempDir():                               "cannot be read",
		"yarn.resourcemanager.webapp.address=10.0.0.1:808": "_HOST needs a host name in yarn.resourcemanager.webapp.address",
	} {
		err := Check(webbed(t, define), settings.RM)
		if !settings.IsProblem(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", define, err, want)
		}
	}
	err := Check(minimal(t, "hadoop.http.authentication.type=kerberos"), settings.RM)
	if !settings.IsProblem(err) || !strings.Contains(err.Error(), "hadoop.security.authentication is simple") {
		t.Errorf("without Kerberos of RPC: %v", err)
	}
}

func TestOpenPathsWarnOfStaticAdministrator(t *testing.T) {
	const open = "hadoop.http.authentication.kerberos.endpoint.whitelist=/metrics"
	if got := Warnings(webbed(t, "yarn.admin.acl=*"), settings.RM); len(got) != 0 {
		t.Errorf("every web client has a ticket, yet %q", got)
	}
	if got := Warnings(webbed(t, "yarn.admin.acl=*", open), settings.RM); len(got) != 1 {
		t.Errorf("with an open path %q", got)
	}
}
