// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"net/netip"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// What the web door asks and orders beyond the calls of the client protocol.

// MayActFor tells whether real may act for effective from remote: the
// proxy-user rules, which hold for doAs as they do for Hadoop RPC.
func (d *Daemon) MayActFor(real, effective string, remote netip.Addr) error {
	return d.access.impersonate(real, effective, remote)
}

// IsAdmin tells whether yarn.admin.acl names a user.
func (d *Daemon) IsAdmin(user string) bool { return d.access.isAdmin(user) }

// ACLs tells whether yarn.acl.enable is on.
func (d *Daemon) ACLs() bool { return d.access.acls }

// Groups are a user's groups, primary first.
func (d *Daemon) Groups(user string) []string { return d.access.groupsOf(user) }

// MayView tells whether a caller may see the inside of an application. It is
// asked within Query, with the machine that Query gives.
func (d *Daemon) MayView(m *rm.Machine, who Caller, a *rm.AppView) bool {
	return d.may(m, who, a, viewApp)
}

// UpdateNodeResource changes a node's size by an administrator's order.
func (d *Daemon) UpdateNodeResource(ctx context.Context, who Caller, id creel.NodeID, r creel.Resource) error {
	_, err := await(
		ctx,
		d,
		who,
		op[struct{}]{
			name:   "updateNodeResource",
			target: id.String(),
			run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
				switch _, known := m.Node(id); {
				case !d.access.isAdmin(who.User):
					return failed[struct{}](
						denied("User %s doesn't have permission to call 'updateNodeResource'", who.User),
					)
				case !known:
					return failed[struct{}](
						&creel.Error{Kind: creel.ErrNodeNotFound, What: "nodeId, " + id.String() + ", is not found"},
					)
				}
				return failed[struct{}](m.SetNodeResource(now, id, r))
			},
		},
	)
	return err
}
