// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Queues are a queue tree and the rules that choose a submission's queue.
type Queues struct {
	Spec      queues.Spec
	Placement queues.Placement // nil: the queue named in the submission
}

// MutableQueues configures changes of the queues by calls (yarn.scheduler.configuration.store.class). Its functions
// may be called by any goroutine.
type MutableQueues struct {
	// Kept stores changes in the journal, which must exist, so that they survive the process.
	Kept bool
	// File reads the properties used before the first change, and after a format.
	File func() (map[string]string, error)
	// Parse makes queues from properties, or returns all errors in the properties.
	Parse func(map[string]string) (Queues, error)
	// QueueAdmins lets a queue's administrators change it; otherwise only the cluster's administrators may.
	QueueAdmins bool
	// History is the number of remembered changes, which can be undone; yarn.scheduler.configuration.store.max-logs,
	// 1000.
	History int
}

// ConfChange is one change of the queues' configuration by a call.
type ConfChange struct {
	Version int64              `json:"version"` // configuration version after the change
	Time    int64              `json:"time"`    // ms since 1970
	User    string             `json:"user"`
	What    string             `json:"what"` // update, format or undo
	Keys    []queueconf.Change `json:"keys"`
}

// confState is the configuration at one version. It is immutable.
type confState struct {
	version int64
	values  map[string]string
	history []*ConfChange // oldest first
}

// schedConf is the configuration that calls may change.
type schedConf struct {
	mu    sync.Mutex // one change at a time; locked while the journal writes
	state atomic.Pointer[confState]
}

// Keys of the journal. Each property is a separate entry, so that a change writes only changed properties.
const (
	keyConf        = "conf/"
	keyConfVersion = keyConf + "version"
	keyConfValue   = keyConf + "p/" // conf/p/<name>: the value
	keyConfChange  = keyConf + "c/" // conf/c/<version>: a ConfChange
)

func confChangeKey(version int64) string { return fmt.Sprintf("%s%020d", keyConfChange, version) }

// storedConf is the configuration in the journal.
type storedConf struct {
	version int64 // 0: the journal has none
	values  map[string]string
	history []*ConfChange // sorted by key
}

func (k *storedConf) read(key string, value []byte) error {
	if key == keyConfVersion {
		n, err := strconv.ParseInt(string(value), 10, 64)
		k.version = n
		return err
	}
	if name, ok := strings.CutPrefix(key, keyConfValue); ok {
		if k.values == nil {
			k.values = map[string]string{}
		}
		k.values[name] = string(value)
		return nil
	}
	if !strings.HasPrefix(key, keyConfChange) {
		return fmt.Errorf("key %q is unknown: a newer version wrote the journal", key)
	}
	c := &ConfChange{}
	if err := json.Unmarshal(value, c); err != nil {
		return err
	}
	k.history = append(k.history, c)
	return nil
}

// openConf loads the queues' configuration from the journal before the machine exists, or starts with the files'
// configuration.
func (s *Server) openConf(k *storedConf, mc *rm.Config) error {
	c := s.cfg.Mutable
	switch {
	case c == nil || !c.Kept:
		if k.version > 0 {
			s.log.Warn("queue changes by calls are not in force: the journal has them, but another store is configured",
				"setting", "yarn.scheduler.configuration.store.class", "version", k.version,
				"try", "set it to fs to apply them")
		}
		if c == nil {
			return nil
		}
	case s.durability.log == nil:
		return errors.New("resource manager: a stored queue configuration needs a journal")
	case k.version > 0:
		q, err := c.Parse(k.values)
		if err != nil {
			return &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "cannot restore the queue configuration of the journal",
				Why:  err.Error(),
				Try: "undo the settings that changed since, or set " +
					"yarn.scheduler.configuration.store.class=file to use the queues of the files",
			}
		}
		mc.Queues, mc.Placement = q.Spec, q.Placement
		s.conf.state.Store(&confState{version: k.version, values: k.values, history: k.history})
		return nil
	}
	values, err := c.File()
	if err != nil {
		return err
	}
	first := &confState{version: 1, values: values}
	if c.Kept {
		s.putConf(&confState{}, first, queueconf.Difference(nil, values))
	}
	s.conf.state.Store(first)
	return nil
}

// putConf adds the changes between two states to this turn's transaction.
func (s *Server) putConf(from, to *confState, changes []queueconf.Change) {
	tx := &s.durability.tx
	tx.Put(keyConfVersion, strconv.AppendInt(nil, to.version, 10))
	for _, c := range changes {
		if c.New == nil {
			tx.Delete(keyConfValue + c.Name)
		} else {
			tx.Put(keyConfValue+c.Name, []byte(*c.New))
		}
	}
	for _, h := range from.history {
		if !slices.Contains(to.history, h) {
			tx.Delete(confChangeKey(h.Version))
		}
	}
	for _, h := range to.history { // after the deletions, because a format restarts the numbers
		if slices.Contains(from.history, h) {
			continue
		}
		value, err := json.Marshal(h)
		if err != nil {
			s.fail(err)
		}
		tx.Put(confChangeKey(h.Version), value)
	}
}

// QueuesMutable reports whether calls may change the queues' configuration.
func (s *Server) QueuesMutable() bool { return s.cfg.Mutable != nil }

// QueuesConf returns the properties of the queues in force, and their version; nil if calls may not change them. The
// map must not be changed.
func (s *Server) QueuesConf() (map[string]string, int64) {
	c := s.conf.state.Load()
	if c == nil {
		return nil, 0
	}
	return c.values, c.version
}

// QueuesHistory returns the remembered changes, oldest first. They must not be changed.
func (s *Server) QueuesHistory() []*ConfChange {
	if c := s.conf.state.Load(); c != nil {
		return c.history
	}
	return nil
}

// ValidateQueues returns the properties after a mutation, or the error that would reject it. It changes nothing.
func (s *Server) ValidateQueues(ctx context.Context, m *queueconf.Mutation) (map[string]string, error) {
	if s.cfg.Mutable == nil {
		return nil, immutable()
	}
	now := s.conf.state.Load()
	changes, err := m.Changes(now.values)
	if err != nil {
		return nil, err
	}
	values := queueconf.With(now.values, changes)
	_, err = s.checkQueues(ctx, values)
	return values, err
}

// MutateQueues makes a whole change of the queues' configuration, or none. It returns when the change is durable and
// in force.
func (s *Server) MutateQueues(ctx context.Context, who Caller, m *queueconf.Mutation) error {
	return s.changeConf(ctx, who, "update", m.String(), func() error { return s.mayMutate(ctx, who, m) },
		func(now *confState) (*confState, []queueconf.Change, error) {
			changes, err := m.Changes(now.values)
			return now, changes, err
		})
}

// FormatQueues restores the configuration of the files. Its version is then 1, and all earlier changes are deleted;
// only the format itself is remembered.
func (s *Server) FormatQueues(ctx context.Context, who Caller) error {
	return s.changeConf(ctx, who, "format", "", func() error { return s.mayMutateAll(who) },
		func(now *confState) (*confState, []queueconf.Change, error) {
			values, err := s.cfg.Mutable.File()
			if err != nil {
				return nil, nil, codec.Invalid("the queues could not be read: %v", err)
			}
			return &confState{values: now.values}, queueconf.Difference(now.values, values), nil
		})
}

// UndoQueues undoes the change with a version, if none of its settings has changed since.
func (s *Server) UndoQueues(ctx context.Context, who Caller, version int64) error {
	return s.changeConf(ctx, who, "undo", "version "+strconv.FormatInt(version, 10),
		func() error { return s.mayMutateAll(who) },
		func(now *confState) (*confState, []queueconf.Change, error) {
			for _, h := range now.history {
				if h.Version == version {
					changes, err := queueconf.Undo(now.values, h.Keys)
					return now, changes, err
				}
			}
			return nil, nil, &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: fmt.Sprintf("no change has version %d", version),
				Try:  "list the remembered changes with /api/v1/scheduler-conf/changes",
			}
		})
}

func immutable() error {
	return &creel.Error{
		Kind: creel.ErrNotEnabled,
		What: "the queues come from files",
		Try:  "set yarn.scheduler.configuration.store.class to fs or memory for calls to change them",
	}
}

// notAdmin returns YARN's error for a caller without permission for a mutation.
func notAdmin() error {
	return &creel.Error{Kind: creel.ErrNotPermitted, What: "User is not admin of all modified queues."}
}

func (s *Server) mayMutateAll(who Caller) error {
	if s.access.learn(who.User); !s.access.isAdmin(who.User) {
		return notAdmin()
	}
	return nil
}

// mayMutate applies the configured policy. It checks the administrators of an existing queue, for a missing queue
// those of the nearest existing ancestor.
func (s *Server) mayMutate(ctx context.Context, who Caller, m *queueconf.Mutation) error {
	if !s.cfg.Mutable.QueueAdmins || len(m.Global) > 0 {
		if err := s.mayMutateAll(who); err != nil || !s.cfg.Mutable.QueueAdmins {
			return err
		}
	}
	groups := s.access.groups.Of(who.User)
	var may bool
	err := s.Query(ctx, func(machine *rm.Machine, _ time.Time) {
		may = true
		for _, path := range m.Queues() {
			for {
				if _, known := machine.Queue(path); known {
					break
				}
				i := strings.LastIndexByte(path, '.')
				if i < 0 {
					break
				}
				path = path[:i]
			}
			may = may && machine.MayAdminister(path, who.User, groups)
		}
	})
	if err == nil && !may {
		err = notAdmin()
	}
	return err
}

// refused is the error for a configuration that cannot be in force, with YARN's words before it.
func refused(err error) error {
	return codec.Invalid("Failed to re-init queues : %s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// checkQueues makes queues from properties, if they could be in force now.
func (s *Server) checkQueues(ctx context.Context, values map[string]string) (Queues, error) {
	q, err := s.cfg.Mutable.Parse(values)
	if err == nil {
		asked := s.Query(ctx, func(m *rm.Machine, _ time.Time) { err = m.CheckQueues(q.Spec) })
		if asked != nil {
			return q, asked
		}
	}
	if err != nil {
		return q, refused(err)
	}
	return q, nil
}

// changeConf makes one change. of receives the configuration in force and returns the state that the change starts
// from, and the change. An invalid change is rejected before anything is written; a valid one is written before it is
// in force. If the queues have changed meanwhile and reject it, the previous configuration is written again.
func (s *Server) changeConf(ctx context.Context, who Caller, what, target string, may func() error,
	of func(now *confState) (from *confState, changes []queueconf.Change, err error)) (err error) {
	if s.cfg.Mutable == nil {
		return immutable()
	}
	defer func() { s.Audit(who, "scheduler-conf "+what, target, err) }()
	if err := may(); err != nil {
		return err
	}
	s.conf.mu.Lock()
	defer s.conf.mu.Unlock()
	now := s.conf.state.Load()
	from, changes, err := of(now)
	if err != nil {
		return err
	}
	next := &confState{version: from.version + 1, values: queueconf.With(now.values, changes), history: from.history}
	q, err := s.checkQueues(ctx, next.values)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		next.history = append(next.history[:len(next.history):len(next.history)], &ConfChange{
			Version: next.version, Time: time.Now().UnixMilli(), User: who.User, What: what, Keys: changes,
		})
		if over := len(next.history) - max(s.cfg.Mutable.History, 1); over > 0 {
			next.history = next.history[over:]
		}
	}
	// From here on, the change is made or not made as a whole, even if the caller leaves.
	ctx = context.WithoutCancel(ctx)
	if err := s.writeConf(ctx, now, next, changes); err != nil {
		return err
	}
	if err := s.setQueues(ctx, q); err != nil {
		if back := s.writeConf(ctx, next, now, queueconf.Difference(next.values, now.values)); back != nil {
			err = errors.Join(err, back)
		}
		return refused(err)
	}
	s.conf.state.Store(next)
	return nil
}

// writeConf saves the change and returns when it is durable.
func (s *Server) writeConf(ctx context.Context, from, to *confState, changes []queueconf.Change) error {
	if !s.cfg.Mutable.Kept {
		return nil
	}
	_, err := Do(ctx, s, Caller{}, Op[struct{}]{
		durable: true, grows: true,
		Run: func(*rm.Machine, time.Time) func() (struct{}, error) {
			s.putConf(from, to, changes)
			return Done(struct{}{})
		},
	})
	return err
}

// setQueues puts queues in force.
func (s *Server) setQueues(ctx context.Context, q Queues) error {
	return s.order(ctx, func(m *rm.Machine, now time.Time) error {
		if err := m.ReloadQueues(now, q.Spec); err != nil {
			return err
		}
		m.PlaceBy(q.Placement)
		return nil
	})
}

// mutableRefresh rejects a refresh from files while calls may change the queues, as YARN does.
func mutableRefresh() error {
	return yarnrpc.Throw(yarnrpc.ClassYarn, &creel.Error{
		Kind: creel.ErrNotEnabled,
		What: "java.io.IOException: Scheduler configuration is mutable. refreshQueues is not allowed in this scenario.",
		Try:  "change the queues with yarn schedulerconf, or return to the files with yarn schedulerconf -format",
	})
}
