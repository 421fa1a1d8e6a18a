// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// Mark is the key of a state whose import or deletion has not ended.
const Mark = "importing"

// groupBytes is the size at which changes become a transaction.
const groupBytes = 1 << 20

// Export writes all entries to a file. from names the state in the file's header. It returns the number of entries.
func Export(l state.Log, w io.Writer, from string, now time.Time) (entries int, err error) {
	f, err := newWriter(w, from, now)
	if err != nil {
		return 0, err
	}
	err = l.Each(func(key string, value []byte) error {
		if key == Mark {
			return errors.New("an import into this state, or its deletion, did not end: it has a part of the entries only")
		}
		return f.entry(key, value)
	})
	if err != nil {
		return 0, err
	}
	return f.n, f.end()
}

// Import fills an empty state, or one whose import has not ended, from a file. It closes the log, and returns the
// number of entries.
func Import(ctx context.Context, l state.Log, file io.ReadSeeker) (entries int, err error) {
	old, err := fillable(l)
	if err == nil {
		_, err = read(file, func(key string, _ []byte) error {
			if key == Mark {
				return errors.New("it is of an import that did not end")
			}
			return nil
		})
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return 0, errors.Join(err, l.Close())
	}
	return entries, fill(ctx, l, old, func(put func(key string, value []byte) error) error {
		entries, err = read(file, put)
		return err
	})
}

// Fill is Import from entries in memory. It closes the log.
func Fill(ctx context.Context, l state.Log, entries map[string][]byte) error {
	old, err := fillable(l)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return fill(ctx, l, old, func(put func(key string, value []byte) error) error {
		for key, value := range entries {
			if err := put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// fillable returns the keys of a state that may be filled: it is empty, or a previous import did not end.
func fillable(l state.Log) ([]string, error) {
	old, err := keys(l)
	if err == nil && len(old) > 0 && !slices.Contains(old, Mark) {
		err = fmt.Errorf("the state has %d entries: only an empty one can be filled", len(old))
	}
	return old, err
}

// fill replaces the entries by those that source puts.
func fill(
	ctx context.Context, l state.Log, old []string, source func(put func(key string, value []byte) error) error,
) error {
	return change(ctx, l, func(c *changes) error {
		if err := c.clear(old); err != nil {
			return err
		}
		err := source(func(key string, value []byte) error {
			c.tx.Put(key, value)
			return c.grown()
		})
		if err == nil {
			err = c.flush()
		}
		if err == nil {
			c.tx.Delete(Mark)
		}
		return err
	})
}

// RemoveApplication deletes an application with its attempts. It closes the log, and returns the number of entries;
// zero if the state does not have the application.
func RemoveApplication(ctx context.Context, l state.Log, app creel.ApplicationID) (entries int, err error) {
	return remove(ctx, l, func(key string) bool { return turn.IsOf(key, app) })
}

// Format deletes all entries. It closes the log, and returns their number. Like Import it marks the state meanwhile.
func Format(ctx context.Context, l state.Log) (entries int, err error) {
	old, err := keys(l)
	if err != nil {
		return 0, errors.Join(err, l.Close())
	}
	return len(old), change(ctx, l, func(c *changes) error {
		if err := c.clear(old); err != nil {
			return err
		}
		c.tx.Delete(Mark)
		return nil
	})
}

func remove(ctx context.Context, l state.Log, which func(key string) bool) (int, error) {
	all, err := keys(l)
	all = slices.DeleteFunc(all, func(key string) bool { return !which(key) })
	if err != nil || len(all) == 0 {
		return 0, errors.Join(err, l.Close())
	}
	return len(all), change(ctx, l, func(c *changes) error {
		for _, key := range all {
			if err := c.remove(key); err != nil {
				return err
			}
		}
		return nil
	})
}

func keys(l state.Log) (out []string, err error) {
	err = l.Each(func(key string, _ []byte) error {
		out = append(out, key)
		return nil
	})
	return out, err
}

// changes collects operations, and makes them durable in transactions of about groupBytes.
type changes struct {
	l  state.Log
	tx state.Tx
}

// change runs the log while f makes changes, and returns after the last one is durable.
func change(ctx context.Context, l state.Log, f func(*changes) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	c := &changes{l: l}
	err := f(c)
	if err == nil {
		err = c.flush()
	}
	stop()
	return errors.Join(err, <-ended)
}

// clear marks the state, and deletes all other keys.
func (c *changes) clear(keys []string) error {
	c.tx.Put(Mark, nil)
	for _, key := range keys {
		if key == Mark {
			continue
		}
		if err := c.remove(key); err != nil {
			return err
		}
	}
	return c.flush()
}

func (c *changes) remove(key string) error {
	c.tx.Delete(key)
	return c.grown()
}

func (c *changes) grown() error {
	if len(c.tx.Bytes()) < groupBytes {
		return nil
	}
	return c.flush()
}

func (c *changes) flush() error {
	if c.tx.Len() == 0 {
		return nil
	}
	durable := make(chan error, 1)
	c.l.Commit(&c.tx, func(err error) { durable <- err })
	c.tx.Reset()
	return <-durable
}
