// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// A home has two nodes: Hadoop's record, which decides which home it is, and creel's with everything else. creel writes
// both in one step. Hadoop's programs know the first alone, so each read compares them: a home that they claimed, moved
// or deleted counts as claimed, moved or deleted then.

// homeKind is a kind of ids that have homes.
type homeKind struct {
	field    string // of a snapshot
	hadoop   string // parent of Hadoop's records
	own      string // parent of creel's
	read     func(data []byte) (creel.SubclusterID, error)
	replaced func(before []byte, id string, home creel.SubclusterID, claimed time.Time) ([]byte, error)
}

// homeRecord is a home in a snapshot.
type homeRecord struct {
	Home    creel.SubclusterID `json:"home"`
	Claimed time.Time          `json:"claimed"`
	Ends    time.Time          `json:"ends"`
}

// homeOf returns the home in a shard's records, nil if there is none.
func homeOf(f fields, field string) (*homeRecord, error) {
	var list []homeRecord
	if f[field] == nil {
		return nil, nil
	}
	if err := json.Unmarshal(f[field], &list); err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// unfinished is the time after which a record without a home counts as abandoned. Hadoop's routers create a node first,
// and write the home into it afterwards.
const unfinished = 10 * time.Second

// homeShard is the shard of one id.
type homeShard struct {
	*shard
	kind   homeKind
	id     string
	hadoop *node
	before *homeRecord // creel's record as it was read
}

// home reads both nodes of an id, and adopts the changes of Hadoop's programs.
func (t *txn) home(kind homeKind, id string, adopt func(s *shard, at time.Time, home creel.SubclusterID, again bool),
) (*homeShard, error) {
	hadoop, err := t.get(kind.hadoop + "/" + id)
	if err != nil {
		return nil, err
	}
	own := part{kind.own + "/" + id, []string{kind.field}}
	h := &homeShard{kind: kind, id: id, hadoop: hadoop}
	steps := len(t.ends)
	if h.shard, err = t.shard(own); err != nil {
		return nil, err
	}
	t.ends = slices.Insert(t.ends, steps, h.finish) // Hadoop's record depends on the records before they are saved
	f, err := h.fields()
	if err != nil {
		return nil, err
	}
	if h.before, err = homeOf(f, kind.field); err != nil {
		return nil, statestore.Unreadable("a home", err)
	}
	home, err := kind.read(hadoop.data)
	switch node := t.nodes[own.path]; {
	case err != nil:
		return nil, err
	case home == "" && hadoop.is && t.now.Sub(hadoop.written()) < unfinished:
		return nil, errSoon
	case home == "" && h.before != nil:
		adopt(h.shard, t.now, "", false)
		return h, t.leave(id)
	case home != "":
		adopt(h.shard, hadoop.stat.Mtime, home, node.is && hadoop.stat.Created > node.stat.Created)
	}
	return h, nil
}

// leave deletes the UAM records of an application that has no home any more.
func (t *txn) leave(id string) error {
	path := t.store.paths.uams + "/" + id
	n, err := t.get(path)
	if err == nil && n.is {
		t.remove(path)
	}
	return err
}

// expired reports whether the home's time is over.
func (h *homeShard) expired(now time.Time) bool {
	return h.before != nil && !h.before.Ends.IsZero() && !now.Before(h.before.Ends)
}

// finish writes Hadoop's record, and the index of ends.
func (h *homeShard) finish() error {
	f, err := h.fields()
	if err != nil {
		return err
	}
	after, err := homeOf(f, h.kind.field)
	if err != nil {
		return err
	}
	t := h.txn
	if is, _ := h.kind.read(h.hadoop.data); after == nil && h.hadoop.is {
		t.remove(h.hadoop.path)
	} else if after != nil && after.Home != is {
		data, err := h.kind.replaced(h.hadoop.data, h.id, after.Home, after.Claimed)
		if err != nil {
			return err
		}
		t.put(h.hadoop.path, data)
	}
	return h.index(endOf(h.before), endOf(after))
}

func endOf(h *homeRecord) time.Time {
	if h == nil {
		return time.Time{}
	}
	return h.Ends
}

// index moves the id in the index of ends.
func (h *homeShard) index(before, after time.Time) error {
	if before.Equal(after) {
		return nil
	}
	for _, end := range []time.Time{before, after} {
		if end.IsZero() {
			continue
		}
		path := h.txn.store.endNode(end, h.id)
		n, err := h.txn.get(path)
		switch {
		case err != nil:
			return err
		case end.Equal(after) && !n.is:
			h.txn.put(path, nil)
		case end.Equal(before) && n.is:
			h.txn.remove(path)
		}
	}
	return nil
}

// endNode is the node of an end: its name sorts by time.
func (s *engine) endNode(end time.Time, id string) string {
	return fmt.Sprintf("%s/%015d-%s", s.paths.ending, end.UnixMilli(), id)
}

// parallel is the number of reads that one listing makes at a time.
const parallel = 64

// each calls f for the numbers below n, several at a time, and returns the first error.
func each(n int, f func(i int) error) error {
	errs := make(chan error, parallel)
	var next atomic.Int64
	workers := min(n, parallel)
	for range workers {
		go func() {
			var first error
			for i := int(next.Add(1)) - 1; i < n && first == nil; i = int(next.Add(1)) - 1 {
				first = f(i)
			}
			errs <- first
		}()
	}
	var first error
	for range workers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Sweep implements statestore.Store.
func (s *Store) Sweep(ctx context.Context, limit int) (freed int, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return 0, err
	}
	var over []string
	err = s.change(ctx, false, func(t *txn) error {
		over = nil
		names, err := t.children(s.paths.ending)
		slices.Sort(names)
		for _, n := range names {
			if end, _, ok := endIn(n); ok && !t.now.Before(end) && len(over) < limit {
				over = append(over, n)
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	var count atomic.Int64
	err = each(len(over), func(i int) error {
		gone, err := s.sweep(ctx, over[i])
		count.Add(int64(gone))
		return err
	})
	if err == nil && len(over) < limit {
		err = s.sweepLeftovers(ctx)
	}
	return int(count.Load()), err
}

// endIn reads the name of a node in the index of ends.
func endIn(node string) (end time.Time, id string, ok bool) {
	ms, id, ok := strings.Cut(node, "-")
	var n int64
	if _, err := fmt.Sscanf(ms, "%015d", &n); err != nil {
		return time.Time{}, "", false
	}
	return time.UnixMilli(n).UTC(), id, ok
}

// sweep deletes the expired record of one end.
func (s *engine) sweep(ctx context.Context, entry string) (freed int, err error) {
	_, id, _ := endIn(entry)
	err = s.change(ctx, false, func(t *txn) error {
		freed = 0
		index := s.paths.ending + "/" + entry
		n, err := t.get(index)
		if err != nil || !n.is {
			return err // another process has deleted it
		}
		t.remove(index)
		h, err := t.homeOf(id)
		if err != nil || h == nil {
			return err
		}
		freed, err = h.Sweep(t.now, 1)
		if err == nil && freed > 0 && h.kind.field == "homes" {
			err = t.leave(id)
		}
		return err
	})
	return freed, err
}

// homeOf reads the home of an application or a reservation, nil if the text is the id of neither.
func (t *txn) homeOf(id string) (*homeShard, error) {
	if app, err := creel.ParseApplicationID(id); err == nil {
		return applicationsOf(t.store).in(t, app)
	}
	if booking, err := creel.ParseReservationID(id); err == nil {
		return reservationsOf(t.store).in(t, booking)
	}
	return nil, nil
}

// leftoversEvery is the time between searches of a process for records whose homes Hadoop's programs have deleted.
const leftoversEvery = 10 * time.Minute

// sweepLeftovers deletes creel's records of applications that Hadoop's programs have deleted, and expired tokens.
func (s *engine) sweepLeftovers(ctx context.Context) error {
	last, now := s.swept.Load(), s.cfg.Local().UnixMilli()
	if now-last < leftoversEvery.Milliseconds() || !s.swept.CompareAndSwap(last, now) {
		return nil
	}
	var left []string
	err := s.look(ctx, func(t *txn) error {
		left = nil
		here, err := t.children(s.paths.homes)
		if err != nil {
			return err
		}
		slices.Sort(here)
		for _, parent := range []string{s.paths.apps, s.paths.uams} {
			own, err := t.children(parent)
			if err != nil {
				return err
			}
			for _, id := range own {
				if _, found := slices.BinarySearch(here, id); !found {
					left = append(left, parent+"/"+id)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = each(len(left), func(i int) error { return s.sweepLeftover(ctx, left[i]) })
	if err != nil {
		return err
	}
	return s.sweepTokens(ctx)
}

// sweepLeftover deletes a record of creel's that is older than a message on its way, if its application has no home.
func (s *engine) sweepLeftover(ctx context.Context, path string) error {
	return s.change(ctx, false, func(t *txn) error {
		n, err := t.get(path)
		if err != nil || !n.is || t.now.Sub(n.written()) < statestore.DroppedFor {
			return err
		}
		hadoop, err := t.get(s.paths.homes + path[strings.LastIndexByte(path, '/'):])
		if err == nil && !hadoop.is {
			t.remove(path)
		}
		return err
	})
}
