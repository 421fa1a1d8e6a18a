// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// The protocols of each daemon, with the prefix of their access lists' keys.
var (
	rmProtocols = map[string]string{
		yarnrpc.ApplicationClientProtocolName:             "security.applicationclient.protocol",
		yarnrpc.ApplicationMasterProtocolName:             "security.applicationmaster.protocol",
		yarnrpc.DistributedSchedulingAMProtocolName:       "security.distributedscheduling.protocol",
		yarnrpc.ResourceTrackerName:                       "security.resourcetracker.protocol",
		yarnrpc.ResourceManagerAdministrationProtocolName: "security.resourcemanager-administration.protocol",
		yarnrpc.HAServiceProtocolName:                     "security.ha.service.protocol",
	}
	routerProtocols = map[string]string{
		yarnrpc.ApplicationClientProtocolName:             "security.applicationclient.protocol",
		yarnrpc.ResourceManagerAdministrationProtocolName: "security.resourcemanager-administration.protocol",
	}
	proxyProtocols = map[string]string{
		yarnrpc.ApplicationMasterProtocolName: "security.applicationmaster-nodemanager.applicationmaster.protocol",
	}
)

// serviceACLs are Hadoop's service-level authorization (hadoop-policy.xml): the users and machines that may use a
// protocol at all.
type serviceACLs struct {
	settings  *settings.Settings
	protocols map[string]string
	groups    *groups.Groups
	lists     atomic.Pointer[map[string]serviceACL]
}

// serviceACL is the access list of one protocol. The blocked lists override the others.
type serviceACL struct {
	users, blocked          queues.ACL
	machines, blockedAround httpguard.Machines
}

// newServiceACLs reads the lists even if they are not in force, so that mistakes in them are reported early. It
// returns nil while hadoop.security.authorization is off.
func newServiceACLs(s *settings.Settings, protocols map[string]string, g *groups.Groups) (*serviceACLs, error) {
	a := &serviceACLs{settings: s, protocols: protocols, groups: g}
	lists, err := a.read(s)
	if err != nil || !s.Bool("hadoop.security.authorization") {
		return nil, err
	}
	a.lists.Store(&lists)
	return a, nil
}

// refresh reads the files again.
func (a *serviceACLs) refresh() error {
	s, err := a.settings.Reload()
	if err != nil {
		return err
	}
	lists, err := a.read(s)
	if err == nil {
		a.lists.Store(&lists)
	}
	return err
}

func (a *serviceACLs) read(s *settings.Settings) (map[string]serviceACL, error) {
	const byDefault = "security.service.authorization.default"
	// its returns the key of a protocol's list if there is one, else of the default. An existing empty list allows no
	// user.
	its := func(service, end string) string {
		if _, ok := s.Lookup(service + end); ok {
			return service + end
		}
		return byDefault + end
	}
	users := func(service, end string) queues.ACL { return queues.ParseACL(s.ACL(its(service, end))) }
	out := map[string]serviceACL{}
	for protocol, service := range a.protocols {
		acl := serviceACL{users: users(service, ".acl"), blocked: users(service, ".acl.blocked")}
		for end, machines := range map[string]*httpguard.Machines{
			".hosts": &acl.machines, ".hosts.blocked": &acl.blockedAround,
		} {
			key := its(service, end)
			*machines = s.List(key)
			if err := machines.Check(); err != nil {
				return nil, s.Problem(key, err.Error(), "give addresses, networks and host names, or *")
			}
		}
		out[protocol] = acl
	}
	return out, nil
}

// notAuthorized is the reason why a client may not use a protocol, in Hadoop's words.
type notAuthorized string

func (why notAuthorized) Error() string { return string(why) }

// authorize rejects a client that may not use a protocol, with Hadoop's message.
func (a *serviceACLs) authorize(who *hrpc.Identity, protocol string, remote netip.Addr) error {
	acl, ok := (*a.lists.Load())[protocol]
	switch {
	case protocol == "":
		return notAuthorized("Null protocol not authorized")
	case !ok:
		return notAuthorized("Unknown protocol: " + protocol)
	case !a.named(acl.users, who) || a.named(acl.blocked, who):
		return notAuthorized(fmt.Sprintf("User %s is not authorized for protocol interface %s: denied by configured ACL",
			described(who), protocol))
	case !acl.machines.Includes(remote) || acl.blockedAround.Includes(remote):
		return notAuthorized(fmt.Sprintf("Host %s is not authorized for protocol interface %s", remote, protocol))
	}
	return nil
}

// named reports whether a list includes a client: the user, one of the user's groups, or ~ and the name of the
// impersonating user.
func (a *serviceACLs) named(acl queues.ACL, who *hrpc.Identity) bool {
	return acl.Allows(who.User, nil) || who.RealUser != "" && acl.Allows("~"+who.RealUser, nil) ||
		len(acl.Groups) > 0 && acl.Allows(who.User, a.groups.Of(who.User))
}

// described returns a client in Hadoop's form.
func described(who *hrpc.Identity) string {
	switch {
	case who.RealUser != "":
		real := cmp.Or(who.Principal, who.RealUser)
		return fmt.Sprintf("%s (auth:PROXY) via %s (auth:%s)", who.User, real, who.Method)
	case who.Method == hrpc.Kerberos:
		return who.Principal + " (auth:KERBEROS)"
	}
	return fmt.Sprintf("%s (auth:%s)", who.User, who.Method)
}
