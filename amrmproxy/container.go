// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// containerID reads an id as it travels: the attempt carries the application.
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

// heldContainer is a container that some ResourceManager has granted.
type heldContainer struct {
	by       *member
	id       *yarnpb.ContainerIdProto
	surplus  bool // the AM never received it: it is released, and its completion is not passed on
	untold   bool // the AM receives it in its next answer
	released bool
}

// containers records which member granted which container. The AM is informed of a container when it is granted and
// when it completes, once each.
type containers struct {
	live map[creel.ContainerID]*heldContainer
	// All containers that ever lived or ended here: one that is not live has ended. A completion that a
	// ResourceManager repeats after a restart is ignored.
	seen idSet
}

// mostReturned bounds the containers that the AM releases to a proxy that does not know them.
const mostReturned = 4096

func newContainers() containers {
	return containers{live: map[creel.ContainerID]*heldContainer{}}
}

// hold records a granted container that is not known yet.
func (c *containers) hold(id creel.ContainerID, o *heldContainer) {
	c.seen.add(id)
	c.live[id] = o
	o.by.live++
}

// complete records the completion of a container; o is its entry while it is live, nil otherwise. It reports whether
// that is news: not if it was reported before.
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
	return c.seen.has(id) || c.live[id] != nil // that one may be so old that it is forgotten
}

// of are the ids a member granted and which still live, sorted.
func (c *containers) of(m *member) []creel.ContainerID {
	var ids []creel.ContainerID
	for id, o := range c.live {
		if o.by == m {
			ids = append(ids, id)
		}
	}
	sortIDs(ids)
	return ids
}
