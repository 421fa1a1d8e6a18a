// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/secure"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/username"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// The secure echo server answers allocateSize bytes, as an allocate answer with ten containers has, and accepts tickets
// for secureService and tokens with the password.
const (
	secureMode    = "secure "
	secureService = "yarn/localhost@CREEL.TEST"
	tokenPassword = "password"
	allocateSize  = 3000
)

var protections = []gssapi.Protection{gssapi.Privacy, gssapi.Authentication}

type allocating struct {
	yarnrpc.UnimplementedApplicationClientProtocol
	answer []byte
}

func (a allocating) GetDelegationToken(
	context.Context, *yarnpb.GetDelegationTokenRequestProto,
) (*yarnpb.GetDelegationTokenResponseProto, error) {
	return &yarnpb.GetDelegationTokenResponseProto{Token: &yarnpb.TokenProto{
		Identifier: a.answer, Password: []byte{}, Kind: proto.String(""), Service: proto.String(""),
	}}, nil
}

// secureEcho configures the secure echo server.
func secureEcho(cfg *hrpc.Config, path string) error {
	keytab, err := kerberos.LoadKeytab(path)
	if err != nil {
		return err
	}
	service, err := gssapi.ParsePrincipal(secureService)
	if err != nil {
		return err
	}
	if cfg.Names, err = username.ParseRules("DEFAULT", "hadoop", service.Realm); err != nil {
		return err
	}
	if cfg.Kerberos, err = rpcauth.Server(&gssapi.Acceptor{
		Service: service, Keys: keytab.Keys(service), Skew: 5 * time.Minute, Replays: gssapi.NewReplays(0),
	}, protections, time.Now); err != nil {
		return err
	}
	cfg.Protections = rpcauth.Digest(protections)
	cfg.Tokens = func(identifier []byte) ([]byte, hrpc.Identity, error) {
		attempt, err := token.ParseAMRM(identifier)
		if err != nil {
			return nil, hrpc.Identity{}, errors.New("no AMRM token")
		}
		return []byte(tokenPassword), hrpc.Identity{User: attempt.Attempt.String()}, nil
	}
	methods := yarnrpc.ApplicationClientProtocolService(allocating{answer: make([]byte, allocateSize)})
	cfg.Services = []hrpc.Service{yarnrpc.Inline(methods, "getDelegationToken")}
	return nil
}

// secureServers are the two servers in one realm, and a client's login by a ticket.
type secureServers struct {
	process map[string]*process.Process
	address map[string]string
	alice   *kerberos.Login
}

// secureTurns are the turns of a round. The second of ours is compared with Hadoop's, and with the first as a control.
var secureTurns = []string{"creel", "hadoop", "creel"}

func startSecure(b *testing.B) *secureServers {
	b.Helper()
	k := secure.StartKDC(b, secure.Realm{})
	keytab, ours := k.AddPrincipal(b, "yarn/localhost"), k.AddPrincipal(b, "alice")
	// Hadoop logs every login; the server of ours logs nothing.
	quiet := filepath.Join(b.TempDir(), "log4j.properties")
	if err := os.WriteFile(quiet, []byte("log4j.rootLogger=OFF\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	jvm := hadoop.Client{HeapMB: 512, FullJIT: true, Conf: hadoop.Conf{
		"hadoop.security.authentication": "kerberos", "hadoop.security.auth_to_local": "DEFAULT",
		"hadoop.rpc.protection": "privacy,authentication",
	}, Env: []string{
		"JDK_JAVA_OPTIONS=-Djava.security.krb5.conf=" + k.ConfigFile() + " -Dlog4j.configuration=file:" + quiet,
	}}
	s := &secureServers{process: map[string]*process.Process{
		"hadoop": jvm.Start(b, "RpcServer", "0", "10", secureService, keytab, fmt.Sprint(allocateSize)),
		"creel":  startEcho(b, "creel", secureMode+keytab),
	}, address: map[string]string{}}
	for name, p := range s.process {
		s.address[name] = addressOf(b, p)
	}
	conf, err := kerberos.LoadConfig(k.ConfigFile())
	if err != nil {
		b.Fatal(err)
	}
	keys, err := kerberos.LoadKeytab(ours)
	if err != nil {
		b.Fatal(err)
	}
	if s.alice, err = conf.LoginKeytab(gssapi.Principal{Names: []string{"alice"}, Realm: k.Realm}, keys); err != nil {
		b.Fatal(err)
	}
	return s
}

// login makes the login of one of several clients: by a ticket, or by a token of its own attempt.
func (s *secureServers) login(b *testing.B, way string, client int, p gssapi.Protection) hrpc.Login {
	b.Helper()
	if way == "token" {
		app := creel.ApplicationID{ClusterTimestamp: 1_700_000_000_000, ID: 1}
		id := token.AMRM{Attempt: creel.AttemptID{Application: app, Attempt: int32(client + 1)}}
		return hrpc.Login{Credential: &hrpc.Credential{
			Identifier: id.Append(nil), Password: []byte(tokenPassword),
			Protections: rpcauth.Digest([]gssapi.Protection{p}),
		}}
	}
	service, err := gssapi.ParsePrincipal(secureService)
	if err != nil {
		b.Fatal(err)
	}
	k := rpcauth.Client(s.alice, []gssapi.Principal{service}, []gssapi.Protection{p})
	k.Key += fmt.Sprint(client) // so that clients do not share a connection
	return hrpc.Login{Kerberos: k}
}

// connect opens connections, some at a time, makes one call on each, and returns connections a second, and connections
// a CPU second of the server and of this process.
func (s *secureServers) connect(
	b *testing.B, name string, workers, connections int, login hrpc.Login,
) (rate, perCPU, perOwnCPU float64) {
	renewer := strings.Repeat("x", payload)
	cpu, own, began := s.process[name].CPU(b), ownCPU(b), time.Now()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range connections / workers {
				client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
				peer := yarnrpc.NewApplicationClientProtocolClient(client, s.address[name], login)
				r, err := peer.GetDelegationToken(
					context.Background(), &yarnpb.GetDelegationTokenRequestProto{Renewer: &renewer})
				client.Close()
				if err != nil || len(r.GetToken().GetIdentifier()) != allocateSize {
					b.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	wg.Wait()
	n := float64(connections / workers * workers)
	return n / time.Since(began).Seconds(), n / (s.process[name].CPU(b) - cpu).Seconds(), n / (ownCPU(b) - own).Seconds()
}

// ownCPU is the CPU time of this process.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSecureConnections compares our RPC server with Hadoop's in logins by a ticket and by a token. A connection
// includes one call, whose answer proves the login. Turns alternate; the figures are medians. The goal is twice
// Hadoop's connections per CPU second.
func BenchmarkSecureConnections(b *testing.B) {
	s := startSecure(b)
	for _, way := range []string{"ticket", "token"} {
		for _, workers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/workers=%d", way, workers), func(b *testing.B) {
				login, connections := s.login(b, way, 0, gssapi.Authentication), 320
				for range 2 {
					for _, name := range secureTurns {
						s.connect(b, name, workers, connections, login) // warm: Java's compiler
					}
				}
				m := metrics{}
				for range b.N {
					for _, name := range secureTurns {
						rate, cpu, own := s.connect(b, name, workers, connections, login)
						m.add(name+"-conns/s", rate)
						m.add(name+"-conns/cpu-s", cpu)
						m.add(name+"-conns/client-cpu-s", own)
					}
					m.compare("conns/s")
					m.compare("conns/cpu-s")
				}
				m.report(b)
			})
		}
	}
}

// BenchmarkPrivateAllocates compares our RPC server with Hadoop's in encrypted calls of an allocate's size: 200 bytes
// there, 3,000 back. The goal is at least Hadoop's calls per CPU second.
func BenchmarkPrivateAllocates(b *testing.B) {
	s := startSecure(b)
	for _, way := range []string{"ticket", "token"} {
		for _, l := range []load{{1, 1, 1_000, allocateSize}, {64, 1, 1_920, allocateSize}} {
			b.Run(fmt.Sprintf("%s/connections=%d", way, l.connections), func(b *testing.B) {
				client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
				defer client.Close()
				peers := map[string][]yarnrpc.ApplicationClientProtocolClient{}
				for name := range s.process {
					for i := range l.connections {
						login := s.login(b, way, i, gssapi.Privacy)
						peers[name] = append(peers[name],
							yarnrpc.NewApplicationClientProtocolClient(client, s.address[name], login))
					}
					for range 2 {
						l.turn(b, s.process[name], peers[name]) // warm: connections, and Java's compiler
					}
				}
				m := metrics{}
				for range b.N {
					for _, name := range secureTurns {
						rate, cpu := l.turn(b, s.process[name], peers[name])
						m.add(name+"-calls/s", rate)
						m.add(name+"-calls/cpu-s", cpu)
					}
					m.compare("calls/s")
					m.compare("calls/cpu-s")
				}
				m.report(b)
			})
		}
	}
}

// metrics are the values of each turn by their unit.
type metrics map[string][]float64

func (m metrics) add(unit string, v float64) { m[unit] = append(m[unit], v) }

// compare adds the ratios of a round.
func (m metrics) compare(unit string) {
	ours, theirs := m["creel-"+unit], m["hadoop-"+unit]
	last := ours[len(ours)-1]
	m.add("x-"+unit, last/theirs[len(theirs)-1])
	m.add("control-"+unit, last/ours[len(ours)-2])
}

// report reports the medians, and the least and the largest ratio.
func (m metrics) report(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	for unit, values := range m {
		b.ReportMetric(median(values), unit)
		if strings.HasPrefix(unit, "x-") || strings.HasPrefix(unit, "control-") {
			b.ReportMetric(slices.Min(values), "least-"+unit)
			b.ReportMetric(slices.Max(values), "most-"+unit)
		}
	}
}
