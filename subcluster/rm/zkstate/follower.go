// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// Follower is the copy of a state that another process holds.
type Follower struct {
	cfg   Config
	tree  tree
	paths paths

	mu    sync.Mutex // of the copy; locked during calls
	copy  *mirror    // nil: all nodes must be read
	reads int        // times that all nodes were read
}

var _ state.Follower = (*Follower)(nil)

// NewFollower makes a follower, which connects in the background.
func NewFollower(cfg Config) (*Follower, error) {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithTimeout(context.Background(), cfg.Servers.Timeout)
	defer cancel()
	t, err := cfg.connect(ctx, cfg.Servers)
	if err != nil {
		return nil, failed(err)
	}
	return &Follower{cfg: cfg, tree: t, paths: pathsOf(cfg.Parent)}, nil
}

// maxReads limits how often a follower begins again because the holder has removed nodes meanwhile.
const maxReads = 5

// Follow implements state.Follower.
func (f *Follower) Follow(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for range maxReads {
		if err = f.follow(ctx); !errors.Is(err, zk.ErrNoNode) {
			break
		}
		f.copy = nil // the holder has removed a node before it was read
	}
	return failed(err)
}

func (f *Follower) follow(ctx context.Context) error {
	h, stat, err := headOf(ctx, f.tree, f.paths)
	if errors.Is(err, zk.ErrNoNode) {
		f.copy = nil
		return nil // there is no state yet
	}
	if err != nil {
		return err
	}
	if !f.copy.continues(stat.Czxid, h) {
		f.copy = newMirror(stat.Czxid, h)
		f.reads++
	}
	return f.copy.read(ctx, f.tree, f.paths, h)
}

// Lead implements state.Follower.
func (f *Follower) Lead(ctx context.Context) (state.Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	warm := f.copy
	f.copy = nil
	l, err := open(ctx, f.cfg, warm)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Close implements state.Follower.
func (f *Follower) Close() error {
	f.tree.close()
	return nil
}

// InUse waits for three times as long as an idle holder waits between its writes. It returns the holder's name if there
// was a write, and "" if the state has no running holder. It takes nothing from a holder.
func InUse(ctx context.Context, cfg Config) (holder string, err error) {
	cfg = cfg.withDefaults()
	t, err := cfg.connect(ctx, cfg.Servers)
	if err != nil {
		return "", failed(err)
	}
	defer t.close()
	p := pathsOf(cfg.Parent)
	look := func() (holder string, written int64, err error) {
		err = repeat(ctx, func() error {
			name, at, err := t.get(ctx, p.holder)
			if err != nil {
				return err
			}
			_, changed, err := t.get(ctx, p.state)
			if err != nil {
				return err
			}
			holder, written = string(name), max(at.Mzxid, changed.Mzxid)
			return nil
		})
		if errors.Is(err, zk.ErrNoNode) {
			return "", 0, nil
		}
		return holder, written, err
	}
	_, before, err := look()
	if err != nil || before == 0 {
		return "", failed(err)
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(3 * cfg.Check):
	}
	holder, now, err := look()
	if err != nil || now == before {
		return "", failed(err)
	}
	return holder, nil
}
