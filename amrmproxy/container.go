// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// containerID converts an id from its message.
func containerID(p *yarnpb.ContainerIdProto) creel.ContainerID {
	a := p.GetAppAttemptId()
	return creel.ContainerID{
		Attempt: creel.AttemptID{
			Application: creel.ApplicationID{
				ClusterTimestamp: a.GetApplicationId().GetClusterTimestamp(),
				ID:               a.GetApplicationId().GetId(),
			},
			Attempt: a.GetAttemptId(),
		},
		ID: p.GetId(),
	}
}

// heldContainer is a granted container that has not ended.
type heldContainer struct {
	by       *link
	id       *yarnpb.ContainerIdProto
	surplus  bool // the AM never received it: it is released, and its completion is not reported
	untold   bool // the AM has not received it yet; it is in the next answer
	released bool
	swapped  bool // it serves an ask of the other execution type, although the AM has asks of both
}

// containers records the member that granted each container. The AM is informed once of a container's grant, and once
// of its completion.
type containers struct {
	live map[creel.ContainerID]*heldContainer
	// All containers that the session has seen. A seen container that is not live has ended, so a completion that a
	// ResourceManager repeats after a restart is ignored.
	seen idSet
}

// mostReturned bounds the containers that the AM releases while their member is unknown.
const mostReturned = 4096

func newContainers() containers {
	return containers{live: map[creel.ContainerID]*heldContainer{}}
}

// hold records a new granted container.
func (c *containers) hold(id creel.ContainerID, o *heldContainer) {
	c.seen.add(id)
	c.live[id] = o
	o.by.live++
}

// complete records the completion of a container; o is its entry while it is live, nil otherwise. It reports whether
// this is the first report of the completion.
func (c *containers) complete(id creel.ContainerID, o *heldContainer) (first bool) {
	if o != nil {
		o.by.live--
		delete(c.live, id)
		return true
	}
	first = !c.seen.has(id)
	c.seen.add(id)
	return first
}

// knows reports whether id is live or has ended.
func (c *containers) knows(id creel.ContainerID) bool {
	return c.seen.has(id) || c.live[id] != nil // an old live container may have been dropped from seen
}

// of returns the ids of a member's live containers, sorted.
func (c *containers) of(m *link) []creel.ContainerID {
	var ids []creel.ContainerID
	for id, o := range c.live {
		if o.by == m {
			ids = append(ids, id)
		}
	}
	sortIDs(ids)
	return ids
}
