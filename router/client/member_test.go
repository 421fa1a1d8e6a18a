// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// manager is a ResourceManager that has one application and reads further fields of creel's if it understands them.
type manager struct {
	yarnrpc.UnimplementedApplicationClientProtocol
	has         creel.ApplicationID
	understands bool
	extended    atomic.Int64 // calls with fields of creel's
}

func (s *manager) GetApplicationReport(
	_ context.Context, req *yarnpb.GetApplicationReportRequestProto,
) (*yarnpb.GetApplicationReportResponseProto, error) {
	if len(req.ProtoReflect().GetUnknown()) > 0 {
		s.extended.Add(1)
	}
	id := yarnpb.ToApplicationID(req.GetApplicationId())
	if wanted := yarnrpc.DisownWanted(req); id != s.has && wanted > 0 && s.understands {
		return yarnrpc.DisownedAnswer(wanted), nil
	}
	if id != s.has {
		return nil, &creel.Error{Kind: creel.ErrApplicationNotFound, What: "unknown"}
	}
	return &yarnpb.GetApplicationReportResponseProto{
		ApplicationReport: &yarnpb.ApplicationReportProto{ApplicationId: req.GetApplicationId(), User: proto.String("ann")},
	}, nil
}

func (s *manager) GetQueueInfo(
	context.Context, *yarnpb.GetQueueInfoRequestProto,
) (*yarnpb.GetQueueInfoResponseProto, error) {
	s.extended.Add(1)
	return nil, &creel.Error{Kind: creel.ErrQueueNotFound, What: "unknown"}
}

// serve starts a ResourceManager, and returns the calls to it by the version of its member's record.
func serve(t *testing.T, s *manager, version string) Member {
	t.Helper()
	rpc, err := hrpc.NewServer(hrpc.Config{
		Simple: true, ErrorOf: yarnrpc.ErrorOf, Impersonate: func(string, string, netip.Addr) error { return nil },
		Services: []hrpc.Service{yarnrpc.ApplicationClientProtocolService(s)},
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
	go func() { done <- rpc.Run(ctx, l) }()
	pool := remote.NewPool(remote.Config{User: "creel", KindOf: yarnrpc.KindOf})
	t.Cleanup(func() {
		pool.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	m := subcluster.Status{Member: subcluster.Member{ID: "sc-1", Version: version}, State: subcluster.StateActive}
	m.Addresses.Client = l.Addr().String()
	return Of(pool.Member(&m))
}

// A ResourceManager of Hadoop's gets Hadoop's fields only, and its answers promise nothing. One of creel's rejects an
// application that it does not have.
func TestMembersDifferInFences(t *testing.T) {
	here, absent := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, creel.ApplicationID{ClusterTimestamp: 1, ID: 2}
	for _, c := range []struct {
		version  string
		fences   bool
		standing router.Standing // of an absent application
	}{
		{"hadoop-3.4.2", false, router.Absent},
		{"creel 0.1", true, router.Disowned},
	} {
		t.Run(c.version, func(t *testing.T) {
			s := &manager{has: here, understands: c.fences}
			m, ctx := serve(t, s, c.version), t.Context()
			if m.Fences() != c.fences {
				t.Errorf("it fences: %t", m.Fences())
			}
			for app, want := range map[creel.ApplicationID]router.Standing{here: router.Running, absent: c.standing} {
				if got, err := m.Disown(ctx, app, 3); err != nil || got != want {
					t.Errorf("standing of %s: %v, %v, want %v", app, got, err, want)
				}
				if has, err := m.Has(ctx, app); err != nil || has != (app == here) {
					t.Errorf("it has %s: %t, %v", app, has, err)
				}
			}
			_, err := m.Hold(ctx, here, 3, "a test")
			if want := "holds no applications: it is not creel's"; !errors.Is(err, creel.ErrInvalidRequest) {
				t.Errorf("a hold is answered %v, want %q", err, want)
			}
			if err := m.Drop(ctx, absent, 3); !errors.Is(err, creel.ErrApplicationNotFound) {
				t.Errorf("a drop of an absent application is answered %v", err)
			}
			queue, err := m.Placed(ctx, policies.Submission{Application: here, Queue: "default"})
			if asked := err != nil; queue != "" || asked != c.fences {
				t.Errorf("its rules answer %q, %v", queue, err)
			}
			if extended := s.extended.Load() > 0; extended != c.fences {
				t.Errorf("%d calls had fields of creel's", s.extended.Load())
			}
		})
	}
}
