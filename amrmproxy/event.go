// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// Event is something that happened to a session.
type Event interface{ event() }

// FromAM is a call of the AM. Exactly one of the requests is set. Call
// names the call in the Reply that answers it; numbers are the driver's and
// never used twice.
type FromAM struct {
	Call     uint64
	Register *yarnpb.RegisterApplicationMasterRequestProto
	Allocate *yarnpb.AllocateRequestProto
	Finish   *yarnpb.FinishApplicationMasterRequestProto
}

// Answered ends the Send of that sequence number: one of the answers, or Err.
// Err of kind creel.ErrUnavailable, ErrBusy or ErrStandby says that the member
// may or may not have acted; ErrNotRegistered, ErrAttemptNotFound,
// ErrApplicationNotFound and the others are the member's word.
type Answered struct {
	Member   creel.SubclusterID
	Seq      uint64
	Register *yarnpb.RegisterApplicationMasterResponseProto
	Allocate *yarnpb.AllocateResponseProto
	Finish   *yarnpb.FinishApplicationMasterResponseProto
	Err      error
}

// Numbered ends a NewID, with an id that the member gave to nobody else, or Err.
type Numbered struct {
	Member creel.SubclusterID
	ID     creel.ApplicationID
	Err    error
}

// Launched ends a Launch: the UAM waits for its registration. Token is its
// AMRM token as the report of that member gave it. User is who owns the
// application, where the driver had to find out; "" leaves what is known.
type Launched struct {
	Member  creel.SubclusterID
	Attempt creel.AttemptID
	Token   *yarnpb.TokenProto
	User    string
	Type    string // of the application as its home reports it; "" where home does not answer
}

// LaunchFailed ends a Launch without a UAM. Err of kind ErrSpent says that the member
// takes no UAM of this id any more.
type LaunchFailed struct {
	Member creel.SubclusterID
	Err    error
}

// Dropped ends a Drop; Err nil says that the member has no live UAM.
type Dropped struct {
	Member creel.SubclusterID
	Err    error
}

// Saved ends the Save of that number: the record is durable.
type Saved struct{ Number uint64 }

// SaveFailed ends the Save of that number. Err of kind creel.ErrStale says
// that a later attempt owns the record: this session must end without touching
// its UAMs. Others are tried again.
type SaveFailed struct {
	Number uint64
	Err    error
}

// Saw brings the view of the federation, the policy that holds for the queue, and
// which member has which host. All are shared and never written.
type Saw struct {
	View   *subcluster.View
	Policy policies.Policy
	Places Places
}

// Places tells which members have the host or rack of a name; none when nobody knows
// it. A value never changes: what members publish anew makes another (resolver.Table).
// nil knows nothing.
type Places interface {
	Where(name string) []creel.SubclusterID
}

// Ended says that the application is over at its home (killed by a client,
// finished behind the proxy's back): every UAM has to go.
type Ended struct{ Why string }

// Tick says only that time has passed.
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
