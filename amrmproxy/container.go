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
	// Completions already told, in two generations, so that a ResourceManager that
	// tells one again after a restart is not believed, in bounded memory.
	done, older map[creel.ContainerID]struct{}
}

const doneKept = 4096

func newContainers() containers {
	return containers{live: map[creel.ContainerID]*heldContainer{}, done: map[creel.ContainerID]struct{}{}}
}

// complete notes a completion; false if it was told before.
func (c *containers) complete(id creel.ContainerID) bool {
	if _, ok := c.done[id]; ok {
		return false
	}
	if _, ok := c.older[id]; ok {
		return false
	}
	if len(c.done) >= doneKept {
		c.older, c.done = c.done, make(map[creel.ContainerID]struct{}, doneKept)
	}
	c.done[id] = struct{}{}
	return true
}

// knows reports whether id is live or has ended lately.
func (c *containers) knows(id creel.ContainerID) bool {
	if _, ok := c.live[id]; ok {
		return true
	}
	if _, ok := c.done[id]; ok {
		return true
	}
	_, ok := c.older[id]
	return ok
}

// hold notes a container that has been granted.
func (c *containers) hold(id creel.ContainerID, o *heldContainer) {
	c.live[id] = o
	o.by.live++
}

// let forgets a container that has ended, and returns what was known of it, or nil.
func (c *containers) let(id creel.ContainerID) *heldContainer {
	o := c.live[id]
	if o != nil {
		o.by.live--
		delete(c.live, id)
	}
	return o
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
