// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strconv"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// journal is what is durable of a ResourceManager: the bytes that the daemon
// writes.
type journal struct {
	epochs  int64
	entries map[string][]byte
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

// put makes a transaction durable.
func (j *journal) put(t transaction) {
	for _, w := range t {
		if w.value == nil {
			delete(j.entries, w.key)
		} else {
			j.entries[w.key] = w.value
		}
	}
}

// replay reads everything, as the next epoch finds it.
func (j *journal) replay(into *turn.Records) (*rm.Recover, error) {
	for _, key := range slices.Sorted(maps.Keys(j.entries)) {
		if _, err := into.Read(key, j.entries[key]); err != nil {
			return nil, err
		}
	}
	return into.Recovered(), nil
}

// app returns an application as a restart would find it.
func (j *journal) app(id creel.ApplicationID) (rm.AppRecord, bool) {
	return j.read(turn.AppKey(id))
}

// attempt returns an attempt as a restart would find it.
func (j *journal) attempt(id creel.AttemptID) (rm.AttemptRecord, bool) {
	a, _ := j.read(turn.AppKey(id.Application), turn.AttemptKey(id))
	for _, t := range a.Attempts {
		if t.ID == id {
			return t, true
		}
	}
	return rm.AttemptRecord{}, false
}

// disowned returns the claim up to which an application is refused, 0 for none.
func (j *journal) disowned(id creel.ApplicationID) int64 {
	claim, _ := strconv.ParseInt(string(j.entries["disowned/"+id.String()]), 10, 64) // none is 0
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
