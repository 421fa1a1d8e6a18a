// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// Config of a state. Redis and Name are required.
type Config struct {
	Redis  redis.Config
	Name   string        // of the ResourceManager among all that use the prefix
	Holder string        // this process, for messages
	Check  time.Duration // interval in which an idle holder asks whether it still is one; 1 s
	Tail   int           // groups that a holder keeps for followers, about; 0: none, so followers read all entries
	Log    *slog.Logger  // nil: silent
	// Connect and Sleep replace the network and the clock in simulations.
	Connect func() (Server, error)
	Sleep   func(ctx context.Context, d time.Duration) error
}

// Server is the Redis of a state: [redis.Scripts], or a simulated one.
type Server interface {
	Key(tag, name string) string
	Write(ctx context.Context, script *redis.Script, keys []string, args ...any) ([]any, error)
	Read(ctx context.Context, script *redis.Script, keys []string, args ...any) ([]any, error)
	Scan(ctx context.Context, key, cursor string, count int) (part []any, next string, err error)
	Health(ctx context.Context) ([]statestore.Finding, error)
	Close() error
}

const (
	layout    = "1"
	maxQueued = 16 << 20        // bytes of unwritten transactions at which Commit waits
	lastWords = 5 * time.Second // for unwritten transactions after Run's context has ended
	scanCount = 1000
)

// Log is the state as its holder uses it.
type Log struct {
	cfg     Config
	scripts Server
	keys    []string
	epoch   string
	copy    *mirror // of a follower, or nil; for Each
	started atomic.Bool
	// scan is scanPart. Tests interrupt it.
	scan func(ctx context.Context, cursor string) (part []any, next string, err error)

	mu      sync.Mutex // guards the fields below; never locked during a call
	written sync.Cond  // the queued transactions are being written
	queued  []byte     // operations of the next group
	waiting []func(error)
	number  int64 // of the last acknowledged group
	broken  error
	wake    chan struct{}
}

var _ state.Log = (*Log)(nil)

// Open makes this process the holder, and fences the previous one. It waits for Redis until the context ends.
func Open(ctx context.Context, cfg Config) (*Log, error) { return open(ctx, cfg, nil) }

func (c Config) withDefaults() Config {
	c.Check = cmp.Or(c.Check, time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Connect == nil {
		conf := c.Redis
		c.Connect = func() (Server, error) { return redis.OpenScripts(conf) }
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// keysOf returns the keys of meta, of the entries, and of the tail.
func keysOf(scripts Server, name string) []string {
	tag := "rm:" + name
	return []string{scripts.Key(tag, "meta"), scripts.Key(tag, "state"), scripts.Key(tag, "tail")}
}

// open is Open with the copy of a follower, or nil.
func open(ctx context.Context, cfg Config, warm *mirror) (*Log, error) {
	cfg = cfg.withDefaults()
	scripts, err := cfg.Connect()
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, scripts: scripts, copy: warm, wake: make(chan struct{}, 1)}
	l.written.L, l.scan = &l.mu, l.scanPart
	l.keys = keysOf(scripts, cfg.Name)
	list, err := scripts.Write(ctx, openScript, l.keys, layout, cfg.Holder)
	if err == nil {
		err = l.opened(list)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resource manager's state in Redis: %w", err), scripts.Close())
	}
	return l, nil
}

// opened reads the answer of openScript.
func (l *Log) opened(list []any) (err error) {
	if list[0] == "LAYOUT" {
		return fmt.Errorf("it has layout %v, and this creel knows %s: another version wrote it", list[1], layout)
	}
	l.epoch, _ = list[1].(string)
	last, _ := list[2].(string)
	if l.number, err = strconv.ParseInt(last, 10, 64); err != nil {
		return err
	}
	previous, _ := list[3].(string)
	if lost := l.copy.ahead(previous, l.number); lost > 0 {
		l.cfg.Log.Error("the ResourceManager's state in Redis has lost changes that the standby had copied",
			"changes", lost,
			"try", "check the submissions of the latest seconds; set wait=1 in the URL to prevent losses")
	}
	l.copy.continued(previous, l.epoch)
	return nil
}

// Health returns the findings about the deployment that an operator should know.
func (l *Log) Health(ctx context.Context) ([]statestore.Finding, error) { return l.scripts.Health(ctx) }

// Each implements state.Log.
func (l *Log) Each(f func(key string, value []byte) error) error {
	entries, err := l.entries(context.Background())
	if err != nil {
		return fmt.Errorf("resource manager's state in Redis: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if err := f(key, []byte(entries[key])); err != nil {
			return err
		}
	}
	return nil
}

// entries returns the follower's copy, brought up to date, or reads all entries.
func (l *Log) entries(ctx context.Context) (map[string]string, error) {
	m := l.copy
	l.copy = nil
	if m != nil {
		current, err := m.update(ctx, l.scripts, l.keys)
		if err != nil {
			return nil, err
		}
		stored, err := l.count(ctx)
		if err != nil {
			return nil, err
		}
		if current && m.number == l.number && int64(len(m.entries)) == stored {
			return m.entries, nil
		}
		l.cfg.Log.Warn("the standby's copy of the state is not current: all entries are read")
	}
	return readWhole(
		func(cursor string) ([]any, string, error) { return l.scan(ctx, cursor) },
		func() (int64, error) { return l.count(ctx) },
	)
}

func (l *Log) scanPart(ctx context.Context, cursor string) (part []any, next string, err error) {
	return l.scripts.Scan(ctx, l.keys[1], cursor, scanCount)
}

// count returns the number of entries, if this process is still the holder of all groups that it has read.
func (l *Log) count(ctx context.Context) (int64, error) {
	list, err := l.scripts.Write(ctx, countScript, l.keys, l.epoch, l.number)
	if err == nil {
		err = verdict(list, l.epoch, l.number)
	}
	if err != nil {
		return 0, err
	}
	entries, _ := list[1].(int64)
	return entries, nil
}

// Commit implements state.Log.
func (l *Log) Commit(tx *state.Tx, done func(error)) {
	ops := tx.Bytes()
	l.mu.Lock()
	for l.broken == nil && len(l.waiting) > 0 && len(l.queued)+len(ops) > maxQueued {
		l.written.Wait()
	}
	if err := l.broken; err != nil {
		l.mu.Unlock()
		done(err)
		return
	}
	l.queued = append(l.queued, ops...)
	l.waiting = append(l.waiting, done)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Confirm implements state.Log.
func (l *Log) Confirm(ctx context.Context) error {
	l.mu.Lock()
	err, number := l.broken, l.number
	l.mu.Unlock()
	if err != nil {
		return err
	}
	list, err := l.scripts.Write(ctx, confirmScript, l.keys, l.epoch, number)
	if err != nil {
		return fmt.Errorf("resource manager's state in Redis: %w", err)
	}
	return verdict(list, l.epoch, number)
}

// Run implements state.Log.
func (l *Log) Run(ctx context.Context) (err error) {
	if !l.started.CompareAndSwap(false, true) {
		return errors.New("resource manager's state in Redis: Run was called twice")
	}
	defer func() { err = errors.Join(err, l.close(err)) }()
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, giveUp) })()
	tick := time.NewTicker(l.cfg.Check)
	defer tick.Stop()
	for {
		select {
		case <-l.wake:
			err = l.Flush(patient)
		case <-tick.C:
			err = l.Check(patient)
		case <-ctx.Done():
			return l.Flush(patient)
		}
		if err != nil {
			return err
		}
	}
}

// Check is Confirm for an idle holder. While Redis does not answer there is nothing to learn. Only Run and simulations
// call it.
func (l *Log) Check(ctx context.Context) error {
	err := l.Confirm(ctx)
	if errors.Is(err, state.ErrFenced) || errors.Is(err, state.ErrLost) {
		l.fail(err)
		return err
	}
	return nil
}

// Flush makes all queued transactions durable as one group, and calls their done functions. Only Run and simulations
// call it.
func (l *Log) Flush(ctx context.Context) error {
	l.mu.Lock()
	if len(l.waiting) == 0 {
		l.mu.Unlock()
		return nil
	}
	ops, waiting, number := l.queued, l.waiting, l.number+1
	l.queued, l.waiting = nil, nil
	l.written.Broadcast()
	l.mu.Unlock()

	err := l.write(ctx, number, ops)
	if err != nil {
		l.fail(err)
	} else {
		l.mu.Lock()
		l.number = number
		l.mu.Unlock()
	}
	for _, done := range waiting {
		done(err)
	}
	return err
}

// write sends a group until Redis has answered or the context ends.
func (l *Log) write(ctx context.Context, number int64, ops []byte) error {
	args, err := groupArgs(l.epoch, number, l.cfg.Tail, ops)
	if err != nil {
		return err
	}
	var silent time.Time // since when Redis accepts no write
	for {
		list, err := l.scripts.Write(ctx, groupScript, l.keys, args...)
		if err == nil {
			if !silent.IsZero() {
				l.cfg.Log.Warn("the ResourceManager's state in Redis accepts writes again",
					"after", time.Since(silent).Round(time.Millisecond))
			}
			return verdict(list, l.epoch, number-1)
		}
		if silent.IsZero() {
			silent = time.Now()
			l.cfg.Log.Error("the ResourceManager's state in Redis accepts no write: changes wait", "error", err,
				"try", "check that Redis runs, is reachable, and has its replicas")
		}
		if l.cfg.Sleep(ctx, 100*time.Millisecond) != nil { // after an error that Write does not repeat
			return fmt.Errorf("resource manager's state in Redis: %w", err)
		}
	}
}

// fail makes every later transaction fail.
func (l *Log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
	}
	l.written.Broadcast()
}

func (l *Log) close(cause error) error {
	if cause == nil {
		cause = state.ErrClosed
	}
	l.fail(cause)
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	cause = l.broken
	l.mu.Unlock()
	for _, done := range waiting {
		done(cause)
	}
	return l.scripts.Close()
}

// Close implements state.Log.
func (l *Log) Close() error {
	if !l.started.CompareAndSwap(false, true) {
		return errors.New("resource manager's state in Redis: Run closes the log that it ran")
	}
	return l.close(nil)
}
