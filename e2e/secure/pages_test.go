// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// registerPage registers the AM of an unmanaged application of alice at its home, with a page.
func (f *secured) registerPage(t *testing.T, alice browser, id, page string) {
	t.Helper()
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	calls := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { calls.Close() })
	l := keytabLogin(t, f.config(t), "alice@"+f.Realm, filepath.Join(f.dir, "alice.keytab"))
	router := yarnrpc.NewApplicationClientProtocolClient(calls, f.RouterAddresses[0].Client,
		hrpc.Login{Kerberos: rpcauth.Client(l, []gssapi.Principal{principal(t, "router/localhost@"+f.Realm)},
			[]gssapi.Protection{gssapi.Privacy})})
	var am token.Token
	f.Routers[0].Await(t, "the token of the AM", func() bool {
		r, err := router.GetApplicationReport(t.Context(),
			&yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)})
		if err != nil {
			t.Fatal(err)
		}
		am = token.FromProto(r.GetApplicationReport().GetAmRmToken())
		return len(am.Identifier) > 0
	})
	home := f.Subclusters[0]
	if why := alice.call(t, "GET", "/api/v1/apps/"+id+"/why").body; strings.Contains(why, `"home":"sc-2"`) {
		home = f.Subclusters[1]
	}
	scheduler := yarnrpc.NewApplicationMasterProtocolClient(calls, home.Addresses.Scheduler, hrpc.Login{
		Credential: &hrpc.Credential{
			Identifier: am.Identifier, Password: am.Password, Kind: am.Kind, Service: am.Service,
		}})
	host, port := "127.0.0.1", int32(7)
	if _, err := scheduler.RegisterApplicationMaster(t.Context(), &yarnpb.RegisterApplicationMasterRequestProto{
		Host: &host, RpcPort: &port, TrackingUrl: &page,
	}); err != nil {
		t.Fatal(err)
	}
}

// An AM's page is seen through a secure router by the application's viewers, under their own names. The AM gets no
// login, neither the browser's nor the router's.
func TestSecureRouterShowsPagesOfAMs(t *testing.T) {
	f := startFederation(t, "privacy", withoutNodes)
	at := f.router()
	alice, bob, gate := at.browser(t, "alice"), at.browser(t, "bob"), at.browser(t, "gate")
	f.Routers[0].Await(t, "both members", func() bool {
		return strings.Count(alice.call(t, "GET", "/api/v1/subclusters").body, `"active"`) == 2
	})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ui/old" {
			http.Redirect(w, r, "/ui/new", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "hadoop.auth=mallory; Path=/")
		fmt.Fprintf(w, "%s %s cookie=%s auth=%s body=%s", r.Method, r.URL, r.Header.Get("Cookie"),
			r.Header.Get("Authorization"), body)
	}))
	defer page.Close()
	id := alice.submit(t, "")
	f.registerPage(t, alice, id, page.URL+"/ui")

	path := "/proxy/" + id
	const hers = "cookie=proxy-user=alice auth= body="
	for _, name := range []string{"the page", "the page again"} { // the second one after the AM has set a cookie
		alice.call(t, "GET", path+"/x?q=1&user.name=root").is(t, name, "200", "GET /ui/x?q=1 "+hers)
	}
	alice.call(t, "PUT", path+"/x", "--data", "a change").is(t, "a change", "200", "PUT /ui/x "+hers+"a change")
	alice.call(t, "GET", path+"/old").is(t, "a redirect", "302", "Location: "+path+"/new")
	browser{at, "", alice.cookies}.call(t, "GET", path+"/x").is(t, "the cookie of her login", "200", hers)
	issued := alice.call(t, "POST", "/ws/v1/cluster/delegation-token", "--header", asJSON, "--data", `{"renewer":"yarn"}`)
	_, text, _ := strings.Cut(issued.body, `"token":"`)
	text, _, _ = strings.Cut(text, `"`)
	nobody := browser{c: at}
	nobody.call(t, "GET", path+"/x?delegation="+text).is(t, "her delegation token", "200", "GET /ui/x "+hers)
	gate.call(t, "GET", path+"/x?doAs="+f.user).is(t, "an administrator by doAs", "200", "GET /ui/x cookie=proxy-user="+f.user+" ")

	nobody.call(t, "GET", path+"/x?user.name=alice").is(t, "no login", "401", notLogIn)
	bob.call(t, "GET", path+"/x").is(t, "another user", "403", "bob does not have privilege to see application")
	bob.call(t, "GET", path+"/x?doAs=alice").is(t, "doAs without right", "403", "is not allowed to impersonate")
	bob.call(t, "GET", path+"/x?user.name=alice&user.name=bob").is(t, "two names", "403", "bob does not have privilege")
	alice.call(t, "PUT", path+"/x", "--data", "a change", "--header", "Origin: http://evil.example").
		is(t, "a change of another site", "403", "another site")

	// The KDC's absence changes nothing for those that are logged in.
	f.KDC.process.Kill()
	browser{at, "", alice.cookies}.call(t, "GET", path+"/x").is(t, "without a KDC", "200", hers)
}
