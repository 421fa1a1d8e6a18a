// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// KeeperStore is the part of the state store that a Keeper needs.
type KeeperStore interface {
	Records(ctx context.Context) (subcluster.Records, error)
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
	DocumentsSince(ctx context.Context, class string, before statestore.DocumentSet) (statestore.DocumentSet, error)
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
}

// Turn runs f in one turn of a ResourceManager, so that nothing is allocated meanwhile.
type Turn func(ctx context.Context, f func(m *rm.Machine, now time.Time)) error

// Keeper drives escrow.Member and escrow.Users. It limits a ResourceManager's queues to their part of federation-wide
// maxima, and their users to their part of user limits.
type Keeper struct {
	ID    creel.SubclusterID
	Epoch int64
	Store KeeperStore
	Turn  Turn
	// Settings, if set, has the queues of the Hadoop ResourceManager on whose behalf this process acts; Turn is not
	// used then.
	Settings Settings
	Every    time.Duration // between rounds: a queue waits this long for a higher cap
	Terms    escrow.Terms
	Recover  time.Duration // time after the start in which containers of the previous epoch may appear
	Log      *slog.Logger  // nil: silent

	Clock pauseclock.LeaseClock // for leases; the zero value works

	Counts KeeperCounts

	queues   map[subcluster.QueueOn]*boundQueue
	users    map[subcluster.QueueOn]*boundUsers
	version  int64                             // of caps sent to the machine
	sets     map[string]statestore.DocumentSet // last read, by class
	records  map[string]readRecord
	started  time.Time
	ctx      context.Context // of Run: the keeper awaits a requested turn until this context ends
	recovers bool            // the machine started with applications of the previous epoch

	// A store that comes back empty has lost the queue tree and the holders of its parts.
	tree    statestore.Document         // last read
	parsed  *rebalancer.Tree            // tree, parsed
	source  string                      // of the store that tree was read from
	holders map[creel.SubclusterID]bool // members with a part, in that store; true: without a lease
	lost    map[creel.SubclusterID]bool // members of the previous store
	adopted time.Time                   // by this process's clock, when another source was read
}

// KeeperCounts are for metrics.
type KeeperCounts struct {
	Rounds, Failed, Writes, Conflicts atomic.Int64
	HeldMB, ShortMB                   atomic.Int64 // over all queues with a maximum
	HotUsers                          atomic.Int64 // with records of their own
}

// boundQueue is one queue with a maximum.
type boundQueue struct {
	member  *escrow.Member
	setting *escrow.Standing // instead of member, with Settings
	maximum creel.Resource
	tree    int64
	request escrow.Request
	renewed time.Time // when the lease in force was asked for
	told    escrow.Request
	seen    bool // still in the tree
}

// Begin prepares for rounds. The turns of rounds are made under ctx.
func (k *Keeper) Begin(ctx context.Context) error {
	k.queues, k.users = map[subcluster.QueueOn]*boundQueue{}, map[subcluster.QueueOn]*boundUsers{}
	k.holders, k.lost = map[creel.SubclusterID]bool{}, map[creel.SubclusterID]bool{}
	k.sets, k.records = map[string]statestore.DocumentSet{}, map[string]readRecord{}
	if k.Log == nil {
		k.Log = slog.New(slog.DiscardHandler)
	}
	k.started, k.ctx = k.Clock.Now(), ctx
	if k.Settings != nil {
		return nil
	}
	return k.Turn(k.ctx, func(m *rm.Machine, _ time.Time) {
		for a := range m.Apps {
			k.recovers = k.recovers || !a.State.Ended()
		}
	})
}

// Run makes rounds until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	if err := k.Begin(ctx); err != nil {
		return nil // the process is stopping
	}
	tick := time.NewTicker(k.Every)
	defer tick.Stop()
	told := ""
	for {
		k.Counts.Rounds.Add(1)
		now := ""
		if err := k.Round(ctx); err != nil && ctx.Err() == nil {
			k.Counts.Failed.Add(1)
			now = err.Error()
		}
		if now != told {
			if told = now; now != "" {
				k.Log.Warn("failed to renew escrow of queues", "subcluster", k.ID, "error", now)
			} else {
				k.Log.Info("escrow of queues renewed again", "subcluster", k.ID)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Round renews the caps of every queue with a maximum or a user limit, in seven steps.
func (k *Keeper) Round(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, max(k.Terms.Lease/3, time.Second))
	defer cancel()
	// 1. Read the queues with a maximum or a user limit.
	if err := k.readTree(limit); err != nil {
		return errors.Join(err, k.force()) // leases still end
	}
	if len(k.queues)+len(k.users) == 0 {
		return nil
	}
	for try := 0; ; try++ {
		// 2. Take the time that leases count from, before anything is read.
		sent := k.Clock.Now()
		// 3. In one turn of the machine: read the use and the cap in force.
		if err := k.ask(limit, sent); err != nil {
			return err
		}
		// 4. Read the records and compute the grants.
		set, err := k.read(limit, rebalancer.EscrowClass)
		if err != nil {
			return errors.Join(err, k.force())
		}
		// 5. Write by compare-and-set. 6. Apply the written grants.
		again, err := k.write(limit, sent, &set)
		if err == nil {
			var more bool
			more, err = k.writeUsers(limit, sent)
			again = again || more
		}
		// 7. Send the caps to the ResourceManager.
		if k.Settings != nil && err == nil {
			err = k.change(limit, sent)
		}
		if failed := k.force(); failed != nil || err != nil {
			return errors.Join(err, failed)
		}
		if !again || try == 4 {
			return nil
		}
	}
}

// read returns a class of documents. In most rounds its version shows that it is unchanged.
func (k *Keeper) read(ctx context.Context, class string) (statestore.DocumentSet, error) {
	set, err := k.Store.DocumentsSince(ctx, class, k.sets[class])
	if err == nil {
		k.sets[class] = set
	}
	return set, err
}

// readRecord is a decoded record with the version of its document.
type readRecord struct {
	version int64
	source  string
	is      *escrow.Record
}

// recordOf returns a copy of a record that the caller may change. Each version is decoded once.
func (k *Keeper) recordOf(doc *statestore.Document, source string) (*escrow.Record, error) {
	r := k.records[doc.Name]
	if r.is == nil || r.version != doc.Version || r.source != source {
		r = readRecord{doc.Version, source, &escrow.Record{}}
		if err := json.Unmarshal(doc.Data, r.is); err != nil {
			return nil, err
		}
		k.records[doc.Name] = r
	}
	return r.is.Clone(), nil
}

// readTree reads the federation's queue tree and updates the queues to keep.
func (k *Keeper) readTree(ctx context.Context) error {
	set, err := k.read(ctx, rebalancer.TreeClass)
	if err != nil {
		return err
	}
	tree := &rebalancer.Tree{}
	d, ok := set.Find(rebalancer.TreeName)
	if set.Source != k.source && k.source != "" {
		k.lost, k.holders, k.adopted = k.holders, map[creel.SubclusterID]bool{}, k.Clock.Now()
	}
	if !ok && k.tree.Version > 0 && set.Source != k.source {
		if d, err = k.restoreTree(ctx, &set); err != nil {
			return err // caps in force stay in force
		}
		ok = true
	}
	if k.parsed == nil || d.Version != k.tree.Version || set.Source != k.source {
		k.parsed = nil
	}
	k.tree, k.source = d, set.Source
	if ok && k.parsed == nil {
		if k.parsed, err = rebalancer.ParseTree(d.Data, d.Version); err != nil {
			return err // caps in force stay in force
		}
	}
	if ok {
		tree = k.parsed
	}
	k.readUsers(tree)
	for _, q := range k.queues {
		q.seen = false
	}
	for _, label := range tree.Pools() {
		for i := range tree.In(label).Queues {
			q := &tree.In(label).Queues[i]
			if !q.Bounded() {
				continue
			}
			x, err := k.keep(subcluster.QueueOn{Queue: q.Path, Label: label}, q.Maximum, tree.Version)
			if err != nil {
				return err
			}
			x.maximum, x.tree, x.seen = q.Maximum, tree.Version, true
		}
	}
	if err := k.readOpportunistic(tree); err != nil {
		return err
	}
	if k.Settings != nil {
		k.lift()
		return nil
	}
	return k.Turn(k.ctx, func(m *rm.Machine, now time.Time) {
		for path, q := range k.queues {
			if !q.seen {
				clearCap(m, now, path)
				delete(k.queues, path)
			}
		}
		for path, x := range k.users {
			if !x.seen {
				clearUserCaps(m, now, path)
				delete(k.users, path)
			}
		}
	})
}

// keep returns the state of a queue with a maximum. The cap of a new one is its present use.
func (k *Keeper) keep(of subcluster.QueueOn, maximum creel.Resource, tree int64) (*boundQueue, error) {
	x := k.queues[of]
	switch {
	case x != nil:
		return x, nil
	case k.Settings != nil:
		x = &boundQueue{setting: &escrow.Standing{
			ID: k.ID, Epoch: k.Epoch, Late: k.Recover, Recover: k.started.Add(k.Recover),
		}}
		k.queues[of] = x
		return x, nil
	}
	x = &boundQueue{member: &escrow.Member{ID: k.ID, Epoch: k.Epoch, Terms: k.Terms}, maximum: maximum, tree: tree}
	if k.recovers {
		x.member.Recover = k.started.Add(k.Recover)
	}
	err := k.Turn(k.ctx, func(m *rm.Machine, now time.Time) {
		uses, _, _ := useOf(m, of)
		x.member.Begin(k.Clock.Now(), uses)
		k.set(m, now, of, x)
	})
	if err != nil {
		return nil, err
	}
	k.queues[of] = x
	return x, nil
}

// restoreTree writes the federation's queue tree into a store that came back without it. The tree is the version read
// last, so maxima removed in it stay removed.
func (k *Keeper) restoreTree(ctx context.Context, set *statestore.DocumentSet) (statestore.Document, error) {
	d, err := k.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Data: k.tree.Data, Author: string(k.ID),
		Comment: "the state store came back without it", Text: k.tree.Text, Keep: statestore.KeptVersions,
		Source: set.Source,
	})
	if err == nil {
		k.Log.Warn("state store lost the federation's queue tree; writing it back",
			"subcluster", k.ID, "version", k.tree.Version, "is", d.Version)
	}
	return d, err
}

// ask makes the requests.
func (k *Keeper) ask(ctx context.Context, sent time.Time) error {
	if k.Settings != nil {
		return k.askSettings(ctx, sent)
	}
	return k.Turn(k.ctx, func(m *rm.Machine, now time.Time) {
		for path, q := range k.queues {
			k.set(m, now, path, q) // an expired lease must end in the machine before the request reports the cap
			uses, needs, has := useOf(m, path)
			q.request = q.member.Ask(sent, uses, needs)
			q.request.Leaves = !has && path.Label != "" // there are no such nodes here
			// The cap in force is the cap at this moment, not at sent.
			q.request.Holds = q.member.Cap(k.Clock.Now()).Min(q.request.Holds)
		}
		k.askUsers(m, now, sent)
	})
}

// write adds the requests to the records. again reports that another member wrote a record first.
func (k *Keeper) write(ctx context.Context, sent time.Time, set *statestore.DocumentSet) (again bool, err error) {
	var members, standing []creel.SubclusterID
	holders := map[creel.SubclusterID]bool{}
	paths := slices.SortedFunc(maps.Keys(k.queues), subcluster.CompareQueueOn)
	for _, path := range paths {
		q := k.queues[path]
		doc, known := set.Find(path.Name())
		record := escrow.NewRecord(path.Queue, q.maximum, q.tree)
		if known {
			if record, err = k.recordOf(&doc, set.Source); err != nil {
				return again, err
			}
		}
		record.Label = path.Label
		if strange := record.Source != set.Source || !known; strange || record.Silent(set.Now) {
			if members == nil {
				if members, standing, err = k.members(ctx); err != nil {
					return again, err
				}
			}
			if path.Label == escrow.Opportunistic { // members running Hadoop's ResourceManager take no part
				record.Adopt(set.Now, set.Source, without(members, standing), nil, k.Terms)
			} else {
				record.Adopt(set.Now, set.Source, members, standing, k.Terms)
			}
			record.Leave(members)
		}
		record.Members(func(id creel.SubclusterID, standing bool) { holders[id] = standing })
		record.Limit(q.maximum, q.tree)
		grant, err := record.Ask(set.Now, q.request, k.Terms)
		if err != nil {
			return again, err
		}
		if known && !k.due(q, sent, grant) {
			continue
		}
		data, err := json.Marshal(record)
		if err != nil {
			return again, err
		}
		_, err = k.Store.PutDocument(ctx, statestore.DocumentWrite{
			Class: rebalancer.EscrowClass, Name: path.Name(), Expect: doc.Version, Data: data,
			Author: string(k.ID), Source: set.Source, Quiet: true,
		})
		switch {
		case errors.Is(err, creel.ErrConflict):
			k.Counts.Conflicts.Add(1)
			again = true
			continue
		case err != nil:
			return again, err
		}
		k.Counts.Writes.Add(1)
		q.granted(sent, grant)
		q.renewed, q.told = sent, q.request
	}
	maps.Copy(k.holders, holders)
	maps.DeleteFunc(k.holders, func(id creel.SubclusterID, _ bool) bool {
		_, holds := holders[id]
		return !holds && len(paths) > 0
	})
	return again, nil
}

// due reports whether a request must be written: it changes the cap, its needs have changed, or a third of the lease
// is over.
func (k *Keeper) due(q *boundQueue, sent time.Time, g escrow.Grant) bool {
	r := &q.request
	return !g.Cap.Equal(r.Holds) || !r.Holds.Equal(q.told.Holds) || !r.Needs.Equal(q.told.Needs) ||
		sent.Sub(q.renewed) >= k.Terms.Lease/3
}

func (q *boundQueue) granted(sent time.Time, g escrow.Grant) {
	if q.setting != nil {
		q.setting.Granted(g)
	} else {
		q.member.Granted(sent, g)
	}
}

// members returns the members of the federation that may have caps, and the members whose caps have no lease.
func (k *Keeper) members(ctx context.Context) (ids, standing []creel.SubclusterID, err error) {
	records, err := k.Store.Records(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[creel.SubclusterID]bool{k.ID: k.Settings != nil}
	if k.Clock.Now().Sub(k.adopted) < k.Terms.Lease {
		maps.Copy(known, k.lost) // they have not registered in this store yet
	}
	for _, m := range records.Members {
		if !m.Deregistered {
			known[m.ID] = m.ByAgent()
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if ids = append(ids, id); known[id] {
			standing = append(standing, id)
		}
	}
	return ids, standing, nil
}

// force sends every present cap to the machine.
func (k *Keeper) force() error {
	if k.Settings != nil {
		return nil // a setting stays unchanged
	}
	held, short, hot := int64(0), int64(0), int64(0)
	err := k.Turn(k.ctx, func(m *rm.Machine, now time.Time) {
		for path, q := range k.queues {
			k.set(m, now, path, q)
			held += q.member.Cap(k.Clock.Now()).MemoryMB
			s, _ := q.member.Short()
			short += s.MemoryMB
		}
		for path, x := range k.users {
			k.setUsers(m, now, path, x)
			for range x.users.Hot {
				hot++
			}
		}
	})
	if err == nil {
		k.Counts.HeldMB.Store(held)
		k.Counts.ShortMB.Store(short)
		k.Counts.HotUsers.Store(hot)
	}
	return err
}

// set sends one queue's cap to the machine. It converts the end of the lease to the machine's clock: the time left is
// the same by both clocks.
func (k *Keeper) set(m *rm.Machine, now time.Time, path subcluster.QueueOn, q *boundQueue) {
	k.version++
	ours := k.Clock.Now()
	cap := q.member.Cap(ours)
	short, reason := q.member.Short()
	if k.recovering() {
		uses, _, _ := useOf(m, path)
		cap, reason = cap.Min(uses), k.untilRecovered()
	}
	setCap(m, now, rm.QueueCap{
		Queue: path.Queue, Label: path.Label, Cap: cap, Until: now.Add(q.member.Ends().Sub(ours)),
		Version: k.version, Maximum: q.maximum, Short: short, Reason: reason,
	})
}

// recovering reports whether there may be containers of the previous epoch that no node has reported yet. They count
// against the cap, so during that time no queue or user with a limit grows.
func (k *Keeper) recovering() bool {
	return k.recovers && k.Clock.Now().Before(k.started.Add(k.Recover))
}

// untilRecovered returns the reason for recovering, as text.
func (k *Keeper) untilRecovered() string {
	return fmt.Sprintf("the ResourceManager was restarted, and for %s after that nodes may report further containers",
		k.Recover)
}
