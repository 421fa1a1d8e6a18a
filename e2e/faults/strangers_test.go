// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// A stranger is a hostile connection, described by the bytes it sends before it falls silent.
type stranger struct {
	name   string
	sends  []byte
	served bool // it sends a whole request: its connection waits for the next one, longer than for a header
}

// greeting returns the bytes that a client without tokens sends until its first call. They are recorded, so that
// strangers can send them too.
func greeting(t *testing.T, dial func(c *hrpc.Client, address string)) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	go dial(client, l.Addr().String())
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	head := make([]byte, 7+4)
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, binary.BigEndian.Uint32(head[7:])) // the connection context
	if _, err := io.ReadFull(c, rest); err != nil {
		t.Fatal(err)
	}
	return append(head, rest...)
}

// strangersOf returns the strangers of an RPC port, and those of a web port. Half of each are idle from the start.
func strangersOf(t *testing.T) (rpc, web []stranger) {
	t.Helper()
	simple := greeting(t, func(c *hrpc.Client, address string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p := yarnrpc.NewApplicationClientProtocolClient(c, address, hrpc.Login{User: "stranger"})
		_, _ = p.GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{}) // the call gets no answer
	})
	large := binary.BigEndian.AppendUint32(nil, 120<<20)
	sasl := []byte("hrpc\x09\x00\xdf")
	idle := stranger{name: "idle"}
	rpc = []stranger{
		idle, {name: "a large frame", sends: slices.Concat(simple, large, []byte("begun"))},
		idle, {name: "half a SASL header", sends: slices.Concat(sasl, binary.BigEndian.AppendUint32(nil, 60_000), make([]byte, 100))},
		idle, {name: "half a greeting", sends: simple[:len(simple)/2]},
		idle, {name: "greeted and silent", sends: simple},
		idle, {name: "three bytes", sends: []byte("hrp")},
		idle, {name: "half a small frame", sends: slices.Concat(simple, binary.BigEndian.AppendUint32(nil, 9_000), make([]byte, 900))},
	}
	web = []stranger{
		idle, {name: "slow headers", sends: []byte("GET /ws/v1/cluster/apps HTTP/1.1\r\nHost: localhost\r\nX-")},
		idle, {name: "a slow body", sends: []byte("POST /ws/v1/cluster/apps?user.name=stranger HTTP/1.1\r\nHost: localhost\r\n" +
			"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"application-id\":")},
		idle, {name: "one byte", sends: []byte("G")},
		idle, {name: "a request, and nothing more", served: true,
			sends: []byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")},
	}
	return rpc, web
}

// crowd opens n connections, spread evenly over the addresses, until the test ends.
func crowd(t *testing.T, n int, d *daemon, rpc, web []stranger) {
	t.Helper()
	var at []string
	for name, address := range d.at {
		if name != "debug" {
			at = append(at, address)
		}
	}
	slices.Sort(at)
	for i := range n {
		address := at[i%len(at)]
		kinds := rpc
		if address == d.at["web"] {
			kinds = web
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write(kinds[i/len(at)%len(kinds)].sends); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
}

// honest makes a call of 1 MB through the router to a ResourceManager, and an AM's call through the proxy.
func (f *federation) honest(client *hrpc.Client, m *am) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	id, err := creel.ParseApplicationID(f.newID())
	if err != nil {
		f.t.Fatal(err)
	}
	router := yarnrpc.NewApplicationClientProtocolClient(
		client, f.router.at["client"], hrpc.Login{User: hadoop.OSUser(f.t)})
	_, err = router.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId:   pb.FromApplicationID(id),
			ApplicationName: proto.String("story"),
			Queue:           proto.String("default"),
			UnmanagedAm:     proto.Bool(true),
			Resource:        pb.FromResource(creel.NewResource(256, 1)),
			AmContainerSpec: &pb.ContainerLaunchContextProto{Environment: []*pb.StringStringMapProto{
				{Key: proto.String("X"), Value: proto.String(strings.Repeat("x", 1<<20))},
			}},
		},
	})
	if err != nil {
		f.t.Fatalf("an honest submission of 1 MB: %v", err)
	}
	if a := f.kill(f.router, id.String()); a.code != http.StatusOK && a.code != http.StatusAccepted {
		f.t.Fatalf("its end: %+v", a)
	}
	m.more(f, 0)
}

// resident returns the highest resident memory over some time, after short-lived memory was released.
func resident(t *testing.T, d *daemon) int64 {
	t.Helper()
	var most int64
	for range 20 {
		most = max(most, d.RSS(t))
		time.Sleep(50 * time.Millisecond)
	}
	return most
}

// Ten thousand strangers connect to all ports of one process. Half of them are idle, half are hostile. Honest calls of
// 1 MB succeed meanwhile. The strangers cost at most 64 MB, and 4 MB of garbage. Resident memory includes the garbage
// since the last collection, which grows with the rate of connections.
func TestTenThousandStrangersCostLittleMemory(t *testing.T) {
	operatorsSee(t)
	const crowdSize, most = 10_000, (64 + 4) << 20
	server := redistest.Start(t)
	f := foundAs(t, server.URL(), layout{
		ofRM: func(string) []string {
			return []string{"yarn.router.asc-interceptor-max-size=8MB", "creel.debug.address=127.0.0.1:0"}
		},
		ofProxy: []string{"creel.debug.address=127.0.0.1:0"},
	})
	f.router.Stop()
	f.router = f.start("router-2", "router", append(f.router.settings,
		"yarn.router.asc-interceptor-max-size=8MB", "creel.debug.address=127.0.0.1:0")...)
	f.await("the router sees its members", func() bool { return len(f.active()) == 2 })
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	id := f.newID()
	f.submitSoon(id)
	m := f.am(client, id)
	if err := m.register(); err != nil {
		t.Fatal(err)
	}
	m.more(f, 1)
	for range 4 { // the memory of honest calls is not the strangers'
		f.honest(client, m)
	}
	rpc, web := strangersOf(t)
	for _, victim := range []*daemon{f.members[0].rm, f.router, f.proxy} {
		t.Run(victim.Name, func(t *testing.T) {
			f := *f
			f.t = t
			before := resident(t, victim)
			collect(t, victim) // memory left by honest calls does not count
			crowd(t, crowdSize, victim, rpc, web)
			with := resident(t, victim)
			f.honest(client, m)
			with = max(with, resident(t, victim))
			t.Logf("%d strangers: %d MB resident before, %d MB with them", crowdSize, before>>20, with>>20)
			if with-before > most {
				t.Errorf("they cost %d MB, want at most %d", (with-before)>>20, most>>20)
			}
		})
	}
}

// collect makes a daemon with a debug port run its collector.
func collect(t *testing.T, d *daemon) {
	t.Helper()
	resp, err := http.Get("http://" + d.at["debug"] + "/debug/pprof/heap?gc=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the collector of %s: %s, %v", d.Name, resp.Status, err)
	}
}

// A connection that sends half of its headers, or half of a body, is closed after creel.http.read-header-timeout.
func TestSlowHeadersAndBodiesTimeOut(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	f := found(t, server.URL(), "", "creel.http.read-header-timeout=1s")
	_, slow := strangersOf(t)
	counted := 0.0
	for _, s := range slow {
		if s.served {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			// Two of each: connections that send nothing are closed as the others are, and not logged.
			var c net.Conn
			var began time.Time // before the server can have begun to count
			for range 2 {
				var err error
				began = time.Now()
				if c, err = net.Dial("tcp", f.members[0].rm.at["web"]); err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Write(bytes.Replace(s.sends, []byte("1000000"), []byte("100"), 1)); err != nil {
					t.Fatal(err)
				}
			}
			c.SetReadDeadline(began.Add(9 * time.Second)) // the default is 10 s
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("it was not ended")
			}
			if took := time.Since(began); took < 500*time.Millisecond {
				t.Errorf("it was ended after %v", took)
			}
			if s.sends != nil {
				counted += 2
			}
		})
	}
	awaitScraped(t, f.members[0].rm.Name, counted)
}
