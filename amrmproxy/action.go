// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Action is something a session wants done.
type Action interface{ action() }

// Save makes the record durable before any call that depends on it. A nil record removes it: the application is over
// and no UAM is left.
type Save struct {
	Number uint64
	Record *Record
}

// Send is one call to one member as this attempt. Exactly one request is set.
// Token is the UAM's; nil to the home, where the AM's own serves.
type Send struct {
	Member   creel.SubclusterID
	Seq      uint64
	Token    *yarnpb.TokenProto
	Register *yarnpb.RegisterApplicationMasterRequestProto
	Allocate *yarnpb.AllocateRequestProto
	Finish   *yarnpb.FinishApplicationMasterRequestProto
	Idle     bool // the finish is of a UAM that is given back
}

// Reply answers the AM's call of that number: one answer, or Err.
type Reply struct {
	Call     uint64
	Register *yarnpb.RegisterApplicationMasterResponseProto
	Allocate *yarnpb.AllocateResponseProto
	Finish   *yarnpb.FinishApplicationMasterResponseProto
	Err      error
}

// NewID asks a member for an application id, for a UAM that cannot have its application's id there. An unused id
// costs nothing.
type NewID struct {
	Member creel.SubclusterID
	User   string // the application's owner, "" while unknown
}

// Launch starts the UAM in a member: the same application id and queue, named by its home, keeping containers so that
// a later proxy can attach again. User may be "" while unknown: the launch then uses the one in home's report.
type Launch struct {
	Member, Home creel.SubclusterID
	Application  creel.ApplicationID
	OwnID        creel.ApplicationID // of the UAM; zero: the application's
	Name         string
	Queue        creel.QueuePath
	User         string
	Label        *string // node label of asks that name none, as the application's submission has it
}

// Drop kills the UAM in a member; an application that is not there, or has
// ended, is success.
type Drop struct {
	Member, Home creel.SubclusterID
	Application  creel.ApplicationID
	OwnID        creel.ApplicationID // of the UAM; zero: the application's
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
