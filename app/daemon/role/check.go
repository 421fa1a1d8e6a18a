// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/redis"
)

// Check reads everything that a daemon of this role reads at its start: queue files, host lists, racks, policies,
// secrets, the store's URL. It returns the error that would stop the daemon's start. It binds no port and makes no
// calls.
func Check(s *settings.Settings, role settings.Role) error {
	switch role {
	case settings.RM:
		var store statestore.Store
		if Member(s) {
			if err := checkStore(s); err != nil {
				return errors.Join(mayStart(s, role), err)
			}
			store = memory.New(memory.NewState("check", ValidPolicy), time.Now) // never queried
		}
		c, err := RMSettings(s, store)
		if err != nil {
			return err
		}
		return c.RM.Validate()
	case settings.Router:
		_, err := RouterSettings(s)
		return errors.Join(err, checkStore(s))
	case settings.Proxy:
		_, err := ProxySettings(s)
		return errors.Join(err, checkStore(s))
	case settings.Rebalancer:
		_, err := RebalancerSettings(s)
		return errors.Join(err, checkStore(s))
	case settings.NM:
		_, err := NodesSettings(s)
		return err
	case settings.Agent:
		_, err := AgentSettings(s)
		return errors.Join(err, checkStore(s))
	}
	roles := strings.Trim(fmt.Sprint(settings.Roles), "[]")
	return settings.Invalid(fmt.Errorf("there is no daemon %q; the roles are %s", role, roles))
}

// Warnings returns what would make a member of the federation refuse calls of routers, by the configuration of its
// ResourceManager: creel's, or Hadoop's behind an agent. For a secure ResourceManager it returns what is open.
func Warnings(s *settings.Settings, role settings.Role) (out []string) {
	out = unusedStoreClass(s)
	if slices.Contains(onServers, role) {
		out = append(out, openBind(s)...)
	}
	if role == settings.RM && secure(s) {
		out = append(out, openAdministration(s)...)
	}
	if role != settings.RM && role != settings.Agent || !Member(s) {
		return out
	}
	if secure(s) {
		return append(out, withoutProxyUsers(s)...)
	}
	user := s.String("creel.router.proxy-user")
	if proxyRules(s).MayActForOthers(user) {
		return out
	}
	return append(out, fmt.Sprintf("routers could not act for other users at this member: set hadoop.proxyuser.%s.hosts "+
		"and .groups, or creel.router.proxy-user to the routers' user", user))
}

// withoutProxyUsers returns the principals of a federation with Kerberos that cannot act for users at this member. A
// configuration without the routers' principal is not checked for it.
func withoutProxyUsers(s *settings.Settings) (out []string) {
	names, err := nameRules(s)
	if err != nil { // the check of the start reports it
		return nil
	}
	conf, err := kerberos.LoadConfig(kerberos.ConfigPath())
	if err != nil {
		return nil
	}
	for _, daemon := range []struct{ key, named string }{{routerPrincipal, "routers"}, {nmPrincipal, "AM-RM proxies"}} {
		principal, err := principalOf(s, daemon.key, conf.DefaultRealm())
		if err != nil {
			continue
		}
		user, err := names.Short(principal.String())
		if err != nil {
			out = append(out, fmt.Sprintf("%s could not act for other users at this member: %s: %v",
				daemon.named, daemon.key, err))
		} else if !proxyRules(s).MayActForOthers(user) {
			out = append(out, fmt.Sprintf("%s could not act for other users at this member: set hadoop.proxyuser.%s.hosts "+
				"and .groups", daemon.named, user))
		}
	}
	return out
}

// openAdministration returns a warning if the web port's user is an administrator of a secure ResourceManager.
func openAdministration(s *settings.Settings) []string {
	user := s.String("hadoop.http.staticuser.user")
	if webByTicket(s) && len(s.List(webOpen)) == 0 {
		return nil
	}
	known, err := groupsOf(s)
	if err != nil || !administrators(s, known)(user) {
		return nil
	}
	return []string{fmt.Sprintf("every web client sees all applications: yarn.admin.acl includes %s, "+
		"the user of the web port; name the administrators", user)}
}

// checkStore checks the store's settings without connecting to it.
func checkStore(s *settings.Settings) error {
	switch {
	case overZooKeeper(s):
		_, err := zooKeeperStore(s)
		return err
	case overMariaDB(s):
		_, err := mariaDBStore(s)
		return err
	}
	conf, inMemory, err := storeConfig(s)
	if err != nil || inMemory {
		return err
	}
	store, err := redis.Open(conf)
	if err != nil {
		return s.Problem("creel.store.url", err.Error(), "")
	}
	return store.Close()
}
