// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// Methods that releases may lack are calls that routers make at members.
func TestReleasesAreOfCallsThatMembersAreAsked(t *testing.T) {
	for _, s := range remote.Releases {
		if !slices.ContainsFunc(router.Documents, func(d router.Document) bool {
			return d.Protocol == s.Protocol && d.Name == s.Name && d.Route != router.ByRouter
		}) {
			t.Errorf("no document of members is %s %s", s.Protocol, s.Name)
		}
	}
}

// attributed is a member that counts the requests for its nodes' attributes.
func attributed(t *testing.T, id creel.SubclusterID, version string, asked *atomic.Int64) subcluster.Status {
	t.Helper()
	member, err := hrpc.NewServer(hrpc.Config{
		Simple: true, ErrorOf: yarnrpc.ErrorOf, DrainTime: 10 * time.Millisecond,
		Impersonate: func(string, string, netip.Addr) error { return nil },
		Services: []hrpc.Service{{
			Protocol: "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB", Version: 1,
			Methods: map[string]hrpc.Method{"getNodesToAttributes": {
				Raw: func(context.Context, []byte) ([]byte, error) { asked.Add(1); return nil, nil },
			}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- member.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return subcluster.Status{State: subcluster.StateActive, Member: subcluster.Member{
		ID: id, Version: version, Addresses: subcluster.Addresses{Client: l.Addr().String()},
	}}
}

// A member whose release lacks a method is not asked. The answer is that of the others; if no member has the method,
// the error says so.
func TestMethodMissingInReleaseIsNotCalled(t *testing.T) {
	var old, recent atomic.Int64
	lacks := attributed(t, "sc-a", "hadoop-3.1.4", &old)
	has := attributed(t, "sc-b", "hadoop-3.3.6", &recent)
	away := has
	away.Addresses.Client = "127.0.0.1:1"
	var log bytes.Buffer
	ask := func(members ...subcluster.Status) error {
		pool := remote.NewPool(remote.Config{User: "creel", KindOf: yarnrpc.KindOf})
		defer pool.Close()
		view := subcluster.NewView(time.Now(), members, nil)
		h := &Handler{server: server.New(server.Config{
			View: func() *subcluster.View { return view }, Pool: pool, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})}
		_, err := h.GetNodesToAttributes(t.Context(), &yarnpb.GetNodesToAttributesRequestProto{})
		if err == nil {
			_, err = h.GetNodesToAttributes(t.Context(), &yarnpb.GetNodesToAttributesRequestProto{})
		}
		return err
	}
	if err := ask(lacks, has); err != nil || recent.Load() != 2 {
		t.Errorf("beside one that has it: %v", err)
	}
	// A message cannot name members left out: the log does, once.
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "subcluster=sc-a") ||
		!strings.Contains(text, "call=getNodesToAttributes") || !strings.Contains(text, "not in Hadoop 3.1.4") {
		t.Errorf("the log after two answers without sc-a: %q", text)
	}
	err := ask(lacks)
	if !errors.Is(err, remote.ErrNotInRelease) || !strings.Contains(err.Error(), "getNodesToAttributes is not in Hadoop 3.1.4") ||
		yarnrpc.ErrorOf(err).Class != yarnrpc.ClassFeatureNotEnabled {
		t.Errorf("alone: %v", err)
	}
	err = ask(lacks, away)
	if !errors.Is(err, creel.ErrUnavailable) || !strings.Contains(err.Error(), "sc-a (") ||
		!strings.Contains(err.Error(), "sc-b (") {
		t.Errorf("while the one that has it is away: %v", err)
	}
	if old.Load() != 0 {
		t.Errorf("it was asked %d times", old.Load())
	}
}
