// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// outbox has the AM's requests that wait while a member is away. Each name or container has at most one waiting
// request, so that memory does not grow with time.
type outbox struct {
	release            []*yarnpb.ContainerIdProto
	blackAdd, blackDel []string
	updates            []*yarnpb.UpdateContainerRequestProto
}

// isEmpty reports whether nothing waits.
func (o *outbox) isEmpty() bool {
	return len(o.release)+len(o.updates)+len(o.blackAdd)+len(o.blackDel) == 0
}

// moveTo moves all requests into a call.
func (o *outbox) moveTo(a *yarnpb.AllocateRequestProto) {
	a.Release, a.UpdateRequests = o.release, o.updates
	if len(o.blackAdd)+len(o.blackDel) > 0 {
		a.BlacklistRequest = &yarnpb.ResourceBlacklistRequestProto{
			BlacklistAdditions: o.blackAdd,
			BlacklistRemovals:  o.blackDel,
		}
	}
	*o = outbox{}
}

// blacken stores a change of the blacklist; the last change of a name wins.
func (o *outbox) blacken(b *yarnpb.ResourceBlacklistRequestProto) {
	for _, name := range b.GetBlacklistAdditions() {
		o.blackAdd, o.blackDel = lastWord(name, o.blackAdd, o.blackDel)
	}
	for _, name := range b.GetBlacklistRemovals() {
		o.blackDel, o.blackAdd = lastWord(name, o.blackDel, o.blackAdd)
	}
}

// lastWord adds a name to a list and removes it from the other.
func lastWord(name string, in, other []string) (now, rest []string) {
	if !slices.Contains(in, name) {
		in = append(in, name)
	}
	if i := slices.Index(other, name); i >= 0 {
		other = slices.Delete(other, i, i+1)
	}
	return in, other
}

// releases reports whether the release of a container waits to be sent to the member.
func (o *outbox) releases(id creel.ContainerID) bool {
	return slices.ContainsFunc(o.release, func(c *yarnpb.ContainerIdProto) bool { return containerID(c) == id })
}

// update stores a request to change a container; a later request replaces an earlier one.
func (o *outbox) update(u *yarnpb.UpdateContainerRequestProto) {
	id := containerID(u.GetContainerId())
	i := slices.IndexFunc(o.updates, func(w *yarnpb.UpdateContainerRequestProto) bool {
		return containerID(w.GetContainerId()) == id
	})
	if i >= 0 {
		o.updates[i] = u
		return
	}
	o.updates = append(o.updates, u)
}

// untaken retains the content of a call that the member did not accept, except asks and releases. Later requests of
// the AM win.
func (o *outbox) untaken(a *yarnpb.AllocateRequestProto) {
	since := &yarnpb.ResourceBlacklistRequestProto{BlacklistAdditions: o.blackAdd, BlacklistRemovals: o.blackDel}
	updates := o.updates
	o.blackAdd, o.blackDel, o.updates = nil, nil, nil
	o.blacken(a.GetBlacklistRequest())
	o.blacken(since)
	for _, u := range slices.Concat(a.UpdateRequests, updates) {
		o.update(u)
	}
}
