// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
)

// Check reads all that a daemon of this role would read at its start (queue
// files, lists of hosts, racks, policies, secrets, the store's URL), and returns
// the error with which the daemon would not start. It binds no port and calls
// nobody.
func Check(s *settings.Settings, role settings.Role) error {
	switch role {
	case settings.RM:
		var store statestore.Store
		if Member(s) {
			if err := checkStore(s); err != nil {
				return err
			}
			store = statestore.NewMemory(statestore.NewState("check", ValidPolicy), time.Now) // nobody asks it
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

// checkStore checks what the settings say about the store, without calling it.
func checkStore(s *settings.Settings) error {
	conf, memory, err := storeConfig(s)
	if err != nil || memory {
		return err
	}
	store, err := redis.Open(conf)
	if err != nil {
		return s.Problem("creel.store.url", err.Error(), "")
	}
	return store.Close()
}
