// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/username"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// ticket is both ends of a login whose only message is the client's principal.
type ticket string

func (t *ticket) Step(message []byte) ([]byte, bool, error) {
	if message == nil {
		return []byte(*t), true, nil
	}
	*t = ticket(message)
	return nil, true, nil
}

func (t *ticket) Layer() hrpc.Layer { return nil }
func (t *ticket) Principal() string { return string(*t) }

func byTicket(principal string) hrpc.Login {
	return hrpc.Login{Kerberos: &hrpc.KerberosLogin{
		Principal: principal,
		Begin:     func(string, string) (hrpc.Exchange, error) { return new(ticket(principal)), nil },
	}}
}

// secure is the configuration of a ResourceManager with Kerberos.
func secure(t *testing.T) conf {
	t.Helper()
	names, err := username.ParseRules("DEFAULT", "hadoop", "REALM")
	if err != nil {
		t.Fatal(err)
	}
	c := config()
	c.Secure = &server.Secure{Names: names}
	c.rpc.RPC.Names = names
	c.rpc.RPC.Kerberos = &hrpc.KerberosServer{
		Protocol: "rm", ServerID: "host", Begin: func() hrpc.ServerExchange { return new(ticket) },
	}
	c.rpc.Node = func(who *hrpc.Identity, _ netip.Addr) error {
		if who.Principal == "nm/host@REALM" {
			return nil
		}
		return errors.New("this service is only accessible by nm/host@REALM")
	}
	return c
}

// callEach calls each port of a ResourceManager with a login.
func (c *cluster) callEach(t *testing.T, login hrpc.Login) map[string]error {
	t.Helper()
	a, out := c.s.Addresses(), map[string]error{}
	_, out["client"] = yarnrpc.NewApplicationClientProtocolClient(c.client, a.Client, login).
		GetClusterMetrics(t.Context(), &pb.GetClusterMetricsRequestProto{})
	_, out["scheduler"] = yarnrpc.NewApplicationMasterProtocolClient(c.client, a.Scheduler, login).
		FinishApplicationMaster(t.Context(), &pb.FinishApplicationMasterRequestProto{})
	_, out["tracker"] = yarnrpc.NewResourceTrackerClient(c.client, a.Tracker, login).
		UnRegisterNodeManager(t.Context(), &pb.UnRegisterNodeManagerRequestProto{})
	_, out["admin"] = yarnrpc.NewResourceManagerAdministrationProtocolClient(c.client, a.Admin, login).
		RefreshNodes(t.Context(), &pb.RefreshNodesRequestProto{})
	return out
}

func TestSecurePortsRejectOtherLogins(t *testing.T) {
	c := start(t, secure(t))
	const noSimple = "SIMPLE authentication is not enabled"
	const noTicket = "none of which takes a token"
	delegation := token.NewMac(token.Key{ID: 1, Secret: []byte("12345678")}).Delegation(token.Delegation{Owner: "root"})
	for name, k := range map[string]struct {
		login hrpc.Login
		want  map[string]string // "" for a served call
	}{
		"simple": {hrpc.Login{User: "root"}, map[string]string{
			"client": noSimple, "scheduler": noSimple, "tracker": noSimple, "admin": noSimple,
		}},
		"forged token": {login(delegation), map[string]string{
			"client": "is not known here", "scheduler": "YARN_AM_RM_TOKEN", "tracker": noTicket, "admin": noTicket,
		}},
		"root's ticket": {byTicket("root@REALM"), map[string]string{
			"client": "", "scheduler": "does not authenticate by Kerberos", "tracker": "only accessible by", "admin": "",
		}},
		"another realm's root": {byTicket("root@OTHER"), map[string]string{
			"client": "no rule", "scheduler": "does not authenticate by Kerberos", "tracker": "no rule", "admin": "no rule",
		}},
		"a user's ticket": {byTicket("alice@REALM"), map[string]string{
			"client": "", "scheduler": "does not authenticate by Kerberos", "tracker": "only accessible by",
			"admin": "doesn't have permission",
		}},
	} {
		for port, err := range c.callEach(t, k.login) {
			if want := k.want[port]; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s at %s: %v\nwant %q", name, port, err, want)
			}
		}
	}
	if err := c.callEach(t, byTicket("nm/host@REALM"))["tracker"]; err != nil {
		t.Errorf("the NodeManager: %v", err)
	}
}

func TestTokensBegetNoTokens(t *testing.T) {
	c := start(t, secure(t))
	as := func(login hrpc.Login) yarnrpc.ApplicationClientProtocolClient {
		return yarnrpc.NewApplicationClientProtocolClient(c.client, c.s.Addresses().Client, login)
	}
	get := func(login hrpc.Login, renewer string) (token.Token, error) {
		answer, err := as(login).GetDelegationToken(t.Context(), &pb.GetDelegationTokenRequestProto{Renewer: &renewer})
		return token.FromProto(answer.GetToken()), err
	}
	held, err := get(byTicket("alice@REALM"), "rm/host@REALM")
	if err != nil {
		t.Fatal(err)
	}
	id, err := token.ParseDelegation(held.Identifier)
	if err != nil || id.Owner != "alice" || id.Renewer != "rm" {
		t.Errorf("the token is %+v, %v", id, err)
	}
	if _, err := get(byTicket("alice@REALM"), "rm/host@OTHER"); err == nil {
		t.Error("a renewer of an unknown realm was accepted")
	}
	refused := func(what, done string, err error) {
		t.Helper()
		if want := "Delegation Token can be " + done + " only with kerberos authentication"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s by a token: %v", what, err)
		}
	}
	_, err = get(login(held), "rm/host@REALM")
	refused("get", "issued", err)
	renew := &pb.RenewDelegationTokenRequestProto{Token: held.Proto()}
	_, err = as(login(held)).RenewDelegationToken(t.Context(), renew)
	refused("renew", "renewed", err)
	cancel := &pb.CancelDelegationTokenRequestProto{Token: held.Proto()}
	_, err = as(login(held)).CancelDelegationToken(t.Context(), cancel)
	refused("cancel", "cancelled", err)
	if _, err := as(byTicket("alice@REALM")).RenewDelegationToken(t.Context(), renew); err == nil {
		t.Error("the owner renewed the token, who is not its renewer")
	}
	if _, err := as(byTicket("rm/host@REALM")).RenewDelegationToken(t.Context(), renew); err != nil {
		t.Errorf("the renewer: %v", err)
	}
	if _, err := as(byTicket("alice@REALM")).CancelDelegationToken(t.Context(), cancel); err != nil {
		t.Errorf("the owner: %v", err)
	}
}
