// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"

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
	// The highest id of each attempt and epoch that was ever live or done here. A higher
	// one is neither: nearly each grant is new, and a look into maps too large for the
	// processor's caches is most of what it costs.
	highest []creel.ContainerID
}

const (
	doneKept    = 4096
	highestKept = 32 // of more attempts and epochs the maps are asked
	// mostReturned bounds the containers that the AM gives back to a proxy that does not know them.
	mostReturned = 4096
)

func newContainers() containers {
	return containers{live: map[creel.ContainerID]*heldContainer{}, done: map[creel.ContainerID]struct{}{}}
}

// hold notes a container that has been granted, and that nobody knows.
func (c *containers) hold(id creel.ContainerID, o *heldContainer) {
	c.see(id)
	c.live[id] = o
	o.by.live++
}

// complete notes the completion of a container of which o is live, nil if it is not. It
// reports whether that is news: not if it was told before.
func (c *containers) complete(id creel.ContainerID, o *heldContainer) (first bool) {
	if o != nil { // then it is not done: hold is only for what nobody knows
		o.by.live--
		delete(c.live, id)
	} else if c.completed(id) {
		return false
	}
	c.see(id)
	if len(c.done) >= doneKept {
		c.older, c.done = c.done, make(map[creel.ContainerID]struct{}, doneKept)
	}
	c.done[id] = struct{}{}
	return true
}

// knows reports whether id is live or has ended lately.
func (c *containers) knows(id creel.ContainerID) bool {
	if i := c.highestOf(id); i >= 0 && id.ID > c.highest[i].ID {
		return false
	}
	_, ok := c.live[id]
	return ok || c.completed(id)
}

// completed reports whether id has ended lately.
func (c *containers) completed(id creel.ContainerID) bool {
	_, ok := c.done[id]
	if !ok {
		_, ok = c.older[id]
	}
	return ok
}

// see raises the highest id of its attempt and epoch to one that is noted.
func (c *containers) see(id creel.ContainerID) {
	if i := c.highestOf(id); i >= 0 {
		c.highest[i].ID = max(c.highest[i].ID, id.ID)
	} else if len(c.highest) < highestKept {
		c.highest = append(c.highest, id)
	}
}

// highestOf is the index in highest for an id's attempt and epoch, -1 if there is none.
func (c *containers) highestOf(id creel.ContainerID) int {
	return slices.IndexFunc(c.highest, func(h creel.ContainerID) bool {
		return h.Epoch() == id.Epoch() && h.Attempt == id.Attempt
	})
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
