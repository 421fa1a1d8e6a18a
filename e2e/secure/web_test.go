// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/spnego"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// webSecret is the secret that signs the cookies of the tests' ResourceManagers.
const webSecret = "a secret of the tests"

// webSecretFile returns the path of a file with the secret.
func webSecretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(webSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// startWeb starts a ResourceManager whose web clients log in by ticket. Only owners may kill applications.
func startWeb(t *testing.T, more hadoop.Conf) *cluster {
	t.Helper()
	return startWebIn(t, StartKDC(t, Realm{}), more)
}

// startWebIn is startWeb in a realm.
func startWebIn(t *testing.T, k *KDC, more hadoop.Conf) *cluster {
	t.Helper()
	return startSecure(t, k, "privacy", k.webLogin(t, "localhost").With(more))
}

// webLogin returns the settings of a ResourceManager's web port, whose principal is HTTP/HOST.
func (k *KDC) webLogin(t *testing.T, host string) hadoop.Conf {
	t.Helper()
	return hadoop.Conf{
		"hadoop.http.authentication.type":                           "kerberos",
		"hadoop.http.authentication.signature.secret.file":          webSecretFile(t),
		"yarn.resourcemanager.webapp.spnego-principal":              "HTTP/_HOST@" + k.Realm,
		"yarn.resourcemanager.webapp.spnego-keytab-file":            k.AddPrincipal(t, "HTTP/"+host),
		"yarn.scheduler.capacity.root.acl_administer_queue":         " ",
		"yarn.scheduler.capacity.root.default.acl_administer_queue": " ",
		"yarn.scheduler.configuration.store.class":                  "fs",
		"hadoop.http.authentication.kerberos.endpoint.whitelist":    "/metrics",
	}
}

// browser is curl with a ticket cache and a file of cookies; "" for neither.
type browser struct {
	c              *cluster
	cache, cookies string
}

// browser returns curl with a ticket of a user.
func (c *cluster) browser(t *testing.T, user string) browser {
	t.Helper()
	return browser{c, c.Login(t, user, c.AddPrincipal(t, user)), filepath.Join(t.TempDir(), "cookies")}
}

// reply is an answer to curl.
type reply struct {
	status  string // 200
	headers string
	body    string
	sent    string // the headers of the requests
}

// call sends a request to a path of the web port. args are further arguments of curl.
func (b browser) call(t *testing.T, method, path string, args ...string) (r reply) {
	t.Helper()
	dir := t.TempDir()
	headers, body := filepath.Join(dir, "headers"), filepath.Join(dir, "body")
	all := []string{
		program(t, "curl"), "--silent", "--show-error", "--verbose", "--request", method, "--write-out", "%{http_code}",
		"--dump-header", headers, "--output", body,
	}
	env := append(b.c.Environment(), "KRB5CCNAME="+filepath.Join(dir, "none"))
	if b.cache != "" {
		env = append(b.c.Environment(), "KRB5CCNAME="+b.cache)
		all = append(all, "--negotiate", "--user", ":")
	}
	if b.c.secure != nil {
		all = append(all, "--cacert", b.c.secure.certificate)
	}
	if b.cookies != "" {
		all = append(all, "--cookie", b.cookies, "--cookie-jar", b.cookies)
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	out, output, code := process.Run(ctx, t, process.Command{
		Name: "curl", Args: append(append(all, args...), b.c.url()+path), Env: env, Dir: dir,
	})
	if code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", method, path, code, output)
	}
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(b)
	}
	return reply{out, read(headers), read(body), output}
}

// is fails the test unless an answer has a status and a text.
func (r reply) is(t *testing.T, what, status, text string) {
	t.Helper()
	if r.status != status || !strings.Contains(r.headers+r.body, text) {
		t.Errorf("%s: %s, want %s with %q\n%.3000s%.2000s", what, r.status, status, text, r.headers, r.body)
	}
}

const (
	whoAmI   = "/ws/v1/cluster/userinfo"
	newOne   = "/ws/v1/cluster/apps/new-application"
	allApps  = "/ws/v1/cluster/apps"
	asJSON   = "Content-Type: application/json"
	notLogIn = "Www-Authenticate: Negotiate\r"
)

// submit submits an application without an AM, and returns its id. query is the part of the address that begins with ?.
func (b browser) submit(t *testing.T, query string) string {
	t.Helper()
	var made reply
	_ = process.Poll(nil, func() bool {
		made = b.call(t, "POST", newOne+query)
		return made.status != "503" // a router whose members are slow asks to repeat the call
	})
	var doc struct {
		ID string `json:"application-id"`
	}
	if err := json.Unmarshal([]byte(made.body), &doc); err != nil || doc.ID == "" {
		t.Fatalf("a new application: %s %s", made.status, made.body)
	}
	b.call(t, "POST", allApps+query, "--header", asJSON, "--data", fmt.Sprintf(`{"application-id":%q,`+
		`"application-name":"one","queue":"default","application-type":"TEST","unmanaged-AM":true,"am-container-spec":{},`+
		`"resource":{"memory":256,"vCores":1}}`, doc.ID)).is(t, "submission", "202", "")
	return doc.ID
}

func (b browser) kill(t *testing.T, id, query string) reply {
	t.Helper()
	return b.call(t, "PUT", allApps+"/"+id+"/state"+query, "--header", asJSON, "--data", `{"state":"KILLED"}`)
}

// A ticket logs curl in and gets it a cookie, which is enough afterwards, and after a restart. Both serve changes.
func TestWebClientLogsInByTicketThenCookie(t *testing.T) {
	c := startWeb(t, nil)
	alice := c.browser(t, "alice")
	first := alice.call(t, "GET", whoAmI+"?user.name=root")
	first.is(t, "a ticket", "200", `"requestedUser":"alice"`)
	if !strings.Contains(first.headers, `hadoop.auth="u=alice&p=alice@CREEL.TEST&t=kerberos&e=`) ||
		!strings.Contains(first.headers, "; HttpOnly; SameSite=Lax") {
		t.Errorf("the answer has no cookie\n%s", first.headers)
	}
	cookie := browser{c, "", alice.cookies}
	cookie.call(t, "GET", whoAmI+"?user.name=root").is(t, "the cookie alone", "200", `"requestedUser":"alice"`)

	id := alice.submit(t, "")
	app := cookie.call(t, "GET", allApps+"/"+id)
	app.is(t, "the application", "200", `"user":"alice"`)
	bob := c.browser(t, "bob")
	bob.kill(t, id, "?user.name=alice").is(t, "bob's kill", "403", "bob")
	c.Restart(t)
	cookie.call(t, "GET", whoAmI).is(t, "the cookie after a restart", "200", `"requestedUser":"alice"`)
	c.Await(t, "the application's end", func() bool {
		killed := cookie.kill(t, id, "")
		return killed.status == "200" && strings.Contains(killed.body, "KILLED")
	})
}

func TestWebClientsWithoutRightAreRejected(t *testing.T) {
	c := startWeb(t, nil)
	none := browser{c: c}
	none.call(t, "GET", whoAmI+"?user.name=alice").is(t, "no ticket", "401", notLogIn)
	none.call(t, "POST", newOne+"?user.name=alice").is(t, "a change without a ticket", "401", notLogIn)
	none.call(t, "GET", "/cluster").is(t, "a page", "401", notLogIn)
	none.call(t, "GET", "/conf").is(t, "the configuration", "401", notLogIn)
	none.call(t, "GET", "/livez").is(t, "health", "200", "")
	none.call(t, "GET", "/metrics").is(t, "an open path", "200", "creel_rm_submissions_total")

	alice := c.browser(t, "alice")
	cookie := func(secret, user string, end time.Duration) string {
		return spnego.CookieName + `="` +
			spnego.NewSigner([]byte(secret)).Sign(user, user+"@"+c.Realm, time.Now().Add(end)) + `"`
	}
	for name, text := range map[string]string{
		"a forged cookie":            cookie("another secret", c.user, time.Hour),
		"an expired cookie":          cookie(webSecret, c.user, -time.Second),
		"a cookie without signature": spnego.CookieName + "=u=" + c.user + "&p=" + c.user + "&t=kerberos&e=9999999999999",
		"simple login's cookie":      spnego.CookieName + "=u=" + c.user + "&p=" + c.user + "&t=simple&e=9999999999999",
	} {
		none.call(t, "GET", whoAmI, "--cookie", text).is(t, name, "401", notLogIn)
		none.call(t, "POST", newOne, "--cookie", text).is(t, name, "401", notLogIn)
	}
	none.call(t, "GET", whoAmI, "--cookie", cookie(webSecret, "alice", time.Hour)).
		is(t, "a cookie of another holder of the secret", "200", `"requestedUser":"alice"`)

	// Someone who saw the ticket on the network sends it again.
	seen := browser{c, alice.cache, ""}.call(t, "GET", whoAmI)
	_, header, _ := strings.Cut(seen.sent, "Authorization: Negotiate ")
	header, _, _ = strings.Cut(header, "\n")
	if seen.status != "200" || len(header) < 100 {
		t.Fatalf("%s\n%s", seen.status, seen.sent)
	}
	none.call(t, "GET", whoAmI, "--header", "Authorization: Negotiate "+strings.TrimSpace(header)).
		is(t, "a replayed ticket", "403", "used before")
	none.call(t, "GET", whoAmI, "--header", "Authorization: Basic YWxpY2U6YWxpY2U=").is(t, "a password", "401", notLogIn)

	// A page of another site sends a request with the visitor's cookie.
	alice.call(t, "GET", whoAmI).is(t, "a ticket", "200", "alice")
	browser{c, "", alice.cookies}.call(t, "POST", newOne, "--header", "Origin: http://evil.example").
		is(t, "another site's change", "403", "another site")
}

// A ticket logs in until it ends, at the client port and at the web port, and then no more.
func TestEndedTicketLogsInAtNoPort(t *testing.T) {
	c := startWebIn(t, StartKDC(t, Realm{Skew: "2"}), nil)
	l, err := c.config(t).LoginCache(c.Login(t, "alice", c.AddPrincipal(t, "alice"), "-l", "15s"))
	if err != nil {
		t.Fatal(err)
	}
	ticket := func(name string) gssapi.Ticket {
		k, err := l.Ticket(t.Context(), principal(t, name+"/localhost@"+c.Realm))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	forRPC, forWeb := ticket("yarn"), ticket("HTTP")
	byRPC := func() error {
		calls := hrpc.NewClient(hrpc.ClientConfig{})
		defer calls.Close()
		_, err := yarnrpc.NewApplicationClientProtocolClient(calls, c.Client, hrpc.Login{Kerberos: &hrpc.KerberosLogin{
			Principal: "alice@" + c.Realm, Begin: rpcauth.WithTicket(forRPC, protections),
		}}).GetClusterMetrics(t.Context(), &yarnpb.GetClusterMetricsRequestProto{})
		return err
	}
	byWeb := func() reply {
		_, header, err := spnego.Begin(forWeb, time.Now(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return browser{c: c}.call(t, "GET", whoAmI, "--header", "Authorization: "+header)
	}
	if err := byRPC(); err != nil {
		t.Errorf("a ticket by RPC: %v", err)
	}
	byWeb().is(t, "a ticket", "200", `"requestedUser":"alice"`)
	time.Sleep(time.Until(forWeb.End.Add(3 * time.Second)))
	forRPC.End, forWeb.End = time.Now().Add(time.Hour), time.Now().Add(time.Hour) // the client does not care
	const ended = "the ticket of alice@CREEL.TEST expired"
	if err := byRPC(); err == nil || !strings.Contains(err.Error(), ended) {
		t.Errorf("an ended ticket by RPC: %v", err)
	}
	byWeb().is(t, "an ended ticket", "403", ended)
}

// Proxy users act for others by doAs, as hadoop.proxyuser.* allows.
func TestWebProxyUsersActForAllowedUsersAlone(t *testing.T) {
	c := startWeb(t, hadoop.Conf{
		"hadoop.proxyuser.hue.hosts": "127.0.0.1", "hadoop.proxyuser.hue.users": "alice",
		"hadoop.proxyuser.oozie.hosts": "10.9.9.9", "hadoop.proxyuser.oozie.users": "alice",
	})
	hue, alice := c.browser(t, "hue"), c.browser(t, "alice")
	id := hue.submit(t, "?doAs=alice")
	alice.call(t, "GET", allApps+"/"+id).is(t, "hue's application for alice", "200", `"user":"alice"`)
	hue.kill(t, id, "").is(t, "hue's kill in its own name", "403", "hue")
	const refused = "is not allowed to impersonate"
	hue.call(t, "POST", newOne+"?doAs=bob").is(t, "hue for bob", "403", refused)
	hue.call(t, "POST", newOne+"?DOAS="+c.user).is(t, "hue for an administrator", "403", refused)
	alice.call(t, "POST", newOne+"?doas=hue").is(t, "alice for hue", "403", refused)
	alice.call(t, "GET", allApps+"?doAs="+c.user+"&user.name=hue").is(t, "alice as hue for another", "403", refused)
	c.browser(t, "oozie").call(t, "POST", newOne+"?doAs=alice").is(t, "oozie from another address", "403",
		"Unauthorized connection for super-user")
	c.Await(t, "the application's end", func() bool { return hue.kill(t, id, "?doAs=alice").status == "200" })
}

// Hadoop's own client changes queues over the web with an administrator's ticket, and without right changes nothing.
func TestHadoopsClientChangesQueuesByTicket(t *testing.T) {
	c := startWeb(t, nil)
	change := func(client hadoop.Client) hadoop.Result {
		return client.Run(t, hadoop.SchedConfCLI, "-global", "yarn.scheduler.capacity.maximum-applications=500")
	}
	const changed = "Configuration changed successfully."
	if r := change(c.client(t, "alice", c.AddPrincipal(t, "alice"), nil)); strings.Contains(r.All, changed) {
		t.Errorf("alice changes queues\n%.3000s", r.All)
	}
	none := c.client(t, c.user, c.userKeytab, nil)
	none.Env = []string{"KRB5CCNAME=" + filepath.Join(t.TempDir(), "empty")}
	if r := change(none); strings.Contains(r.All, changed) {
		t.Errorf("nobody changes queues\n%.3000s", r.All)
	}
	if r := change(c.client(t, c.user, c.userKeytab, nil)); !strings.Contains(r.All, changed) {
		t.Errorf("an administrator's change: %d\n%.4000s", r.Code, r.All)
	}
}

// A delegation token that curl fetches by a ticket serves Hadoop's client by RPC, until curl cancels it.
func TestTokensFetchedOverWebServeRPC(t *testing.T) {
	c := startWeb(t, nil)
	const path = "/ws/v1/cluster/delegation-token"
	alice := c.browser(t, "alice")
	issued := alice.call(t, "POST", path, "--header", asJSON, "--data", `{"renewer":"yarn/localhost@CREEL.TEST"}`)
	issued.is(t, "a token", "200", `"owner":"alice"`)
	var doc struct{ Token string }
	if err := json.Unmarshal([]byte(issued.body), &doc); err != nil {
		t.Fatal(err)
	}
	held, err := token.ParseURLString(doc.Token)
	if err != nil {
		t.Fatal(err)
	}
	held.Service = "127.0.0.1" + strings.TrimPrefix(c.Client, "localhost")
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, token.Credentials{}.With("rm", held).Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	client := c.client(t, c.user, c.userKeytab, nil)
	client.Env = []string{"HADOOP_TOKEN_FILE_LOCATION=" + file, "KRB5CCNAME=" + filepath.Join(t.TempDir(), "empty")}
	client.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t)

	sent := []string{"--header", "Hadoop-YARN-RM-Delegation-Token: " + doc.Token}
	none := browser{c: c}
	none.call(t, "POST", path+"/expiration?user.name=yarn", sent...).is(t, "renewal without a ticket", "401", notLogIn)
	byToken := func(method, path string, more ...string) reply {
		return none.call(t, method, path, append(more, "--header", "X-Hadoop-Delegation-Token: "+doc.Token)...)
	}
	in := byToken("GET", whoAmI+"?user.name=root&doAs=bob")
	in.is(t, "the token as a login", "200", `"requestedUser":"alice"`)
	if strings.Contains(in.headers, spnego.CookieName) {
		t.Errorf("a token sets a cookie\n%s", in.headers)
	}
	none.call(t, "GET", whoAmI+"?delegation="+doc.Token).is(t, "the token in the query", "200", `"requestedUser":"alice"`)
	none.call(t, "GET", whoAmI, "--header", "Hadoop-YARN-Auth-Delegation-Token: "+doc.Token).
		is(t, "the token in the header of old clients", "200", `"requestedUser":"alice"`)
	byToken("POST", newOne).is(t, "a change by the token", "200", "application-id")
	byToken("POST", path, "--header", asJSON, "--data", `{"renewer":"yarn"}`).
		is(t, "a token for a token", "403", "only be carried out on a Kerberos authenticated channel")
	byToken("POST", path+"/expiration", sent...).is(t, "renewal by the token", "403", "Kerberos authenticated channel")
	byToken("DELETE", path, sent...).is(t, "cancellation by the token", "403", "Kerberos authenticated channel")
	forged := held
	forged.Password = make([]byte, len(held.Password))
	for name, text := range map[string]string{"a forged token": forged.URLString(), "no token": "x", "half a token": doc.Token[:30]} {
		none.call(t, "GET", whoAmI+"?delegation="+text).is(t, name, "403", `"exception":"AuthenticationException"`)
		alice.call(t, "GET", whoAmI+"?delegation="+text).is(t, name+" beside a ticket", "403", "AuthenticationException")
	}
	c.browser(t, "bob").call(t, "DELETE", path, sent...).is(t, "bob's cancellation", "403", "bob")
	renewer := browser{c: c, cache: c.Login(t, "yarn/localhost", c.Conf["yarn.resourcemanager.keytab"])}
	renewer.call(t, "POST", path+"/expiration", sent...).is(t, "the renewal", "200", `"expiration-time":`)
	alice.call(t, "DELETE", path, sent...).is(t, "the cancellation", "200", "")
	byToken("GET", whoAmI).is(t, "a cancelled token", "403", "is not known here")
	if r := client.Run(t, hadoop.ApplicationCLI, "application", "-list"); r.Code == 0 ||
		!strings.Contains(r.All, "is not known here") {
		t.Errorf("a cancelled token: code %d\n%.3000s", r.Code, r.All)
	}
}

// A delegation token that is not renewed is no login after its interval.
func TestExpiredTokenIsNoLogin(t *testing.T) {
	c := startWeb(t, hadoop.Conf{"yarn.resourcemanager.delegation.token.renew-interval": "3000"})
	alice, none := c.browser(t, "alice"), browser{c: c}
	issued := alice.call(t, "POST", "/ws/v1/cluster/delegation-token", "--header", asJSON, "--data", `{"renewer":"yarn"}`)
	var doc struct{ Token string }
	if err := json.Unmarshal([]byte(issued.body), &doc); err != nil || doc.Token == "" {
		t.Fatalf("%s %s: %v", issued.status, issued.body, err)
	}
	c.Await(t, "the token's end", func() bool {
		return none.call(t, "GET", whoAmI+"?delegation="+doc.Token).status == "403"
	})
	alice.call(t, "GET", whoAmI).is(t, "alice's ticket afterwards", "200", `"requestedUser":"alice"`)
}
