// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// Member has the calls to one ResourceManager, creel's or Hadoop's.
type Member interface {
	// Has reports whether the member has an application; an error means that it could not be asked.
	Has(ctx context.Context, app creel.ApplicationID) (bool, error)
	// NewID makes the member issue an application id.
	NewID(ctx context.Context) (creel.ApplicationID, error)
	// Fences reports whether the member keeps a promise to reject an application. Hadoop's ResourceManagers do not.
	Fences() bool
	// Disown makes the member reject an application under claims up to a number, unless it has the application. One
	// that does not fence only reports whether it has it.
	Disown(ctx context.Context, app creel.ApplicationID, claim int64) (router.Standing, error)
	// Placed returns the queue in which the member's placement rules would run a submission; "" if it cannot tell.
	Placed(ctx context.Context, sub policies.Submission) (creel.QueuePath, error)

	// CarryOut sends a recorded intent with its user's name, by the protocol that it came by, and reports whether it is
	// done there. A kill is done when the application has ended. The error of a verb that this router does not know is
	// intents.ErrUnknownVerb, without a call.
	CarryOut(ctx context.Context, i intents.Intent) (done bool, err error)
	// End ends an application that has another home, by a kill. If the member holds it for a move, it rejects the kill
	// as busy; End then drops it, by up to two further calls. It reports whether that is done.
	End(ctx context.Context, app creel.ApplicationID, why string) (bool, error)

	// Hold makes the member hold a waiting application, and returns the data for its next home. Hadoop's cannot.
	Hold(ctx context.Context, app creel.ApplicationID, claim int64, why string) (*yarnrpc.MovedApplication, error)
	// Release undoes Hold.
	Release(ctx context.Context, app creel.ApplicationID, claim int64) error
	// Drop makes the member delete an application that it holds.
	Drop(ctx context.Context, app creel.ApplicationID, claim int64) error
	// SubmitCarried submits an application that another member holds, with its user's name.
	SubmitCarried(ctx context.Context, held *yarnrpc.MovedApplication, claim int64) error
	// Waiting lists the applications that wait for their AM's first container.
	Waiting(ctx context.Context) ([]WaitingApplication, error)
	// Applications returns the member's whole list, including ended and unmanaged applications. UAMs with ids of their
	// own are left out: they have no home.
	Applications(ctx context.Context) ([]statestore.ReportedApplication, error)
}

// Of returns the calls to a member.
func Of(m *remote.Member) Member {
	if m.ByAgent() {
		return hadoopMember{member{m}}
	}
	return creelMember{member{m}}
}
