// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// boundUsers is one queue with a user limit.
type boundUsers struct {
	users   *escrow.Users
	limit   creel.Resource
	tree    int64
	request *escrow.UsersRequest
	told    *escrow.UsersRequest // last written
	renewed time.Time            // when the leases in force were asked for
	seen    bool                 // still in the tree
}

// readUsers updates the queues with a user limit from the tree. Members running Hadoop's ResourceManager are left
// out: a user's limit there is a part of a queue, which no call sets for one user.
func (k *Keeper) readUsers(tree *rebalancer.Tree) {
	for _, x := range k.users {
		x.seen = false
	}
	for _, label := range tree.Pools() {
		for i := range tree.In(label).Queues {
			q := &tree.In(label).Queues[i]
			if !q.UserLimited() || k.Settings != nil {
				continue
			}
			k.keepUsers(subcluster.QueueOn{Queue: q.Path, Label: label}, q.UserLimit, tree.Version)
		}
	}
	k.readOpportunisticUsers(tree)
}

// keepUsers updates the state of a queue with a user limit from the tree.
func (k *Keeper) keepUsers(of subcluster.QueueOn, limit creel.Resource, tree int64) {
	x := k.users[of]
	if x == nil {
		x = &boundUsers{users: &escrow.Users{ID: k.ID, Epoch: k.Epoch, Terms: k.Terms}}
		if k.recovers {
			x.users.Recover = k.started.Add(k.Recover)
		}
		k.users[of] = x
	}
	x.limit, x.tree, x.seen = limit, tree, true
}

// askUsers makes the requests, in a turn of the machine.
func (k *Keeper) askUsers(m *rm.Machine, now, sent time.Time) {
	for path, x := range k.users {
		k.setUsers(m, now, path, x)
		uses := userUsesOf(m, path)
		slices.SortFunc(uses, func(a, b escrow.UserUse) int { return strings.Compare(a.User, b.User) })
		x.request = x.users.Ask(sent, uses)
	}
}

// writeUsers adds the requests to the documents of the queues' users. again reports that another request is needed at
// once.
func (k *Keeper) writeUsers(ctx context.Context, sent time.Time) (again bool, err error) {
	if len(k.users) == 0 {
		return false, nil
	}
	set, err := k.read(ctx, rebalancer.UsersClass)
	if err != nil {
		return false, err
	}
	for _, path := range slices.SortedFunc(maps.Keys(k.users), subcluster.CompareQueueOn) {
		more, err := k.writeUsersOf(ctx, sent, &set, path, k.users[path])
		if again = again || more; err != nil {
			return again, err
		}
	}
	return again, nil
}

// without returns the members that are not in a list.
func without(members, list []creel.SubclusterID) []creel.SubclusterID {
	return slices.DeleteFunc(slices.Clone(members), func(id creel.SubclusterID) bool {
		return slices.Contains(list, id)
	})
}

func (k *Keeper) writeUsersOf(
	ctx context.Context, sent time.Time, set *statestore.DocumentSet, path subcluster.QueueOn, x *boundUsers,
) (again bool, err error) {
	doc, known := set.Find(path.Name())
	record := escrow.NewUsersRecord(path.Queue, x.limit, x.tree)
	record.Each.Label = path.Label
	if known {
		if err := json.Unmarshal(doc.Data, record); err != nil {
			return false, err
		}
	}
	if !known || record.Each.Source != set.Source {
		members, standing, err := k.members(ctx)
		if err != nil {
			return false, err
		}
		record.Adopt(set.Now, set.Source, without(members, standing), k.Terms)
	}
	record.Each.Members(func(id creel.SubclusterID, standing bool) { k.holders[id] = standing })
	record.Limit(x.limit, x.tree)
	strange := record.Strange(x.users)
	grant, err := record.Ask(set.Now, x.request, k.Terms)
	if err != nil {
		return false, err
	}
	if known && !strange && !x.due(sent, &grant, k.Terms) {
		return false, nil
	}
	data, err := json.Marshal(record)
	if err != nil {
		return false, err
	}
	_, err = k.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: rebalancer.UsersClass, Name: path.Name(), Expect: doc.Version, Data: data,
		Author: string(k.ID), Source: set.Source, Quiet: true,
	})
	switch {
	case errors.Is(err, creel.ErrConflict):
		k.Counts.Conflicts.Add(1)
		return true, nil
	case err != nil:
		return false, err
	}
	k.Counts.Writes.Add(1)
	x.renewed, x.told = sent, x.request
	return x.users.Granted(sent, grant), nil
}

// due reports whether the request must be written: caps or needs change, or a third of the leases is over.
func (x *boundUsers) due(sent time.Time, g *escrow.UsersGrant, t escrow.Terms) bool {
	is, was := x.request, x.told
	if was == nil || sent.Sub(x.renewed) >= t.Lease/3 || len(is.Users) != len(was.Users) ||
		!g.Each.Cap.Equal(is.Each.Holds) || !is.Each.Holds.Equal(was.Each.Holds) ||
		!is.Each.Else.Equal(was.Each.Else) && !is.Each.Else.Fits(is.Each.Holds) {
		return true
	}
	given := map[string]creel.Resource{}
	for i := range g.Users {
		given[g.Users[i].User] = g.Users[i].Cap
	}
	for i := range is.Users {
		a, b := &is.Users[i], &was.Users[i]
		if to, has := given[a.User]; has && !to.Equal(a.Holds) ||
			a.User != b.User || !a.Holds.Equal(b.Holds) || !a.Needs.Equal(b.Needs) {
			return true
		}
	}
	return false
}

// setUsers sends the caps of a queue's users to the machine.
func (k *Keeper) setUsers(m *rm.Machine, now time.Time, path subcluster.QueueOn, x *boundUsers) {
	ours := k.Clock.Now()
	capOf := func(cap creel.Resource, ends time.Time) rm.UserCap {
		return rm.UserCap{Cap: cap, Until: now.Add(ends.Sub(ours))}
	}
	caps := rm.UserCaps{
		Queue: path.Queue, Label: path.Label, Limit: x.limit, Each: capOf(x.users.Each(ours)),
		Users: map[string]rm.UserCap{},
	}
	for name, lack := range x.users.Hot {
		c := capOf(x.users.Cap(ours, name))
		c.Short, c.Reason = lack.Needs, lack.Reason
		caps.Users[name] = c
	}
	if k.recovering() {
		uses := map[string]creel.Resource{}
		for _, u := range userUsesOf(m, path) {
			uses[u.User] = u.Uses
		}
		known := func(c rm.UserCap, uses creel.Resource) rm.UserCap {
			c.Cap, c.Reason = c.Cap.Min(uses), k.untilRecovered()
			return c
		}
		for name, c := range caps.Users {
			caps.Users[name] = known(c, uses[name])
		}
		caps.Each = known(caps.Each, creel.Resource{})
	}
	setUserCaps(m, now, &caps)
}
