// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// UAM is an unmanaged AM of alice's application in a member, like one launched by a proxy.
type UAM struct {
	Member *Member
	Of     creel.ApplicationID
	OwnID  creel.ApplicationID // zero: the application's id
	After  int32               // number of its ended attempt, after which it is started again
}

// Attempt returns the attempt of a UAM.
func (u UAM) Attempt() creel.AttemptID {
	id := u.Of
	if !u.OwnID.IsZero() {
		id = u.OwnID
	}
	return creel.AttemptID{Application: id, Attempt: u.After + 1}
}

// Name returns the name under which proxies register a UAM.
func (u UAM) Name() string { return creel.UAMName("its-home") }

// Launch submits a UAM, which then gets containers there.
func (f *Federation) Launch(u UAM, containers int32) []creel.ContainerID {
	f.t.Helper()
	c := Context(u.Attempt().Application, u.Name())
	keep := true
	c.KeepContainersAcrossApplicationAttempts = &keep
	if !u.OwnID.IsZero() {
		c.ApplicationTags = []string{creel.UAMTag(u.Of)}
	}
	if u.After > 0 {
		yarnpb.BeginAfter(c, u.After)
	}
	alice := yarnrpc.NewApplicationClientProtocolClient(f.RPC, u.Member.Client.Address, hrpc.Login{User: "alice"})
	if _, err := alice.SubmitApplication(f.t.Context(), &yarnpb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: c,
	}); err != nil {
		f.t.Fatal(err)
	}
	return f.Take(u.Member, u.Attempt(), containers)
}

// End finishes the AM of an attempt and waits until its application is over.
func (f *Federation) End(m *Member, attempt creel.AttemptID) {
	f.t.Helper()
	var refused error
	if err := m.D.Turn(f.t.Context(), func(m *rm.Machine, now time.Time) {
		_, refused = m.FinishAM(now, &rm.FinishAM{Attempt: attempt, Status: creel.FinalSucceeded})
	}); err != nil || refused != nil {
		f.t.Fatal(errors.Join(err, refused))
	}
	f.Until("the application of "+attempt.String()+" is over", func() bool {
		v, _ := m.App(f.t.Context(), attempt.Application)
		return v.State.Ended()
	})
}

// Take registers the AM of an attempt in a member and gets containers for it there.
func (f *Federation) Take(m *Member, attempt creel.AttemptID, containers int32) (taken []creel.ContainerID) {
	f.t.Helper()
	var begun, refused error
	if err := m.D.Turn(f.t.Context(), func(m *rm.Machine, now time.Time) {
		_, begun = m.RegisterAM(now, &rm.RegisterAM{Attempt: attempt, Host: "am"})
		got, err := m.Allocate(now, attempt, &rm.AllocateRequest{Asks: []rm.Ask{
			{Priority: 1, ResourceName: "*", Resource: creel.NewResource(128, 1), Count: containers},
		}})
		if refused = err; err != nil {
			return
		}
		for _, g := range got.Granted {
			taken = append(taken, g.ID)
		}
	}); err != nil || begun != nil || refused != nil {
		f.t.Fatal(errors.Join(err, begun, refused))
	}
	if len(taken) != int(containers) {
		f.t.Fatalf("%s has %d containers of %d in %s", attempt, len(taken), containers, m.ID)
	}
	return taken
}
