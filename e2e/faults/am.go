// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// am plays an application's AM behind the proxy.
type am struct {
	t      testing.TB
	am     yarnrpc.ApplicationMasterProtocolClient
	app    string
	lastID int32
	has    map[string]bool // granted containers
	began  time.Time
}

// am reads the token of a submitted application at its home, and connects to the proxy with it.
func (f *federation) am(client *hrpc.Client, id string) *am {
	f.t.Helper()
	homes := f.homes(id)
	if len(homes) != 1 {
		f.t.Fatalf("%s has the homes %v", id, homes)
	}
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		f.t.Fatal(err)
	}
	home := yarnrpc.NewApplicationClientProtocolClient(
		client,
		f.member(homes[0]).rm.at["client"],
		hrpc.Login{User: hadoop.OSUser(f.t)},
	)
	m := &am{t: f.t, app: id, has: map[string]bool{}, began: time.Now()}
	f.await("the AM of "+id+" has its token", func() bool {
		r, err := home.GetApplicationReport(
			context.Background(),
			&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(app)},
		)
		if err != nil {
			f.t.Fatal(err)
		}
		t := r.GetApplicationReport().GetAmRmToken()
		if t == nil {
			return false
		}
		m.am = yarnrpc.NewApplicationMasterProtocolClient(
			client,
			f.proxy.at["proxy"],
			hrpc.Login{
				Credential: &hrpc.Credential{
					Identifier: t.GetIdentifier(),
					Password:   t.GetPassword(),
					Kind:       t.GetKind(),
				},
			},
		)
		return true
	})
	return m
}

// register returns the registration's error; the proxy may require a repeat.
func (m *am) register() error {
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	_, err := m.am.RegisterApplicationMaster(
		ctx,
		&pb.RegisterApplicationMasterRequestProto{
			Host:        proto.String("am"),
			RpcPort:     proto.Int32(-1),
			TrackingUrl: proto.String(""),
		},
	)
	return err
}

// more requests n further containers and sends heartbeats until it has them. The first heartbeats of an AM may be
// answered with "try again".
func (m *am) more(f *federation, n int) {
	m.t.Helper()
	want := len(m.has) + n
	asked := false
	f.await("the AM of "+m.app+" gets its containers", func() bool {
		req := &pb.AllocateRequestProto{ResponseId: proto.Int32(m.lastID), Progress: proto.Float32(0.5)}
		if !asked {
			req.Ask = []*pb.ResourceRequestProto{
				{
					Priority:      pb.FromPriority(1),
					ResourceName:  proto.String("*"),
					NumContainers: proto.Int32(int32(n)),
					Capability:    pb.FromResource(creel.NewResource(256, 1)),
				},
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r, err := m.am.Allocate(ctx, req)
		switch {
		case errors.Is(err, creel.ErrBusy), errors.Is(err, creel.ErrUnavailable), errors.Is(err, creel.ErrStandby):
			return false
		case err != nil:
			m.t.Errorf("allocate of %s: %v", m.app, err)
			return true
		}
		asked = true
		m.lastID = r.GetResponseId()
		for _, c := range r.GetAllocatedContainers() {
			id := pb.ToContainerID(c.GetId()).String()
			if m.has[id] {
				m.t.Fatalf("%s was granted twice", id)
			}
			m.has[id] = true
		}
		return len(m.has) >= want
	})
}

// keepCalling sends heartbeats until stop is called, as an AM does during faults elsewhere. Until then the test must
// not use the AM otherwise.
func (m *am) keepCalling(f *federation) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			m.more(f, 0)
			select {
			case <-end:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() { close(end); <-done }
}

// finish ends the application as its AM does.
func (m *am) finish(f *federation) {
	m.t.Helper()
	f.await("the AM of "+m.app+" finishes", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		r, err := m.am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
			FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
		})
		return err == nil && r.GetIsUnregistered()
	})
}

// since returns the AM's age.
func (m *am) since() time.Duration { return time.Since(m.began) }
