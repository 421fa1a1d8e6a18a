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
	surplus  bool // the AM never heard of it: it goes back, and its completion is not told
	untold   bool // the AM hears of it in its next answer
	released bool
}

// containers knows who granted what. A container is told to the AM when
// granted and when completed, each once.
type containers struct {
	live map[creel.ContainerID]*heldContainer
	// Each that ever lived or ended here: one that does not live has ended, and a
	// ResourceManager that tells its completion again after a restart is not believed.
	seen idSet
}

// mostReturned bounds the containers that the AM gives back to a proxy that does not know them.
const mostReturned = 4096

func newContainers() containers {
	return containers{live: map[creel.ContainerID]*heldContainer{}}
}

// hold notes a container that has been granted, and that nobody knows.
func (c *containers) hold(id creel.ContainerID, o *heldContainer) {
	c.seen.add(id)
	c.live[id] = o
	o.by.live++
}

// complete notes the completion of a container of which o is live, nil if it is not. It
// reports whether that is news: not if it was told before.
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
