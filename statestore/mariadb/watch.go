// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel/statestore/nodes"
)

// pollEvery is the time between reads of the nodes that are watched.
const pollEvery = 500 * time.Millisecond

// polls are the watched nodes. One goroutine reads all of them while there are any.
type polls struct {
	mu      sync.Mutex
	watches []*watch
	running bool
	ctx     context.Context
	end     context.CancelFunc
	ended   sync.WaitGroup
}

type watch struct {
	ctx     context.Context
	path    string
	version int64
	changed chan struct{}
}

func newPolls() *polls {
	p := &polls{}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Watch implements nodes.Tree.
func (t *tree) Watch(ctx context.Context, path string) ([]byte, *nodes.Stat, <-chan struct{}, error) {
	data, stat, err := t.Get(ctx, path)
	if err != nil {
		return nil, nil, nil, err
	}
	w := &watch{ctx, path, stat.Version, make(chan struct{})}
	p := t.polls
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches = append(p.watches, w)
	if !p.running && p.ctx.Err() == nil {
		p.running = true
		p.ended.Go(t.poll)
	}
	return data, stat, w.changed, nil
}

func (p *polls) close() {
	p.end()
	p.ended.Wait()
}

// poll reads the watched nodes until there are none.
func (t *tree) poll() {
	p := t.polls
	for {
		select {
		case <-time.After(pollEvery):
		case <-p.ctx.Done():
			return
		}
		versions, err := t.versions(p.ctx)
		p.mu.Lock()
		kept := p.watches[:0]
		for _, w := range p.watches {
			switch {
			case w.ctx.Err() != nil:
			case err == nil && versions[w.path] != w.version:
				close(w.changed)
			default:
				kept = append(kept, w)
			}
		}
		p.watches = kept
		if len(kept) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// versions reads the versions of the feeds.
func (t *tree) versions(ctx context.Context) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	rows, err := t.db.QueryContext(ctx, "SELECT path, version FROM creel_nodes WHERE parent = ?", []byte(feed))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	versions := map[string]int64{}
	for rows.Next() {
		var path string
		var version int64
		if err := rows.Scan(&path, &version); err != nil {
			return nil, err
		}
		versions[path] = version
	}
	return versions, rows.Err()
}

// feed is the parent of all nodes that are watched.
const feed = own + "feed"
