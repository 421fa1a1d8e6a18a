// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// actions are the actions of one step, in order.
type actions []Action

func (a *actions) do(x Action) { *a = append(*a, x) }

// Action is a request of a session to its driver.
type Action interface{ action() }

// Save makes the record durable before any call that depends on it. A nil Record removes it: the application is over
// and no UAM is left.
type Save struct {
	Number uint64
	Record *Record
}

// Send is one call to one member as this attempt. Exactly one request is set. Token is the UAM's token; nil for home,
// where the AM's token is used.
type Send struct {
	Member   creel.SubclusterID
	Seq      uint64
	Token    *yarnpb.TokenProto
	Register *yarnpb.RegisterApplicationMasterRequestProto
	Allocate *yarnpb.AllocateRequestProto
	Finish   *yarnpb.FinishApplicationMasterRequestProto
	Idle     bool // the finish releases an idle UAM
	// Distributed: the call uses the protocol of distributed scheduling. A member that does not serve it gets the
	// usual call.
	Distributed bool
	Placed      []*yarnpb.ContainerProto // placed by the session since the last call
	Unplaced    int64                    // containers that the session has to place, and has found no node for
}

// Reply answers the AM's call of that number, with one answer or Err.
type Reply struct {
	Call     uint64
	Register *yarnpb.RegisterApplicationMasterResponseProto
	Allocate *yarnpb.AllocateResponseProto
	Finish   *yarnpb.FinishApplicationMasterResponseProto
	Err      error
}

// NewID requests an application id from a member, for a UAM that cannot use its application's id there. An unused id
// costs nothing.
type NewID struct {
	Member creel.SubclusterID
	User   string // the application's owner, "" while unknown
}

// Launch starts the UAM in a member. It has the application's id, queue and a name with its home. It keeps
// containers, so that a later proxy can attach again. User may be "" while unknown: then the launch uses the user in
// home's report.
type Launch struct {
	Member, Home creel.SubclusterID
	Application  creel.ApplicationID
	OwnID        creel.ApplicationID // the UAM's id; zero: the application's id
	Name         string
	Queue        creel.QueuePath
	User         string
	Label        *string // node label of asks that name none, from the application's submission
}

// Drop kills the UAM in a member. It succeeds if the application has ended or does not exist there.
type Drop struct {
	Member, Home creel.SubclusterID
	Application  creel.ApplicationID
	OwnID        creel.ApplicationID // the UAM's id; zero: the application's id
	User         string
}

// Done reports that the session is over.
type Done struct{ Why string }

func (Save) action()   {}
func (Send) action()   {}
func (Reply) action()  {}
func (NewID) action()  {}
func (Launch) action() {}
func (Drop) action()   {}
func (Done) action()   {}
