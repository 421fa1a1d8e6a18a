// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"time"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// launch starts an AM on its node, with the retries of turn.Launch, while the attempt is alive.
func (c *cluster) launch(a rm.LaunchAM, tries *turn.Launch) {
	w := c.w
	told := func(err error) {
		w.mark("launched", int64(a.Attempt.Application.ID), int64(a.Attempt.Attempt))
		c.post(func(m *rm.Machine, now time.Time) func() {
			if err != nil {
				text := "Error launching " + a.Attempt.String() + ". Got exception: " + err.Error()
				m.AMLaunchFailed(now, a.Attempt, text)
			} else {
				m.AMLaunched(now, a.Attempt)
			}
			return nil
		})
	}
	if !c.live.Has(a.Attempt) {
		told(turn.ErrAttemptOver)
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
				told(errors.New(e.GetMessage()))
				return
			}
			if pause, again := tries.Again(c.now(), err); again {
				w.on(c.host, pause, func() { c.launch(a, tries) })
				return
			}
			told(err)
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
