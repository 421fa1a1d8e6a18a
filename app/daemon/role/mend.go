// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/subcluster/remote"
)

// memberQueues changes the queues of members through their scheduler-conf.
type memberQueues struct {
	member func(creel.SubclusterID) (*remote.Member, error)
}

// call sends a request to a member. A rejection has the member's message.
func (q memberQueues) call(
	ctx context.Context,
	id creel.SubclusterID,
	kind remote.Kind,
	method, user string,
	body any,
) ([]byte, error) {
	m, err := q.member(id)
	if err != nil {
		return nil, err
	}
	path := remote.SchedulerConfPath
	if user != "" {
		path += "?" + url.Values{"user.name": {user}}.Encode()
	}
	var data []byte
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	head := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
	answer, _, err := m.Web(ctx, kind, method, path, user, head, data)
	var refused *remote.StatusError
	if !errors.As(err, &refused) {
		return answer, err
	}
	text, try := strings.TrimSpace(fmt.Sprintf("%.400s", refused.Words())), ""
	switch {
	case refused.Code == http.StatusBadRequest && strings.Contains(text, "utable"):
		text = "its queues come from a file"
		try = "set yarn.scheduler.configuration.store.class there, or change the file"
	case refused.Code == http.StatusForbidden, refused.Code == http.StatusUnauthorized:
		try = "as an administrator in yarn.admin.acl of that ResourceManager"
	}
	return nil, &creel.Error{
		Kind: creel.ErrInvalidRequest, What: fmt.Sprintf("the queues of %s stay as they are", id), Why: text, Try: try,
	}
}

// QueueConf implements operator.Members.
func (q memberQueues) QueueConf(
	ctx context.Context,
	id creel.SubclusterID,
	user string,
) (rebalancer.QueueConf, error) {
	answer, err := q.call(ctx, id, remote.Read, http.MethodGet, user, nil)
	if err != nil {
		return nil, err
	}
	conf, err := remote.ParseSchedulerConf(answer)
	return conf, err
}

// ChangeQueues implements operator.Members.
func (q memberQueues) ChangeQueues(
	ctx context.Context,
	id creel.SubclusterID,
	user string,
	changes []rebalancer.QueueChange,
) error {
	return q.RemoveQueues(ctx, id, user, nil, changes)
}

// RemoveQueues implements operator.Members.
func (q memberQueues) RemoveQueues(
	ctx context.Context,
	id creel.SubclusterID,
	user string,
	remove []creel.QueuePath,
	also []rebalancer.QueueChange,
) error {
	var order remote.SchedulerConfChange
	for _, path := range remove {
		order.Remove = append(order.Remove, string(path))
	}
	for _, c := range also {
		if c.Add {
			order.Add = remote.Set(order.Add, string(c.Queue), c.Key, c.Is)
		} else {
			order.Update = remote.Set(order.Update, string(c.Queue), c.Key, c.Is)
		}
	}
	_, err := q.call(ctx, id, remote.Write, http.MethodPut, user, order)
	return err
}

// mendEvery is how often a router checks for drift if automatic repair is on.
const mendEvery = time.Minute

// addMends adds the loop that repairs drift found by two checks in a row. One router at a time repairs.
func (r *Router) addMends(o *operator.Operator, m *mover, user string) {
	r.Add("drift of queues", func(ctx context.Context) error {
		tick := time.NewTicker(mendEvery)
		defer tick.Stop()
		var before operator.MendReport
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			under, done, ok := m.leadAs(ctx, "mends", mendEvery/2)
			if !ok {
				before = operator.MendReport{}
				continue
			}
			now, err := o.Mend(under, user, operator.MendOrder{DryRun: true})
			if err == nil && reflect.DeepEqual(now, before) {
				now, err = o.Mend(under, user, operator.MendOrder{Comment: "creel.rebalancer.mend"})
				r.tellMended(m, now)
			}
			before = now
			done()
			if err != nil && ctx.Err() == nil {
				m.log.Warn("failed to repair drift of the members' queues", "error", err)
			}
		}
	})
}

func (r *Router) tellMended(m *mover, done operator.MendReport) {
	for _, x := range done.Members {
		if len(x.Changes) > 0 {
			line := audit.Line{Operation: "mend queues", Target: string(x.Member), Result: audit.Success}
			if x.Error != "" {
				line.Result, line.Error = audit.Failure, x.Error
			}
			line.Log(m.log, slog.Int64("version", done.Version), slog.Int("changes", len(x.Changes)),
				slog.Bool("done", x.Done))
		}
	}
}
