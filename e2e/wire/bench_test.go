// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// serverEnv turns this test binary into the echo server of the benchmark, so
// that it is a process of its own, as Hadoop's is.
const serverEnv = "CREEL_WIRE_ECHO"

func TestMain(m *testing.M) {
	if mode := os.Getenv(serverEnv); mode != "" {
		if err := echoServer(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type echo struct {
	yarnrpc.UnimplementedApplicationClientProtocol
}

func (echo) GetDelegationToken(
	_ context.Context,
	req *yarnpb.GetDelegationTokenRequestProto,
) (*yarnpb.GetDelegationTokenResponseProto, error) {
	return &yarnpb.GetDelegationTokenResponseProto{Token: &yarnpb.TokenProto{
		Identifier: []byte(req.GetRenewer()), Password: []byte{}, Kind: proto.String(""), Service: proto.String(""),
	}}, nil
}

func echoServer(mode string) error {
	cfg := hrpc.Config{ErrorOf: yarnrpc.ErrorOf}
	if keytab, ok := strings.CutPrefix(mode, secureMode); ok {
		if err := secureEcho(&cfg, keytab); err != nil {
			return err
		}
	} else {
		service := yarnrpc.ApplicationClientProtocolService(echo{})
		if mode == "inline" {
			service = yarnrpc.Inline(service, "getDelegationToken")
		}
		cfg.Services, cfg.Simple = []hrpc.Service{service}, true
	}
	server, err := hrpc.NewServer(cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("serving", listener.Addr().(*net.TCPAddr).Port)
	return server.Run(context.Background(), listener)
}

// load is a shape of load: connections, calls in flight on each, and calls in
// a turn, enough for the CPU clock of 10 ms. answer is the size of an answer,
// if it is no echo.
type load struct{ connections, deep, calls, answer int }

const payload = 200 // bytes echoed by each call

// turn makes the calls of a turn and returns calls a second and calls a second
// of the server's CPU.
func (l load) turn(
	b *testing.B,
	server *process.Process,
	peers []yarnrpc.ApplicationClientProtocolClient,
) (rate, perCPU float64) {
	renewer := strings.Repeat("x", payload)
	workers, size := l.connections*l.deep, cmp.Or(l.answer, payload)
	ctx := context.Background()
	cpu, began := server.CPU(b), time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			peer := peers[w%l.connections]
			for range l.calls / workers {
				r, err := peer.GetDelegationToken(ctx, &yarnpb.GetDelegationTokenRequestProto{Renewer: &renewer})
				if err != nil || len(r.GetToken().GetIdentifier()) != size {
					b.Errorf("answer of %d bytes, %v", len(r.GetToken().GetIdentifier()), err)
					return
				}
			}
		})
	}
	wg.Wait()
	calls := float64(l.calls / workers * workers)
	return calls / time.Since(began).Seconds(), calls / (server.CPU(b) - cpu).Seconds()
}

// startEcho starts this test binary as an echo server.
func startEcho(b *testing.B, name, mode string) *process.Process {
	b.Helper()
	return process.Start(b, process.Command{
		Name: name, Dir: b.TempDir(), Args: []string{os.Args[0]}, Env: []string{serverEnv + "=" + mode},
	})
}

// addressOf waits for the line with a server's port.
func addressOf(b *testing.B, p *process.Process) (address string) {
	b.Helper()
	p.WaitLine(b, "serving ")
	p.Await(b, "its port", func() bool {
		_, after, _ := strings.Cut(p.Output(), "serving ")
		port, _, whole := strings.Cut(after, "\n")
		address = "127.0.0.1:" + port
		return whole
	})
	return address
}

// BenchmarkServerBesideHadoops compares our RPC server with Hadoop's, each a
// process of its own with the same echo of 200 bytes, under the same client.
// Turns alternate; the figures are medians. The goal is three times Hadoop's
// calls per CPU second.
func BenchmarkServerBesideHadoops(b *testing.B) {
	jvm := hadoop.Client{HeapMB: 512, FullJIT: true}.Setup(b)
	theirs := jvm.Start(b, "RpcServer", "0", "10")
	servers := map[string]*process.Process{"hadoop": theirs}
	for _, mode := range []string{"inline", "goroutine"} {
		servers[mode] = startEcho(b, mode, mode)
	}
	address := map[string]string{}
	for name, p := range servers {
		address[name] = addressOf(b, p)
	}
	for _, l := range []load{{1, 1, 5_000, 0}, {64, 1, 20_000, 0}, {16, 32, 60_000, 0}} {
		b.Run(fmt.Sprintf("connections=%d/deep=%d", l.connections, l.deep), func(b *testing.B) {
			client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
			defer client.Close()
			peers := map[string][]yarnrpc.ApplicationClientProtocolClient{}
			for name := range servers {
				for i := range l.connections {
					peers[name] = append(
						peers[name],
						yarnrpc.NewApplicationClientProtocolClient(
							client,
							address[name],
							hrpc.Login{User: fmt.Sprintf("user%d", i)},
						),
					)
				}
				l.turn(b, servers[name], peers[name]) // warm: connections, and Java's compiler
			}
			rates, perCPU := map[string][]float64{}, map[string][]float64{}
			b.ResetTimer()
			for range b.N {
				for _, name := range []string{"hadoop", "inline", "goroutine"} {
					rate, cpu := l.turn(b, servers[name], peers[name])
					rates[name], perCPU[name] = append(rates[name], rate), append(perCPU[name], cpu)
				}
			}
			b.ReportMetric(0, "ns/op")
			for _, name := range []string{"hadoop", "inline", "goroutine"} {
				b.ReportMetric(median(rates[name]), name+"-calls/s")
				b.ReportMetric(median(perCPU[name]), name+"-calls/cpu-s")
			}
			b.ReportMetric(median(perCPU["inline"])/median(perCPU["hadoop"]), "x-per-cpu-s")
		})
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
