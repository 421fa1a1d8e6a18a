// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/authorizer"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/impersonation"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// impersonate returns an error unless real may act for effective from remote.
func (a *access) impersonate(real, effective string, remote netip.Addr) error {
	return a.proxies.Check(real, effective, remote)
}

// access checks permissions. Its rules may be replaced at any time.
type access struct {
	proxies *impersonation.Current

	mu       sync.RWMutex
	adminACL queues.ACL
	acls     bool // yarn.acl.enable
	groups   *groups.Groups

	rights rights
}

func newAccess(cfg Config) *access {
	return &access{
		proxies:  impersonation.NewCurrent(cfg.Proxies, cfg.Groups.Of),
		adminACL: cfg.AdminACL,
		acls:     cfg.ACLs,
		groups:   cfg.Groups,
		rights:   rights{outside: cfg.Outside, open: map[authorizer.Question]struct{}{}},
	}
}

func (a *access) setAdmin(acl queues.ACL) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adminACL = acl
}

// learn finds the groups of a caller, which may call a directory. So the machine's owner, which must not wait, knows
// them.
func (a *access) learn(name string) {
	if name != "" {
		a.groups.Of(name)
	}
}

// isAdmin applies yarn.admin.acl, even if other ACLs are off. The machine's owner may call it: see learn.
func (a *access) isAdmin(name string) bool {
	a.mu.RLock()
	acl := a.adminACL
	a.mu.RUnlock()
	return acl.All || acl.Allows(name, a.groups.Known(name))
}

// isRouter reports whether a user may call as a router of the federation: a user that may act for others, or an
// administrator.
func (a *access) isRouter(name string) bool {
	return a.proxies.Has(name) || a.isAdmin(name)
}

// appAccess is YARN's rule for an application: its owner, its ACL, the queue's administrators, the cluster's
// administrators; anyone if ACLs are off.
func (a *access) appAccess(
	caller, owner string,
	kind pb.ApplicationAccessTypeProto,
	c *pb.ApplicationSubmissionContextProto,
	queueAdmin func(user string, groups []string) bool,
) bool {
	if !a.acls || caller == owner || a.isAdmin(caller) {
		return true
	}
	groups := a.groups.Known(caller)
	for _, entry := range c.GetAmContainerSpec().GetApplication_ACLs() {
		if entry.GetAccessType() == kind && queues.ParseACL(entry.GetAcl()).Allows(caller, groups) {
			return true
		}
	}
	return queueAdmin != nil && queueAdmin(caller, groups)
}

// Impersonate returns an error unless real may act for effective from remote. The proxy-user rules apply to doAs in
// REST as to Hadoop RPC.
func (s *Server) Impersonate(real, effective string, remote netip.Addr) error {
	return s.access.impersonate(real, effective, remote)
}

// IsAdmin reports whether yarn.admin.acl names a caller.
func (s *Server) IsAdmin(user string) bool { return s.access.isAdmin(user) }

// ACLs reports whether yarn.acl.enable is on.
func (s *Server) ACLs() bool { return s.access.acls }

// Groups returns a user's groups, primary first. It may wait for them, so call it neither in an Op nor in a Query. Call
// it where a request arrives, before a Query checks the caller's rights.
func (s *Server) Groups(user string) []string { return s.access.groups.Of(user) }

const (
	viewApp   = pb.ApplicationAccessTypeProto_APPACCESS_VIEW_APP
	modifyApp = pb.ApplicationAccessTypeProto_APPACCESS_MODIFY_APP
)

// may reports a caller's permission for an application. It reads the queues, so only the owner may call it.
func (s *Server) may(m *rm.Machine, who Caller, a *rm.AppView, kind pb.ApplicationAccessTypeProto) bool {
	message := codec.ContextOf(a.Context)
	return s.access.appAccess(who.User, a.User, kind, message, func(user string, groups []string) bool {
		return m.MayAdminister(string(a.Queue), user, groups)
	})
}

// MayView reports whether a caller may see the details of an application. Call it within Query or an Op, with their
// machine.
func (s *Server) MayView(m *rm.Machine, who Caller, a *rm.AppView) bool {
	return s.may(m, who, a, viewApp)
}

// HidesApps reports whether lists omit applications from callers without view access.
func (s *Server) HidesApps() bool { return s.cfg.HideApps && s.access.acls }

// Lists reports whether an application is in a caller's lists, and whether its details are visible there.
func (s *Server) Lists(m *rm.Machine, who Caller, a *rm.AppView) (listed, viewable bool) {
	viewable = s.MayView(m, who, a)
	return viewable || !s.cfg.HideApps, viewable
}

// IsRouter reports whether a user may call as a router of the federation.
func (s *Server) IsRouter(user string) bool { return s.access.isRouter(user) }

// Viewers returns, within Query, the users besides its owner that may view an application, as an access list in
// Hadoop's form.
func (s *Server) Viewers(m *rm.Machine) func(a *rm.AppView) string {
	if !s.access.acls {
		return func(*rm.AppView) string { return "*" }
	}
	s.access.mu.RLock()
	admin := s.access.adminACL
	s.access.mu.RUnlock()
	// An outside authoriser has no lists: its administrators of queues see applications at this ResourceManager only.
	listed := s.cfg.Outside == nil || s.cfg.Outside.Lists == ListsAlso
	byQueue := map[creel.QueuePath]queues.ACL{}
	return func(a *rm.AppView) string {
		acl, known := byQueue[a.Queue]
		if !known {
			if acl = admin; listed {
				acl = admin.Or(m.Administrators(string(a.Queue)))
			}
			byQueue[a.Queue] = acl
		}
		if acl.All {
			return "*"
		}
		for _, entry := range codec.ContextOf(a.Context).GetAmContainerSpec().GetApplication_ACLs() {
			if entry.GetAccessType() == viewApp {
				acl = acl.Or(queues.ParseACL(entry.GetAcl()))
			}
		}
		return acl.String()
	}
}

// Viewable returns an application that the caller may view, within Query or an Op.
func (s *Server) Viewable(m *rm.Machine, who Caller, id creel.ApplicationID) (rm.AppView, error) {
	a, ok := m.App(id)
	switch {
	case !ok:
		return a, NoSuchApplication(id)
	case !s.may(m, who, &a, viewApp):
		return a, denied("User %s does not have privilege to see this application %s", who.User, id)
	}
	return a, nil
}

// modifiable finds an application that the caller may change.
func (s *Server) modifiable(m *rm.Machine, who Caller, id creel.ApplicationID) (rm.AppView, error) {
	a, ok := m.App(id)
	switch {
	case !ok:
		return a, NoSuchApplication(id)
	case !s.may(m, who, &a, modifyApp):
		return a, denied("User %s cannot perform operation %s on %s", who.User, "MODIFY_APP", id)
	}
	return a, nil
}

// NoSuchApplication is the error for an unknown application.
func NoSuchApplication(id creel.ApplicationID) error {
	return &creel.Error{
		Kind: creel.ErrApplicationNotFound,
		What: fmt.Sprintf(
			"Application with id '%s' doesn't exist in RM. Please check that the job submission was successful.",
			id,
		),
	}
}
