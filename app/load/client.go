// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

type clientStub = yarnrpc.ApplicationClientProtocolClient

// stubs returns a stub of the client protocol on each connection.
func (o *Options) stubs(clients []*hrpc.Client, address string) []clientStub {
	list := make([]clientStub, len(clients))
	for i, c := range clients {
		list[i] = yarnrpc.NewApplicationClientProtocolClient(c, address, hrpc.Login{User: o.User})
	}
	return list
}

// peers is stubs without the encoding of messages.
func (o *Options) peers(clients []*hrpc.Client, address string) []*hrpc.Peer {
	list := make([]*hrpc.Peer, len(clients))
	for i, c := range clients {
		list[i] = c.Peer(o.client(address))
	}
	return list
}

// client returns the client protocol at an address.
func (o *Options) client(address string) hrpc.Target {
	return hrpc.Target{
		Address:  address,
		Protocol: yarnrpc.ApplicationClientProtocolName,
		Login:    hrpc.Login{User: o.User},
	}
}

// job is an application that a load submits: unmanaged, or with an AM that is not started if there are no nodes.
type job struct {
	queue     string
	unmanaged bool
}

// submit submits one application and returns its id.
func (j job) submit(ctx context.Context, rm clientStub) (creel.ApplicationID, error) {
	made, err := rm.GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})
	if err != nil {
		return creel.ApplicationID{}, err
	}
	_, err = rm.SubmitApplication(
		ctx,
		&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: j.context(made.GetApplicationId())},
	)
	return pb.ToApplicationID(made.GetApplicationId()), err
}

// context returns the submission with this id.
func (j job) context(id *pb.ApplicationIdProto) *pb.ApplicationSubmissionContextProto {
	return &pb.ApplicationSubmissionContextProto{
		ApplicationId:   id,
		ApplicationName: new("load"),
		Queue:           &j.queue,
		ApplicationType: new("LOAD"),
		Priority:        pb.FromPriority(0),
		AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{"sleep 60"}},
		MaxAppAttempts:  new(int32(1)),
		Resource:        pb.FromResource(creel.NewResource(128, 1)),
		UnmanagedAm:     &j.unmanaged,
	}
}

// kill ends an application; it is success if the application has ended already.
func kill(ctx context.Context, rm clientStub, id creel.ApplicationID) error {
	_, err := rm.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)})
	return err
}

// MaxApplications limits the applications that a load prepares before it starts.
const MaxApplications = 1_000_000

// prepare submits n applications.
func (j job) prepare(ctx context.Context, stubs []clientStub, n int) ([]creel.ApplicationID, error) {
	if n < 0 || n > MaxApplications {
		return nil, badOption("%d applications: give 0 to %d", n, MaxApplications)
	}
	ids := make([]creel.ApplicationID, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for i := range ids {
		g.Go(func() (err error) {
			if ids[i], err = j.submit(ctx, stubs[i%len(stubs)]); err != nil {
				err = fmt.Errorf("submit application %d of %d: %w", i+1, n, err)
			}
			return err
		})
	}
	return ids, g.Wait()
}

// killAll kills all applications, after success or failure of the load.
func killAll(ctx context.Context, stubs []clientStub, ids []creel.ApplicationID) {
	var g errgroup.Group
	g.SetLimit(64)
	for i, id := range ids {
		if !id.IsZero() {
			g.Go(func() error { return kill(ctx, stubs[i%len(stubs)], id) })
		}
	}
	_ = g.Wait()
}
