// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// launch starts an AM on its node, trying again while the node does not
// answer, as long as the attempt lives.
func (c *cluster) launch(a rm.LaunchAM, began time.Time, pause time.Duration) {
	w := c.w
	told := func(err error) {
		w.mark("launched", int64(a.Attempt.Application.ID), int64(a.Attempt.Attempt))
		c.turn(func(m *rm.Machine) {
			if err != nil {
				m.AMLaunchFailed(
					w.now,
					a.Attempt,
					"Error launching "+a.Attempt.String()+". Got exception: "+err.Error(),
				)
			} else {
				m.AMLaunched(w.now, a.Attempt)
			}
		})
	}
	if !c.good[a.Attempt] {
		told(errors.New("the attempt is over"))
		return
	}
	n := w.nodes[a.Container.Node]
	t, done := c.mint(a.Attempt.Application)
	request, err := codec.StartAM(&a, t, c.keys.amrm.AMRM(a.Attempt))
	visitor := t.NM(a.Attempt, n.m.ID()).Proto()
	done()
	if err != nil {
		told(err)
		return
	}
	call(
		w,
		c.host,
		n.host,
		10*time.Second,
		func(reply func(*pb.StartContainersResponseProto, error)) { reply(n.startContainers(visitor, request)) },
		func(answer *pb.StartContainersResponseProto, err error) {
			if e := codec.StartRefusal(answer, a.Container.ID); e != nil {
				err = errors.New(e.GetMessage())
			}
			switch {
			case err == nil:
				told(nil)
			case !errors.Is(err, creel.ErrUnavailable) && !errors.Is(err, creel.ErrBusy):
				told(err)
			case w.now.Sub(began) > launchTime:
				told(err)
			default:
				w.on(c.host, pause, func() { c.launch(a, began, min(2*pause, 10*time.Second)) })
			}
		},
	)
}

func (c *cluster) stopAM(a rm.StopAM) {
	n := c.w.nodes[a.Node]
	t, done := c.mint(a.Attempt.Application)
	visitor := t.NM(a.Attempt, a.Node).Proto()
	done()
	request := &pb.StopContainersRequestProto{ContainerId: []*pb.ContainerIdProto{pb.FromContainerID(a.Container)}}
	call(c.w, c.host, n.host, 20*time.Second, func(reply func(*pb.StopContainersResponseProto, error)) {
		reply(n.stopContainers(visitor, request))
	}, func(*pb.StopContainersResponseProto, error) {})
}
