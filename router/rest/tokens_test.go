// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
)

// A token issued by one router by REST is a login for its holder at the other's RPC port, as its owner; both renew
// it, and when one has cancelled it no router accepts it.
func TestADelegationTokenHoldsAtEveryRouter(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 2})
	one, two := f.Routers[0], f.Routers[1]
	const path = base + "/delegation-token"
	if r := call(t, one.Web, "POST", path, `{"renewer":"yarn"}`); r.status != 403 {
		t.Errorf("a token for nobody: %d %s", r.status, r.body)
	}
	if r := call(t, one.Web, "POST", path+asAlice, `{}`); r.status != 400 {
		t.Errorf("a token without a renewer: %d %s", r.status, r.body)
	}
	issued := call(t, one.Web, "POST", path+asAlice, `{"renewer":"yarn"}`)
	if issued.status != 200 || at(t, issued.body, "owner") != "alice" || at(t, issued.body, "kind") != "RM_DELEGATION_TOKEN" ||
		at(t, issued.body, "max-validity").(float64)-at(t, issued.body, "expiration-time").(float64) != 6*24*3600*1000 {
		t.Fatalf("issued: %d %s", issued.status, issued.body)
	}
	text := at(t, issued.body, "token").(string)
	held, err := token.ParseURLString(text)
	if err != nil {
		t.Fatal(err)
	}
	// by returns a client of the token's holder, at a router on its own connection.
	by := func(r *routertest.Router) yarnrpc.ApplicationClientProtocolClient {
		client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
		t.Cleanup(func() { client.Close() })
		return yarnrpc.NewApplicationClientProtocolClient(client, r.Client, hrpc.Login{Credential: &hrpc.Credential{
			Identifier: held.Identifier, Password: held.Password, Kind: held.Kind,
		}})
	}
	for i, r := range f.Routers {
		id := f.Members[0].NewApplicationID()
		if _, err := by(r).SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: routertest.Context(id, "by token"),
		}); err != nil {
			t.Fatalf("router %d: %v", i, err)
		}
		if app, ok := f.Members[0].App(t.Context(), id); !ok || app.User != "alice" {
			t.Errorf("router %d: the application is of %q", i, app.User)
		}
	}
	header := []string{"Hadoop-YARN-RM-Delegation-Token", text}
	if r := call(t, two.Web, "POST", path+"/expiration?user.name=yarn", "", header...); r.status != 200 || at(t, r.body, "expiration-time") == 0.0 {
		t.Errorf("renewed: %d %s", r.status, r.body)
	}
	if r := call(t, two.Web, "POST", path+"/expiration"+asAlice, "", header...); r.status != 403 {
		t.Errorf("renewed by its owner: %d %s", r.status, r.body)
	}
	if r := call(t, two.Web, "POST", path+"/expiration"+asAlice, ""); r.status != 400 {
		t.Errorf("renewed without it: %d %s", r.status, r.body)
	}
	answer, err := f.As(two, "yarn").RenewDelegationToken(t.Context(), &pb.RenewDelegationTokenRequestProto{Token: held.Proto()})
	if err != nil || answer.GetNewExpiryTime() == 0 {
		t.Errorf("renewed by RPC: %v, %v", answer, err)
	}
	if r := call(t, two.Web, "DELETE", path+asAlice, "", header...); r.status != 200 || r.body != "" {
		t.Errorf("cancelled: %d %s", r.status, r.body)
	}
	for i, r := range f.Routers {
		if _, err := by(r).GetClusterMetrics(t.Context(), &pb.GetClusterMetricsRequestProto{}); !errors.Is(err, creel.ErrInvalidToken) {
			t.Errorf("router %d after the end: %v", i, err)
		}
		if r := call(t, r.Web, "POST", path+"/expiration?user.name=yarn", "", header...); r.status != 400 {
			t.Errorf("router %d renewed it after its end: %d %s", i, r.status, r.body)
		}
	}
	var refused *hrpc.RemoteError
	_, err = f.As(one, "alice").CancelDelegationToken(t.Context(), &pb.CancelDelegationTokenRequestProto{
		Token: &pb.TokenProto{Identifier: []byte("x"), Password: []byte("y"), Kind: proto.String("z"), Service: proto.String("")},
	})
	if !errors.As(err, &refused) || refused.Class != hrpc.ClassInvalidToken {
		t.Errorf("what is no token: %v", err)
	}
}
