// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// fake is a ZooKeeper in memory.
type fake struct {
	nodes   map[string][]byte
	changed map[string]int64
	writes  int64
	left    int // writes that succeed, if positive; -1: all
	onGet   func(path string)
}

func newFake() *fake {
	return &fake{nodes: map[string][]byte{}, changed: map[string]int64{}, left: -1}
}

var errCut = errors.New("the connection was cut")

func (f *fake) write() error {
	if f.left == 0 {
		return errCut
	}
	f.left--
	f.writes++
	return nil
}

func (f *fake) Get(_ context.Context, p string) ([]byte, int64, error) {
	if f.onGet != nil {
		f.onGet(p)
	}
	data, found := f.nodes[p]
	if !found {
		return nil, 0, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
	}
	return data, f.changed[p], nil
}

func (f *fake) Children(_ context.Context, p string) (names []string, err error) {
	if _, found := f.nodes[p]; !found {
		return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
	}
	for other := range f.nodes {
		if other != p && path.Dir(other) == p {
			names = append(names, path.Base(other))
		}
	}
	return names, nil
}

func (f *fake) Make(ctx context.Context, p string) error {
	if p == "/" {
		return nil
	}
	if err := f.Make(ctx, path.Dir(p)); err != nil {
		return err
	}
	if _, found := f.nodes[p]; !found {
		f.nodes[p] = nil
	}
	return nil
}

func (f *fake) Create(_ context.Context, nodes []zkstate.Node) error {
	if err := f.write(); err != nil {
		return err
	}
	for _, n := range nodes {
		_, above := f.nodes[path.Dir(n.Path)]
		if _, found := f.nodes[n.Path]; found || !above && path.Dir(n.Path) != "/" {
			return fmt.Errorf("%s cannot be made", n.Path)
		}
		f.nodes[n.Path] = n.Data
		f.changed[path.Dir(n.Path)] = f.writes
	}
	return nil
}

func (f *fake) Set(_ context.Context, n zkstate.Node) error {
	if err := f.write(); err != nil {
		return err
	}
	f.nodes[n.Path] = n.Data
	return nil
}

func (f *fake) Delete(_ context.Context, p string) error {
	if err := f.write(); err != nil {
		return err
	}
	for other := range f.nodes {
		if strings.HasPrefix(other, p+"/") {
			return fmt.Errorf("%s is not empty", p)
		}
	}
	delete(f.nodes, p)
	f.changed[path.Dir(p)] = f.writes
	return nil
}
