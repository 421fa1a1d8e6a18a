// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// silentHeartbeats is the number of intervals without a heartbeat after which the previous process counts as ended.
const silentHeartbeats = 3

// aloneCheck detects a live process that acts for the member with the same data. The epoch in a data directory proves
// that a process is a successor. It does not prove that its predecessor has ended: a copy of the directory has the
// epoch too.
type aloneCheck struct {
	Store    statestore.Members
	ID       creel.SubclusterID
	Previous int64         // epoch in the data, 0 if there is none
	Every    time.Duration // between heartbeats

	unknown bool          // the store did not answer at the start
	done    chan struct{} // closed after start
}

// start runs before a ResourceManager serves. If the store does not answer, it returns nil: a ResourceManager serves
// its nodes and AMs without the store. It calls again before it takes an epoch.
func (c *aloneCheck) start(ctx context.Context) (err error) {
	defer close(c.done)
	c.unknown, err = c.look(ctx, false)
	return err
}

// again waits for start, and repeats the check if the store did not answer then.
func (c *aloneCheck) again(ctx context.Context) error {
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil
	}
	if !c.unknown {
		return nil
	}
	_, err := c.look(ctx, true)
	return err
}

// look returns an error if heartbeats of the member continue under the epoch in this process's data. One heartbeat of
// a killed process may still arrive, so two are needed. It returns nil if there was none for a while, if the store
// does not know the member, and under another epoch, which NextEpoch judges. unknown: the store did not answer, and
// patient is not set.
func (c *aloneCheck) look(ctx context.Context, patient bool) (unknown bool, err error) {
	if c.Previous == 0 {
		return false, nil
	}
	tick := time.NewTicker(max(c.Every/4, 10*time.Millisecond))
	defer tick.Stop()
	var last time.Time
	for arrived := -1; ; {
		asking, enough := context.WithTimeout(ctx, max(c.Every, time.Second))
		records, err := c.Store.RecordsOf(asking, nil, true)
		enough()
		i := slices.IndexFunc(records.Members, func(r subcluster.Record) bool { return r.ID == c.ID })
		switch {
		case ctx.Err() != nil:
			return false, nil
		case err != nil && !patient:
			return true, nil
		case err != nil:
		case i < 0:
			return false, nil
		default:
			r := records.Members[i]
			if r.Deregistered || r.Epoch != c.Previous || records.Now.Sub(r.Heartbeat) > silentHeartbeats*c.Every {
				return false, nil
			}
			if !r.Heartbeat.Equal(last) {
				last = r.Heartbeat
				arrived++
			}
			if arrived >= 2 {
				return false, sameData(c.ID, r.Epoch, r.Addresses.Client)
			}
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}

func sameData(id creel.SubclusterID, epoch int64, at string) error {
	return &creel.Error{
		Kind: creel.ErrConflict,
		What: fmt.Sprintf("the ResourceManager of %s does not serve: another process does, with the same data", id),
		Why:  fmt.Sprintf("heartbeats under epoch %d arrive, from %s", epoch, at),
		Try: "stop the other process; start a copy of a data directory under a name of its own (--subcluster), or with " +
			"--take-over to replace the other process",
	}
}
