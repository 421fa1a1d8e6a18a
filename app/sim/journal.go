// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	files "github.com/creelrm/creel/subcluster/rm/journal"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// journal is a ResourceManager's durable state: the daemon's bytes, in the format of its files.
type journal struct {
	epochs  int64
	started time.Time         // time of the newest start
	entries map[string][]byte // the decoded bytes, for the auditor
	image   files.Image
	rnd     *rand.Rand // draws the remains of a crash
}

// write is one entry of a transaction; nil bytes delete it.
type write struct {
	key   string
	value []byte
}

// transaction implements turn.Tx.
type transaction []write

func (t *transaction) Put(key string, value []byte) { *t = append(*t, write{key, value}) }
func (t *transaction) Delete(key string)            { *t = append(*t, write{key: key}) }
func (t *transaction) Len() int                     { return len(*t) }

// tx returns the transaction in the form of the daemon's journal.
func (t transaction) tx() *state.Tx {
	var tx state.Tx
	for _, w := range t {
		if w.value == nil {
			tx.Delete(w.key)
		} else {
			tx.Put(w.key, w.value)
		}
	}
	return &tx
}

// put makes a transaction durable.
func (j *journal) put(t transaction) {
	j.image.Write(j.image.Block(t.tx()), true)
	for _, w := range t {
		if w.value == nil {
			delete(j.entries, w.key)
		} else {
			j.entries[w.key] = w.value
		}
	}
}

// tear writes the remains of transactions in flight together at a crash: some of their bytes, followed by zeros or by
// nothing.
func (j *journal) tear(under []commit) {
	if len(under) == 0 {
		return
	}
	var txs []*state.Tx
	for _, c := range under[:1+j.rnd.IntN(len(under))] {
		txs = append(txs, c.tx())
	}
	block := j.image.Block(txs...)
	cut := j.rnd.IntN(len(block))
	if whole := block[cut:]; j.rnd.IntN(2) == 0 && bytes.ContainsFunc(whole, func(r rune) bool { return r != 0 }) {
		clear(whole) // the file was already longer, and these pages were not written
		cut = len(block)
	}
	j.image.Write(block[:cut], false)
}

// compactFrom is the size from which a start compacts a journal.
const compactFrom = 1 << 20

// replay reads all entries, as the next epoch would.
func (j *journal) replay(into *turn.Records) (*rm.Recover, error) {
	entries, err := j.image.Open()
	if err != nil {
		return nil, err
	}
	if !maps.EqualFunc(entries, j.entries, bytes.Equal) {
		return nil, fmt.Errorf("the journal has %d entries, and %d are durable", len(entries), len(j.entries))
	}
	var all transaction
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, err := into.Read(key, entries[key]); err != nil {
			return nil, err
		}
		all.Put(key, entries[key])
	}
	if j.image.Len() > compactFrom {
		j.image.Compact(all.tx())
	}
	return into.Recovered(), nil
}

// app returns an application as after a restart.
func (j *journal) app(id creel.ApplicationID) (rm.AppRecord, bool) {
	return j.read(turn.AppKey(id))
}

// attempt returns an attempt as after a restart.
func (j *journal) attempt(id creel.AttemptID) (rm.AttemptRecord, bool) {
	a, _ := j.read(turn.AppKey(id.Application), turn.AttemptKey(id))
	for _, t := range a.Attempts {
		if t.ID == id {
			return t, true
		}
	}
	return rm.AttemptRecord{}, false
}

// disowned returns the claim up to which an application is rejected, 0 for none.
func (j *journal) disowned(id creel.ApplicationID) int64 {
	claim, _ := strconv.ParseInt(string(j.entries["disowned/"+id.String()]), 10, 64) // 0 for none
	return claim
}

func (j *journal) read(keys ...string) (rm.AppRecord, bool) {
	var r turn.Records
	for _, key := range keys {
		if value := j.entries[key]; value != nil {
			if _, err := r.Read(key, value); err != nil {
				return rm.AppRecord{}, false
			}
		}
	}
	if a := r.Recovered().Apps; len(a) > 0 {
		return a[0], true
	}
	return rm.AppRecord{}, false
}
