// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/subcluster/rm/journal"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// durability is the state with the responses that wait for it. Only the owner uses it, except for reported and
// failed.
type durability struct {
	log  state.Log        // nil: nothing is saved
	disk *journal.Journal // log, if it is a journal on this machine's disk
	tx   state.Tx         // of this turn

	reported atomic.Uint64 // last transaction reported durable by the journal
	failed   atomic.Pointer[error]
	waits    atomic.Int64 // transactions not durable yet
	moved    atomic.Int64 // time at which waits last rose from 0 or fell, ns since 1970
}

// JournalWait returns the time for which the journal has made no progress with pending transactions, 0 if none are
// pending. kept reports whether there is a journal.
func (s *Server) JournalWait() (wait time.Duration, kept bool) {
	d := &s.durability
	if d.log == nil {
		return 0, false
	}
	if d.waits.Load() == 0 {
		return 0, true
	}
	return time.Since(time.Unix(0, d.moved.Load())), true
}

// open opens the state, and makes this process its holder.
func (d *durability) open(cfg *Config, roomChanged func(journal.Room)) (err error) {
	if cfg.State != nil {
		d.log, err = cfg.State()
		return err
	}
	if d.disk, err = journal.Open(cfg.Dir, journal.Options{RoomObserve: roomChanged}); err == nil {
		d.log = d.disk
	}
	return err
}

// confirmTime limits the wait for the confirmation of a shared state after a pause.
const confirmTime = 10 * time.Second

// confirm returns an error if this process cannot know that it still holds its state. During a pause another process
// may have opened it, so nothing may be answered before.
func (d *durability) confirm() error {
	if d.log == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), confirmTime)
	defer cancel()
	if err := d.log.Confirm(ctx); err != nil {
		return fmt.Errorf("resource manager: after a pause: %w", err)
	}
	return nil
}

// fail ends the server, because it can no longer make its responses durable.
func (s *Server) fail(err error) {
	s.durability.failed.CompareAndSwap(nil, &err)
	s.box.poke()
}

// commit passes this turn's saves to the journal, as one transaction with this number, unless it is 0.
func (s *Server) commit(number uint64) {
	d := &s.durability
	if number > 0 {
		if d.waits.Add(1) == 1 {
			d.moved.Store(time.Now().UnixNano())
		}
		d.log.Commit(&d.tx, func(err error) {
			d.moved.Store(time.Now().UnixNano())
			d.waits.Add(-1)
			if err != nil {
				d.failed.CompareAndSwap(nil, &err)
			} else {
				d.reported.Store(number) // transactions become durable in order
			}
			s.box.poke()
		})
	}
	d.tx.Reset()
}

// commitStart makes the record of this start durable before any client can see the start. On a full disk without a
// reserve it waits, because an end would only lead to another start.
func (s *Server) commitStart(ctx context.Context) error {
	done := make(chan error, 1)
	s.durability.log.Commit(&s.durability.tx, func(err error) { done <- err })
	defer s.durability.tx.Reset()
	minutes := time.NewTicker(time.Minute)
	defer minutes.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return nil
		case <-minutes.C:
			if !s.JournalRoom().Waits {
				return errors.New("resource manager: the journal did not answer for a minute")
			}
			s.log.Error("the ResourceManager cannot start serving: its journal disk is full",
				"dir", s.cfg.Dir, "try", freeRoom)
		}
	}
}
