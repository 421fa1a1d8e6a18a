// SPDX-License-Identifier: Apache-2.0

package servlets_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/servlets"
)

func TestRPCPortsHaveBeans(t *testing.T) {
	const protocol = "creel.test.Echo"
	echo := func(_ context.Context, m proto.Message) (proto.Message, error) { return m, nil }
	server, err := hrpc.NewServer(hrpc.Config{
		Simple: true,
		Services: []hrpc.Service{{Protocol: protocol, Version: 1, Methods: map[string]hrpc.Method{
			"getEcho": {NewRequest: func() proto.Message { return new(wrapperspb.StringValue) }, Serve: echo},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, l) }()
	client := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { client.Close(); cancel(); <-done })
	var ports servlets.Ports
	ports.Add(l.Addr().String(), server)
	_, number, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, servlets.Config{Ports: &ports})
	bean := func(name string) map[string]any {
		var doc struct{ Beans []map[string]any }
		_, body := s.call("GET", "/jmx?qry=Hadoop:service=Router,name="+name+number)
		if err := json.Unmarshal([]byte(body), &doc); err != nil || len(doc.Beans) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		return doc.Beans[0]
	}
	if b := bean("RpcActivityForPort"); b["RpcProcessingTimeNumOps"] != 0.0 || b["tag.port"] != number {
		t.Errorf("before the first call: %v", b)
	}
	peer := client.Peer(hrpc.Target{
		Address: l.Addr().String(), Protocol: protocol, Version: 1, Login: hrpc.Login{User: "ann"},
	})
	for range 3 {
		var out wrapperspb.StringValue
		if err := peer.Call(t.Context(), "getEcho", wrapperspb.String(strings.Repeat("x", 1000)), &out); err != nil {
			t.Fatal(err)
		}
	}
	b := bean("RpcActivityForPort")
	if b["RpcProcessingTimeNumOps"] != 3.0 || b["RpcQueueTimeNumOps"] != 3.0 || b["RpcCallSuccesses"] != 3.0 ||
		b["RpcProcessingTimeAvgTime"].(float64) <= 0 || b["NumOpenConnections"] != 1.0 ||
		b["ReceivedBytes"].(float64) < 2000 || b["SentBytes"].(float64) < 2000 {
		t.Errorf("after three calls: %v", b)
	}
	if d := bean("RpcDetailedActivityForPort"); d["GetEchoNumOps"] != 3.0 || d["GetEchoAvgTime"].(float64) <= 0 {
		t.Errorf("by method: %v", d)
	}
}

func TestMeanIsOfItsLatestPeriod(t *testing.T) {
	var m servlets.Mean
	start := time.Unix(1000, 0)
	for _, c := range []struct {
		after, sum time.Duration
		count      uint64
		want       time.Duration
	}{
		{0, 100, 10, 10},
		{20 * time.Second, 300, 20, 20},
		{25 * time.Second, 330, 21, 30},
		{26 * time.Second, 380, 22, 40}, // the mean of two: the period began at 20 s
		{50 * time.Second, 380, 22, 40},
		{70 * time.Second, 380, 22, 40}, // nothing new
		{71 * time.Second, 385, 23, 5},
	} {
		if got := m.At(start.Add(c.after), c.count, c.sum); got != c.want {
			t.Errorf("after %v: %v, want %v", c.after, got, c.want)
		}
	}
}
