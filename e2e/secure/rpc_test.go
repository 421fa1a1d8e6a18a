// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/username"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

const service = "yarn/localhost@CREEL.TEST"

var protections = []gssapi.Protection{gssapi.Authentication, gssapi.Integrity, gssapi.Privacy}

// handler answers with many applications of the caller, more than one wrapped packet holds.
type handler struct {
	yarnrpc.UnimplementedApplicationClientProtocol
}

const applications = 700

func (handler) GetApplications(
	ctx context.Context, _ *yarnpb.GetApplicationsRequestProto,
) (*yarnpb.GetApplicationsResponseProto, error) {
	who := hrpc.CallFrom(ctx).Identity
	name := fmt.Sprintf("%s as %s by %s", who.Principal, who.User, who.Method)
	none := yarnpb.FromResource(creel.Resource{})
	answer := &yarnpb.GetApplicationsResponseProto{}
	for n := range int32(applications) {
		id := creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: n + 1}
		answer.Applications = append(answer.Applications, &yarnpb.ApplicationReportProto{
			ApplicationId: yarnpb.FromApplicationID(id), User: &who.User, Name: &name,
			Queue: proto.String("root.default"), Host: proto.String("N/A"), RpcPort: proto.Int32(-1),
			TrackingUrl: proto.String("N/A"), OriginalTrackingUrl: proto.String("N/A"), Diagnostics: proto.String(""),
			YarnApplicationState:   yarnpb.YarnApplicationStateProto_RUNNING.Enum(),
			FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_UNDEFINED.Enum(),
			StartTime:              proto.Int64(1), FinishTime: proto.Int64(0), Progress: proto.Float32(0.5),
			ApplicationType: proto.String("YARN"), CurrentApplicationAttemptId: yarnpb.FromAttemptID(
				creel.AttemptID{Application: id, Attempt: 1}),
			AppResource_Usage: &yarnpb.ApplicationResourceUsageReportProto{
				UsedResources: none, ReservedResources: none, NeededResources: none,
			},
		})
	}
	return answer, nil
}

// GetNewApplication answers with nothing: a small answer.
func (handler) GetNewApplication(
	context.Context, *yarnpb.GetNewApplicationRequestProto,
) (*yarnpb.GetNewApplicationResponseProto, error) {
	return &yarnpb.GetNewApplicationResponseProto{}, nil
}

// serve serves the handler with these authentications until the test ends, and returns the address.
func serve(t testing.TB, k *KDC, cfg hrpc.Config) string {
	t.Helper()
	var err error
	if cfg.Names, err = username.ParseRules("DEFAULT", "hadoop", k.Realm); err != nil {
		t.Fatal(err)
	}
	cfg.Services = []hrpc.Service{yarnrpc.ApplicationClientProtocolService(handler{})}
	cfg.ErrorOf, cfg.DrainTime = yarnrpc.ErrorOf, time.Second
	server, err := hrpc.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return listener.Addr().String()
}

// world is a realm with a client and a service.
type world struct {
	*KDC
	alice, service string // keytabs
	conf           *kerberos.Config
	acceptor       *gssapi.Acceptor
}

func newWorld(t testing.TB, r Realm) *world {
	t.Helper()
	w := &world{KDC: StartKDC(t, r)}
	w.alice, w.service = w.AddPrincipal(t, "alice"), w.AddPrincipal(t, "yarn/localhost")
	w.conf, w.acceptor = w.config(t), acceptor(t, service, w.service)
	return w
}

// kerberos makes the server's part.
func (w *world) kerberos(t testing.TB, offers ...gssapi.Protection) *hrpc.KerberosServer {
	t.Helper()
	k, err := rpcauth.Server(w.acceptor, offers, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// login makes alice's part.
func (w *world) login(t testing.TB, accepts ...gssapi.Protection) hrpc.Login {
	t.Helper()
	l := keytabLogin(t, w.conf, "alice@CREEL.TEST", w.alice)
	return hrpc.Login{Kerberos: rpcauth.Client(l, []gssapi.Principal{principal(t, service)}, accepts)}
}

// dial makes a client of a server.
func dial(t testing.TB, address string, login hrpc.Login) *hrpc.Peer {
	t.Helper()
	c := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { c.Close() })
	return c.Peer(hrpc.Target{
		Address: address, Protocol: "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB", Login: login,
	})
}

// list calls getApplications and returns the name of the last application.
func list(t testing.TB, p *hrpc.Peer) (string, error) {
	t.Helper()
	var answer yarnpb.GetApplicationsResponseProto
	if err := p.Call(t.Context(), "getApplications", &yarnpb.GetApplicationsRequestProto{}, &answer); err != nil {
		return "", err
	}
	if len(answer.GetApplications()) != applications {
		t.Errorf("%d applications", len(answer.GetApplications()))
	}
	return answer.GetApplications()[applications-1].GetName(), nil
}

func TestOurEndsTalkAtEachProtection(t *testing.T) {
	w := newWorld(t, Realm{})
	for _, p := range protections {
		peer := dial(t, serve(t, w.KDC, hrpc.Config{Kerberos: w.kerberos(t, p)}), w.login(t, p))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				got, err := list(t, peer)
				if err != nil || got != "alice@CREEL.TEST as alice by KERBEROS" {
					t.Errorf("%s: %q, %v", p, got, err)
				}
			})
		}
		all.Wait()
	}
}

// realm returns the settings of Hadoop's programs in the realm.
func (w *world) settings(p gssapi.Protection) hadoop.Conf {
	return hadoop.Conf{
		"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": p.String(),
		"hadoop.security.auth_to_local":  "DEFAULT",
		"yarn.resourcemanager.principal": service,
	}
}

// java returns the environment of a JVM in the realm.
func (w *world) java(more ...string) []string {
	return append(more, w.KDC.java())
}

func TestHadoopsClientTalksToOurServer(t *testing.T) {
	w := newWorld(t, Realm{})
	for _, p := range protections {
		w.listByHadoop(t, p)
	}
}

// The other types of keys: RFC 8009's, and the shorter one of RFC 3962.
func TestHadoopsClientTalksWithEachKeyType(t *testing.T) {
	for _, enctype := range []string{
		"aes128-cts-hmac-sha1-96", "aes128-cts-hmac-sha256-128", "aes256-cts-hmac-sha384-192",
	} {
		newWorld(t, Realm{Enctypes: enctype}).listByHadoop(t, gssapi.Privacy)
	}
}

// listByHadoop runs yarn application -list of Hadoop's at a server of ours.
func (w *world) listByHadoop(t *testing.T, p gssapi.Protection) {
	t.Helper()
	_, port, err := net.SplitHostPort(serve(t, w.KDC, hrpc.Config{Kerberos: w.kerberos(t, p)}))
	if err != nil {
		t.Fatal(err)
	}
	r := hadoop.Client{
		Conf: hadoop.Addresses{Client: "localhost:" + port}.Conf().With(w.settings(p)),
		Env:  w.java("KRB5CCNAME=" + w.Login(t, "alice", w.alice)),
	}.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t)
	if n := strings.Count(r.Stdout, "alice@CREEL.TEST as alice by KERBEROS"); n != applications {
		t.Errorf("%s: %d applications\n%.3000s", p, n, r.All)
	}
}

func TestOurClientTalksToHadoopsServer(t *testing.T) {
	w := newWorld(t, Realm{})
	for _, p := range protections {
		address := process.FreeAddress(t, "127.0.0.1")
		_, port, _ := net.SplitHostPort(address)
		server := hadoop.Client{Conf: w.settings(p), Env: w.java()}.
			Start(t, "RpcServer", port, "2", service, w.service)
		server.WaitLine(t, "serving ")
		peer := dial(t, address, w.login(t, p))
		for _, size := range []int{1, 100, 70_000, 300_000} {
			renewer := strings.Repeat("r", size)
			request, answer := proto.Message(&yarnpb.GetDelegationTokenRequestProto{Renewer: &renewer}),
				new(yarnpb.GetDelegationTokenResponseProto)
			if err := peer.Call(t.Context(), "getDelegationToken", request, answer); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			if got := answer.GetToken(); string(got.GetIdentifier()) != renewer ||
				got.GetKind() != "alice@CREEL.TEST (auth:KERBEROS)" {
				t.Errorf("%s: %d bytes of %s", p, len(got.GetIdentifier()), got.GetKind())
			}
		}
		// A stricter client does not accept the weaker protections.
		if p != gssapi.Privacy {
			if _, err := list(t, dial(t, address, w.login(t, gssapi.Privacy))); err == nil ||
				!strings.Contains(err.Error(), "the server offers none of the protections [privacy]") {
				t.Error(err)
			}
		}
		server.Stop()
	}
}

func TestHostileClientsAreRejected(t *testing.T) {
	w := newWorld(t, Realm{})
	address := serve(t, w.KDC, hrpc.Config{Kerberos: w.kerberos(t, gssapi.Privacy)})
	other := StartKDC(t, Realm{})
	mallory := other.AddPrincipal(t, "alice")
	other.AddPrincipal(t, "yarn/localhost")
	w.AddPrincipal(t, "hdfs/localhost")

	services := []gssapi.Principal{principal(t, service)}
	begin := func(ticket gssapi.Ticket, err error) hrpc.Login {
		if err != nil {
			t.Fatal(err)
		}
		return hrpc.Login{Kerberos: &hrpc.KerberosLogin{
			Principal: "alice@CREEL.TEST", Begin: rpcauth.WithTicket(ticket, protections),
		}}
	}
	alice := keytabLogin(t, w.conf, "alice@CREEL.TEST", w.alice)
	for name, c := range map[string]struct {
		login hrpc.Login
		want  string
	}{
		"simple": {hrpc.Login{User: "alice"}, "SIMPLE authentication is not enabled here. Log in by Kerberos (kinit)"},
		"token": {
			hrpc.Login{Credential: &hrpc.Credential{Identifier: []byte("x"), Password: []byte("y")}},
			"the server offers [KERBEROS GSSAPI], none of which takes a token",
		},
		"weaker protection": {
			w.login(t, gssapi.Integrity, gssapi.Authentication), "the server offers none of the protections",
		},
		"another realm's KDC": {
			hrpc.Login{Kerberos: rpcauth.Client(
				keytabLogin(t, other.config(t), "alice@CREEL.TEST", mallory), services, protections)},
			"the ticket does not fit the key of yarn/localhost@CREEL.TEST",
		},
		"another service": {
			begin(alice.Ticket(t.Context(), principal(t, "hdfs/localhost@CREEL.TEST"))),
			"the ticket is for hdfs/localhost@CREEL.TEST; this service is yarn/localhost@CREEL.TEST",
		},
		"another server's name": {
			hrpc.Login{Kerberos: rpcauth.Client(
				alice, []gssapi.Principal{principal(t, "yarn/rm1@CREEL.TEST")}, protections)},
			"expected is [yarn/rm1@CREEL.TEST]",
		},
		"impersonation": {
			func() hrpc.Login { l := w.login(t, gssapi.Privacy); l.User = "bob"; return l }(),
			`user "alice" may not impersonate "bob"`,
		},
	} {
		if got, err := list(t, dial(t, address, c.login)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v\nwant %s", name, got, err, c.want)
		}
	}
}

// The service's clock is later than the ticket's end.
func TestExpiredTicketIsRejected(t *testing.T) {
	w := newWorld(t, Realm{})
	k, err := rpcauth.Server(w.acceptor, protections, func() time.Time { return time.Now().Add(11 * time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	got, err := list(t, dial(t, serve(t, w.KDC, hrpc.Config{Kerberos: k}), w.login(t, gssapi.Privacy)))
	var e *hrpc.RemoteError
	if !errors.As(err, &e) || e.Class != hrpc.ClassSasl ||
		!strings.Contains(e.Message, "the ticket of alice@CREEL.TEST expired") {
		t.Errorf("%q, %v", got, err)
	}
}

// tampering changes the messages of a client's exchange.
type tampering struct {
	hrpc.Exchange
	step int
	in   func(step int, token []byte) []byte
	out  func(step int, token []byte) []byte
}

func (x *tampering) Step(token []byte) (reply []byte, done bool, err error) {
	x.step++
	if x.in != nil {
		token = x.in(x.step, token)
	}
	reply, done, err = x.Exchange.Step(token)
	if x.out != nil {
		reply = x.out(x.step, reply)
	}
	return reply, done, err
}

func TestTamperedExchangesAreRejected(t *testing.T) {
	w := newWorld(t, Realm{})
	address := serve(t, w.KDC, hrpc.Config{Kerberos: w.kerberos(t, protections...)})
	through := func(x tampering) (string, error) {
		login := w.login(t, protections...)
		begin := login.Kerberos.Begin
		login.Kerberos.Begin = func(protocol, id string) (hrpc.Exchange, error) {
			inner, err := begin(protocol, id)
			x.Exchange = inner
			return &x, err
		}
		return list(t, dial(t, address, login))
	}
	var first []byte
	if _, err := through(tampering{out: func(step int, token []byte) []byte {
		if step == 1 {
			first = bytes.Clone(token)
		}
		return token
	}}); err != nil {
		t.Fatal(err)
	}
	// weaken replaces the protections of a wrapped offer or choice, which stand after a header of 16 bytes.
	weaken := func(step int, token []byte) []byte {
		if step == 3 {
			token[16] = byte(gssapi.Authentication)
		}
		return token
	}
	for name, c := range map[string]struct {
		tampering
		want string
	}{
		"replay": {tampering{out: func(int, []byte) []byte { return first }}, "the authenticator is a replay"},
		"stripped offer": {tampering{in: func(step int, token []byte) []byte {
			return weaken(step, bytes.Clone(token))
		}}, "a wrapped message fails its integrity check"},
		"changed choice": {tampering{out: func(step int, token []byte) []byte {
			if step == 3 {
				token[16] = byte(gssapi.Privacy)
			}
			return token
		}}, "a wrapped message fails its integrity check"},
	} {
		if got, err := through(c.tampering); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestClientNeverFallsBackToSimple(t *testing.T) {
	w := newWorld(t, Realm{})
	for name, cfg := range map[string]hrpc.Config{
		"simple alone": {Simple: true},
		"simple and tokens": {Simple: true, Tokens: func([]byte) ([]byte, hrpc.Identity, error) {
			return nil, hrpc.Identity{}, errors.New("none")
		}},
	} {
		login := w.login(t, protections...)
		login.User = "alice"
		if got, err := list(t, dial(t, serve(t, w.KDC, cfg), login)); err == nil ||
			!strings.Contains(err.Error(), "the server does not authenticate by Kerberos; SIMPLE is not permitted") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := hrpc.NewServer(hrpc.Config{Simple: true, Kerberos: w.kerberos(t, gssapi.Privacy)}); err == nil {
		t.Error("a server accepted SIMPLE beside Kerberos")
	}
}

func TestPrincipalActsForPermittedUsers(t *testing.T) {
	w := newWorld(t, Realm{})
	address := serve(t, w.KDC, hrpc.Config{
		Kerberos: w.kerberos(t, protections...),
		Impersonate: func(real, effective string, _ netip.Addr) error {
			if real == "alice" && effective == "bob" {
				return nil
			}
			return errors.New("no")
		},
	})
	for user, want := range map[string]string{
		"bob": "as bob", "alice": "as alice", "alice@CREEL.TEST": "as alice", "": "as alice",
	} {
		login := w.login(t, gssapi.Integrity)
		login.User = user
		if got, err := list(t, dial(t, address, login)); err != nil || !strings.Contains(got, want) {
			t.Errorf("%q: %q, %v", user, got, err)
		}
	}
	login := w.login(t, gssapi.Integrity)
	login.User = "carol"
	if got, err := list(t, dial(t, address, login)); err == nil {
		t.Errorf("carol: %q", got)
	}
}
