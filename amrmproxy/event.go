// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// Event is an input of a session.
type Event interface{ event() }

// FromAM is a call of the AM. Exactly one of the requests is set. The Reply to it has the same number Call. The
// caller of the driver assigns numbers, and uses each once.
type FromAM struct {
	Call     uint64
	Register *yarnpb.RegisterApplicationMasterRequestProto
	Allocate *yarnpb.AllocateRequestProto
	Finish   *yarnpb.FinishApplicationMasterRequestProto
}

// Answered ends the Send of that sequence number, with one of the answers or Err. If Err is of kind
// creel.ErrUnavailable, ErrBusy or ErrStandby, the member may or may not have processed the call. Other kinds, such
// as ErrNotRegistered, ErrAttemptNotFound and ErrApplicationNotFound, are the member's answer.
type Answered struct {
	Member   creel.SubclusterID
	Seq      uint64
	Register *yarnpb.RegisterApplicationMasterResponseProto
	Allocate *yarnpb.AllocateResponseProto
	Finish   *yarnpb.FinishApplicationMasterResponseProto
	Err      error

	// Terms, without the answer to the registration, are set if the member serves distributed scheduling. Loaded are
	// the least loaded nodes in its answer to an allocate.
	Terms  *yarnpb.RegisterDistributedSchedulingAMResponseProto
	Loaded []*yarnpb.RemoteNodeProto
}

// TakeTerms takes the answer to a registration for distributed scheduling. Without an id it is of a member that does
// not serve it.
func (e *Answered) TakeTerms(r *yarnpb.RegisterDistributedSchedulingAMResponseProto) {
	e.Register = r.GetRegisterResponse()
	if r.GetContainerIdStart() != 0 {
		e.Terms = r
		r.RegisterResponse = nil
	}
}

// TakeLoaded takes the answer to an allocate for distributed scheduling.
func (e *Answered) TakeLoaded(r *yarnpb.DistributedSchedulingAllocateResponseProto) {
	e.Allocate, e.Loaded = r.GetAllocateResponse(), r.GetNodesForScheduling()
}

// Report returns the request of an allocate for distributed scheduling.
func (s *Send) Report() *yarnpb.DistributedSchedulingAllocateRequestProto {
	r := &yarnpb.DistributedSchedulingAllocateRequestProto{AllocateRequest: s.Allocate, AllocatedContainers: s.Placed}
	yarnpb.SetUnplaced(r, s.Unplaced)
	return r
}

// Numbered ends a NewID, with an id that the member issued only once, or Err.
type Numbered struct {
	Member creel.SubclusterID
	ID     creel.ApplicationID
	Err    error
}

// Launched ends a Launch: the UAM waits for its registration. Token is its AMRM token from the member's report. User
// is the application's owner if the launch had to look it up; "" leaves the known owner.
type Launched struct {
	Member  creel.SubclusterID
	Attempt creel.AttemptID
	Token   *yarnpb.TokenProto
	User    string
	Type    string // of the application, by home's report; "" if home does not answer
}

// LaunchFailed ends a Launch without a UAM. If Err is of kind ErrSpent, the member no longer accepts a UAM with this
// id.
type LaunchFailed struct {
	Member creel.SubclusterID
	Err    error
}

// Dropped ends a Drop; with a nil Err the member has no live UAM.
type Dropped struct {
	Member creel.SubclusterID
	Err    error
}

// Saved ends the Save of that number: the record is durable.
type Saved struct{ Number uint64 }

// SaveFailed ends the Save of that number. If Err is of kind creel.ErrStale, a later attempt or another proxy owns
// the record, and this session must end without changing its UAMs. Saves with other errors are retried.
type SaveFailed struct {
	Number uint64
	Err    error
}

// Saw has the view of the federation, the policy of the queue, and the members' hosts. They are shared and never
// written.
type Saw struct {
	View   *subcluster.View
	Policy policies.Policy
	Places Places
}

// Places maps the name of a host or rack to the members that have it, none if it is unknown. A value is immutable: a
// new report of a member makes a new value (resolver.Table). A nil Places has no entries.
type Places interface {
	Where(name string) []creel.SubclusterID
}

// Ended reports that the application is over at its home (killed by a client, or finished without this proxy). Every
// UAM must end.
type Ended struct{ Why string }

// Tick reports only that time has passed.
type Tick struct{}

func (FromAM) event()       {}
func (Answered) event()     {}
func (Numbered) event()     {}
func (Launched) event()     {}
func (LaunchFailed) event() {}
func (Dropped) event()      {}
func (Saved) event()        {}
func (SaveFailed) event()   {}
func (Saw) event()          {}
func (Ended) event()        {}
func (Tick) event()         {}
