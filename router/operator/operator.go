// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/subcluster"
)

// Store is the part of the state store that an Operator needs.
type Store interface {
	Drain(ctx context.Context, id creel.SubclusterID, reason string) error
	Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error
	RemoveMember(ctx context.Context, id creel.SubclusterID) error
	Records(ctx context.Context) (subcluster.Records, error)
	Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
	HomesAt(
		ctx context.Context, member creel.SubclusterID, cursor string, limit int,
	) (page []statestore.ApplicationHome, next string, err error)
	Forget(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, ttl time.Duration) error
	statestore.Policies
	statestore.Documents
}

// Config configures an Operator. View and Store are required.
type Config struct {
	View  func() *subcluster.View
	Store Store
	// Admin reports whether a user may change the federation; nil: every user may.
	Admin func(user string) bool
	// Reload reads the list of administrators again; nil: the list does not change.
	Reload func() (admin func(user string) bool, err error)
	// Known asks a member whether it has an application; an error means that it could not be asked. If Known is nil,
	// no application's record is deleted.
	Known func(ctx context.Context, member creel.SubclusterID, app creel.ApplicationID) (bool, error)
	// Preview returns the waiting applications that would move now, and notes about the reasons why the others stay.
	// If as is a member, it assumes that this member is drained with Mode Move.
	Preview func(ctx context.Context, as creel.SubclusterID) ([]rebalancer.ChosenMove, []string, error)
	// Members changes the queues of members; nil: they cannot be changed.
	Members Members
	// Events records the changes; nil: they are not recorded.
	Events *events.Recorder
}

// Operator is safe for concurrent use.
type Operator struct {
	conf  Config
	admin atomic.Pointer[func(user string) bool]
}

// New makes an operator.
func New(conf Config) *Operator {
	conf.Store = newRecall(conf.Store, conf.View, time.Now)
	o := &Operator{conf: conf}
	o.admin.Store(&conf.Admin)
	return o
}

// Refresh reads the list of administrators again, for `yarn rmadmin -refreshAdminAcls`.
func (o *Operator) Refresh() error {
	if o.conf.Reload == nil {
		return nil
	}
	admin, err := o.conf.Reload()
	if err == nil {
		o.admin.Store(&admin)
	}
	return err
}

// Permits reports whether a user is an administrator of the federation.
func (o *Operator) Permits(user string) bool {
	admin := *o.admin.Load()
	return admin == nil || admin(user)
}

// Warning is the warning about rights that a change of the federation's members answers with; "" if there is none.
func (o *Operator) Warning() string {
	if !o.Permits("") { // no list names it
		return ""
	}
	return "yarn.admin.acl of this router is *: every user may drain members and change queues; name administrators"
}

// allow rejects non-administrators with creel.ErrNotPermitted.
func (o *Operator) allow(user, what string) error {
	if o.Permits(user) {
		return nil
	}
	if user == "" {
		user = "a caller without a name"
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted,
		What: fmt.Sprintf("%s may not %s", user, what),
		Why:  "it changes the federation, and yarn.admin.acl of this router does not name that user",
		Try:  "ask as an administrator (--user, HADOOP_USER_NAME), or change yarn.admin.acl",
	}
}

// Forget deletes the record of an application's home, for `yarn routeradmin -application --delete`. It fails with
// creel.ErrConflict if home still has the application: without the record a repeated submission would run it a second
// time.
func (o *Operator) Forget(ctx context.Context, user string, app creel.ApplicationID) error {
	what := "delete the record of " + app.String()
	if err := o.allow(user, what); err != nil {
		return err
	}
	home, err := o.conf.Store.Home(ctx, app)
	if err != nil {
		return err
	}
	if o.conf.Known == nil {
		return &creel.Error{Kind: creel.ErrUnavailable, What: "cannot " + what, Why: "its home cannot be asked"}
	}
	switch has, err := o.conf.Known(ctx, home, app); {
	case err != nil:
		return &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "cannot " + what,
			Why:  fmt.Sprintf("its home %s does not say whether it still has it: %v", home, err),
			Try:  "try again when that subcluster answers",
		}
	case has:
		return &creel.Error{
			Kind: creel.ErrConflict,
			What: "cannot " + what,
			Why:  fmt.Sprintf("its home %s still has it, and a repeat of its submission would run it twice", home),
			Try:  "kill it first; records of ended applications expire (creel.store.home-ttl)",
		}
	}
	return o.conf.Store.Forget(ctx, app, home, 0)
}
