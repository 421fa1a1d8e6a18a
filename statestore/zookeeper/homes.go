// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
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

func (s *engine) applications() homeKind {
	return homeKind{"homes", s.paths.homes, s.paths.apps, readApplicationHome, applicationHome}
}

func (s *engine) bookings() homeKind {
	return homeKind{"reservations", s.paths.bookings, s.paths.reservations, readReservationHome, reservationHome}
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
		adopt(h.shard, time.UnixMilli(hadoop.stat.Mtime), home, node.is && hadoop.stat.Czxid > node.stat.Czxid)
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

func (t *txn) application(app creel.ApplicationID) (*homeShard, error) {
	return t.home(t.store.applications(), app.String(),
		func(s *shard, at time.Time, home creel.SubclusterID, again bool) {
			memory.AdoptHome(s.State, at, app, home, again)
		})
}

// Claim implements statestore.Homes.
func (s *Store) Claim(
	ctx context.Context, app creel.ApplicationID, member creel.SubclusterID, placement []byte,
) (creel.SubclusterID, int64, error) {
	return s.claim(ctx, app, member, placement, true)
}

func (s *engine) claim(
	ctx context.Context, app creel.ApplicationID, member creel.SubclusterID, placement []byte, whole bool,
) (home creel.SubclusterID, number int64, err error) {
	if err := statestore.CheckApplication(app); err != nil {
		return "", 0, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		if err := t.servesIf(whole); err != nil {
			return err
		}
		h, err := t.application(app)
		if err != nil {
			return err
		}
		if h.expired(t.now) {
			if err := t.leave(h.id); err != nil {
				return err
			}
		}
		home, number, err = h.Claim(t.now, app, member, placement)
		return err
	})
	if err != nil {
		return "", 0, err
	}
	return home, number, nil
}

func (t *txn) servesIf(whole bool) error {
	if !whole {
		return nil
	}
	return t.serves()
}

// Move implements statestore.Homes.
func (s *Store) Move(
	ctx context.Context, app creel.ApplicationID, from, to creel.SubclusterID, number int64, placement []byte,
) (creel.SubclusterID, error) {
	return s.move(ctx, app, from, to, number, placement, true)
}

func (s *engine) move(
	ctx context.Context, app creel.ApplicationID, from, to creel.SubclusterID, number int64, placement []byte,
	whole bool,
) (is creel.SubclusterID, err error) {
	if err := statestore.CheckApplication(app); err != nil {
		return "", err
	}
	err = s.change(ctx, true, func(t *txn) error {
		if err := t.servesIf(whole); err != nil {
			return err
		}
		h, err := t.application(app)
		if err != nil {
			return err
		}
		moved := false
		if is, moved, err = h.Move(t.now, app, from, to, number, placement); moved {
			t.tell(statestore.Change{Kind: statestore.ChangeHome, Application: app})
		}
		return err
	})
	return is, err
}

// Absent implements statestore.Homes.
func (s *Store) Absent(
	ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, number int64, surely bool,
) (waited time.Duration, err error) {
	if err := statestore.CheckApplication(app); err != nil {
		return 0, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		h, err := t.application(app)
		if err == nil {
			waited, err = h.Absent(t.now, app, home, number, surely)
		}
		return err
	})
	return waited, err
}

// Accept implements statestore.Homes.
func (s *Store) Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	if err := statestore.CheckLife(app, life); err != nil {
		return err
	}
	return s.change(ctx, false, func(t *txn) error {
		h, err := t.application(app)
		if err == nil {
			err = h.Accept(t.now, app, home, life)
		}
		return err
	})
}

// Forget implements statestore.Homes.
func (s *Store) Forget(
	ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, ttl time.Duration,
) error {
	if err := statestore.CheckApplication(app); err != nil {
		return err
	}
	return s.change(ctx, false, func(t *txn) error {
		h, err := t.application(app)
		if err == nil {
			t.tell(statestore.Change{Kind: statestore.ChangeHome, Application: app})
			err = h.Forget(t.now, app, home, ttl)
		}
		return err
	})
}

// lookAt reads an application's home. An unknown one is an error only in a store that has all homes.
func (s *engine) lookAt(ctx context.Context, app creel.ApplicationID, read func(t *txn, h *homeShard) error) error {
	if statestore.CheckApplication(app) != nil {
		return statestore.NoHome(app)
	}
	return s.look(ctx, func(t *txn) error {
		h, err := t.application(app)
		if err != nil {
			return err
		}
		if err = read(t, h); errors.Is(err, creel.ErrApplicationNotFound) {
			return t.unknown(err)
		}
		return err
	})
}

// AcceptedIn implements statestore.Homes.
func (s *Store) AcceptedIn(ctx context.Context, app creel.ApplicationID) (life int64, err error) {
	err = s.lookAt(ctx, app, func(t *txn, h *homeShard) (err error) {
		life, err = h.AcceptedIn(t.now, app)
		return err
	})
	return life, err
}

// Home implements statestore.Homes.
func (s *Store) Home(ctx context.Context, app creel.ApplicationID) (home creel.SubclusterID, err error) {
	err = s.lookAt(ctx, app, func(t *txn, h *homeShard) (err error) {
		home, err = h.Home(t.now, app)
		return err
	})
	return home, err
}

// Placement implements statestore.Homes.
func (s *Store) Placement(ctx context.Context, app creel.ApplicationID) (placement []byte, err error) {
	err = s.lookAt(ctx, app, func(t *txn, h *homeShard) (err error) {
		placement, err = h.Placement(t.now, app)
		return err
	})
	return placement, err
}

// Ended implements statestore.Homes.
func (s *Store) Ended(ctx context.Context, app creel.ApplicationID) (at time.Time, err error) {
	err = s.lookAt(ctx, app, func(t *txn, h *homeShard) (err error) {
		at, err = h.Ended(t.now, app)
		return err
	})
	return at, err
}

// idsIn parses the names of Hadoop's records, sorted. Others are left out.
func idsIn[ID fmt.Stringer](names []string, parse func(string) (ID, error), compare func(a, b ID) int) []ID {
	var ids []ID
	for _, n := range names {
		if id, err := parse(n); err == nil && id.String() == n {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compare)
	return ids
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

// pageOf lists the ids of a home after a cursor. at reads an id's home; ok: it is valid, and that of the listing.
func pageOf[ID fmt.Stringer, Line any](
	ids []ID, limit int, at func(id ID) (line Line, ok bool, err error),
) (page []Line, next string, err error) {
	last := ""
	for len(ids) > 0 {
		block := ids[:min(len(ids), parallel, max(2*limit, 8))]
		ids = ids[len(block):]
		lines, there := make([]Line, len(block)), make([]bool, len(block))
		err := each(len(block), func(i int) (err error) {
			lines[i], there[i], err = at(block[i])
			return err
		})
		if err != nil {
			return nil, "", err
		}
		for i := range block {
			switch {
			case !there[i]:
			case len(page) == limit:
				return page, last, nil
			default:
				page, last = append(page, lines[i]), block[i].String()
			}
		}
	}
	return page, "", nil
}

// after returns the ids after a cursor, which parse reads.
func after[ID any](ids []ID, cursor string, parse func(string) (ID, error), compare func(a, b ID) int) ([]ID, error) {
	if cursor == "" {
		return ids, nil
	}
	last, err := parse(cursor)
	if err != nil {
		return nil, statestore.BadCursor(cursor)
	}
	return slices.DeleteFunc(ids, func(id ID) bool { return compare(id, last) <= 0 }), nil
}

// HomesAt implements statestore.Homes.
func (s *Store) HomesAt(
	ctx context.Context, member creel.SubclusterID, cursor string, limit int,
) (page []statestore.Home, next string, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	err = s.look(ctx, func(t *txn) error {
		names, err := t.children(s.paths.homes)
		if err != nil {
			return err
		}
		ids, err := after(idsIn(names, creel.ParseApplicationID, creel.ApplicationID.Compare), cursor,
			creel.ParseApplicationID, creel.ApplicationID.Compare)
		if err != nil {
			return err
		}
		page, next, err = pageOf(ids, limit, func(app creel.ApplicationID) (line statestore.Home, ok bool, err error) {
			one := t.apart()
			if is, err := one.homeIn(s.applications(), app.String()); err != nil || is != member {
				return line, false, err
			}
			h, err := one.application(app)
			if err != nil {
				return line, false, err
			}
			list, _, err := h.HomesAt(t.now, member, "", 1)
			if err != nil || len(list) == 0 {
				return line, false, err
			}
			return list[0], true, nil
		})
		return err
	})
	if page == nil && err == nil {
		page = []statestore.Home{}
	}
	return page, next, err
}

// apart is a transaction for reads beside others of this one.
func (t *txn) apart() *txn {
	return &txn{ctx: t.ctx, store: t.store, now: t.now, nodes: map[string]*node{}, writes: map[string]write{}}
}

// homeIn reads the home in Hadoop's record alone.
func (t *txn) homeIn(kind homeKind, id string) (creel.SubclusterID, error) {
	n, err := t.get(kind.hadoop + "/" + id)
	if err != nil {
		return "", err
	}
	return kind.read(n.data)
}

// Sweep implements statestore.Homes.
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
		return t.application(app)
	}
	if booking, err := creel.ParseReservationID(id); err == nil {
		return t.reservation(booking)
	}
	return nil, nil
}

// leftoversEvery is the time between searches of a process for records whose homes Hadoop's programs have deleted.
const leftoversEvery = 10 * time.Minute

// sweepLeftovers deletes creel's records of applications that Hadoop's programs have deleted, and expired tokens.
func (s *engine) sweepLeftovers(ctx context.Context) error {
	last, now := s.swept.Load(), s.cfg.local().UnixMilli()
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

func (t *txn) reservation(id creel.ReservationID) (*homeShard, error) {
	return t.home(t.store.bookings(), id.String(),
		func(s *shard, at time.Time, home creel.SubclusterID, again bool) {
			memory.AdoptReservation(s.State, at, id, home, again)
		})
}

// ClaimReservation implements statestore.Reservations.
func (s *Store) ClaimReservation(
	ctx context.Context, id creel.ReservationID, member creel.SubclusterID,
) (home creel.SubclusterID, fresh bool, err error) {
	if err := statestore.CheckReservation(id); err != nil {
		return "", false, err
	}
	if err := subcluster.ValidID(member); err != nil {
		return "", false, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		if err := t.serves(); err != nil {
			return err
		}
		h, err := t.reservation(id)
		if err == nil {
			home, fresh, err = h.ClaimReservation(t.now, id, member)
		}
		return err
	})
	return home, fresh, err
}

// MoveReservation implements statestore.Reservations.
func (s *Store) MoveReservation(
	ctx context.Context, id creel.ReservationID, from, to creel.SubclusterID,
) (is creel.SubclusterID, err error) {
	if err := statestore.CheckReservation(id); err != nil {
		return "", err
	}
	err = s.change(ctx, true, func(t *txn) error {
		h, err := t.reservation(id)
		if err == nil {
			is, err = h.MoveReservation(t.now, id, from, to)
		}
		return err
	})
	return is, err
}

// ReservationHome implements statestore.Reservations.
func (s *Store) ReservationHome(
	ctx context.Context, id creel.ReservationID,
) (home creel.SubclusterID, err error) {
	if statestore.CheckReservation(id) != nil {
		return "", statestore.NoReservation(id)
	}
	err = s.look(ctx, func(t *txn) error {
		h, err := t.reservation(id)
		if err != nil {
			return err
		}
		if home, err = h.ReservationHome(t.now, id); err != nil {
			return t.unknown(err)
		}
		return nil
	})
	return home, err
}

// ForgetReservation implements statestore.Reservations.
func (s *Store) ForgetReservation(
	ctx context.Context, id creel.ReservationID, home creel.SubclusterID, ttl time.Duration,
) error {
	if err := statestore.CheckReservation(id); err != nil {
		return err
	}
	return s.change(ctx, false, func(t *txn) error {
		h, err := t.reservation(id)
		if err == nil {
			err = h.ForgetReservation(t.now, id, home, ttl)
		}
		return err
	})
}

// ReservationsAt implements statestore.Reservations.
func (s *Store) ReservationsAt(
	ctx context.Context, member creel.SubclusterID, cursor string, limit int,
) (page []statestore.ReservationHome, next string, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	err = s.look(ctx, func(t *txn) error {
		names, err := t.children(s.paths.bookings)
		if err != nil {
			return err
		}
		ids, err := after(idsIn(names, creel.ParseReservationID, creel.ReservationID.Compare), cursor,
			creel.ParseReservationID, creel.ReservationID.Compare)
		if err != nil {
			return err
		}
		type line = statestore.ReservationHome
		page, next, err = pageOf(ids, limit, func(id creel.ReservationID) (one line, ok bool, err error) {
			h, err := t.apart().reservation(id)
			if err != nil {
				return one, false, err
			}
			list, _, err := h.ReservationsAt(t.now, member, "", 1)
			if err != nil || len(list) == 0 {
				return one, false, err
			}
			return list[0], true, nil
		})
		return err
	})
	return page, next, err
}
