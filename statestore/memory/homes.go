// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// homeTable keeps the homes of one kind of id, ordered for listings.
type homeTable[ID homeID] struct {
	homeIDs[ID]
	of     map[ID]homeEntry
	at     map[creel.SubclusterID][]ID // each sorted by compare
	ending []homeExpiry[ID]            // sorted by time, then id

	denials map[ID]*denials // of homes that cannot disown; removed with the home
}

type homeEntry struct {
	home          creel.SubclusterID
	number        int64     // of the newest claim or move, from 1
	claimed, ends time.Time // ends is zero while it lives
	ended         time.Time // the home reported the end; zero: it has not
	life          int64     // of the home that accepted it; 0: not recorded
	placement     []byte    // from the claim or the move; never modified
}

type homeExpiry[ID homeID] struct {
	at time.Time
	id ID
}

func newHomeTable[ID homeID](ids homeIDs[ID]) homeTable[ID] {
	return homeTable[ID]{
		homeIDs: ids, of: map[ID]homeEntry{}, at: map[creel.SubclusterID][]ID{}, denials: map[ID]*denials{},
	}
}

// find returns the entry that is valid at now; expired entries are not valid.
func (t *homeTable[ID]) find(now time.Time, id ID) (homeEntry, bool) {
	p, ok := t.of[id]
	if ok && !p.ends.IsZero() && !now.Before(p.ends) {
		return homeEntry{}, false
	}
	return p, ok
}

// claim returns the home and the number of this claim, 1 if it made the record.
func (t *homeTable[ID]) claim(
	now time.Time,
	id ID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64) {
	if p, ok := t.find(now, id); ok {
		p.number++
		t.of[id] = p
		return p.home, p.number
	}
	t.drop(id) // an expired entry is replaced
	delete(t.denials, id)
	t.put(id, homeEntry{
		home: member, number: 1, claimed: now.Truncate(time.Second), placement: slices.Clone(placement),
	})
	return member, 1
}

func (t *homeTable[ID]) put(id ID, p homeEntry) {
	t.of[id] = p
	list := t.at[p.home]
	i, ok := slices.BinarySearchFunc(list, id, t.compare)
	if !ok {
		t.at[p.home] = slices.Insert(list, i, id)
	}
	if !p.ends.IsZero() {
		e := homeExpiry[ID]{p.ends, id}
		i, _ := slices.BinarySearchFunc(t.ending, e, t.compareEnds)
		t.ending = slices.Insert(t.ending, i, e)
	}
}

func (t *homeTable[ID]) drop(id ID) {
	p, ok := t.of[id]
	if !ok {
		return
	}
	delete(t.of, id)
	list := t.at[p.home]
	if i, ok := slices.BinarySearchFunc(list, id, t.compare); ok {
		t.at[p.home] = slices.Delete(list, i, i+1)
	}
	if len(t.at[p.home]) == 0 {
		delete(t.at, p.home)
	}
	if !p.ends.IsZero() {
		if i, ok := slices.BinarySearchFunc(t.ending, homeExpiry[ID]{p.ends, id}, t.compareEnds); ok {
			t.ending = slices.Delete(t.ending, i, i+1)
		}
	}
}

func (t *homeTable[ID]) compareEnds(a, b homeExpiry[ID]) int {
	if c := a.at.Compare(b.at); c != 0 {
		return c
	}
	return t.compare(a.id, b.id)
}

// move is the compare-and-set: moved reports whether it changed the home, ok whether the home is now to. A number of 0
// matches every number.
func (t *homeTable[ID]) move(
	now time.Time,
	id ID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (is creel.SubclusterID, moved, ok bool) {
	p, found := t.find(now, id)
	switch {
	case !found:
		return "", false, false
	case p.home == to && number == 0:
		return to, false, true
	case p.home != from, number != 0 && p.number != number:
		return p.home, false, false
	}
	t.drop(id)
	delete(t.denials, id)
	p.home, p.ended, p.life = to, time.Time{}, 0
	p.number++
	p.placement = slices.Clone(placement)
	t.put(id, p)
	return to, true, true
}

// forget sets the record's end, never later than an end already set.
func (t *homeTable[ID]) forget(
	now time.Time,
	id ID,
	home creel.SubclusterID,
	ttl time.Duration,
) (is creel.SubclusterID, ok bool) {
	p, found := t.find(now, id)
	if !found {
		return "", true
	}
	if p.home != home {
		return p.home, false
	}
	ends := now.Add(ttl).Truncate(time.Millisecond)
	if p.ended.IsZero() && ttl > 0 {
		p.ended = now.Truncate(time.Millisecond)
		t.of[id] = p
	}
	if !p.ends.IsZero() && p.ends.Before(ends) {
		return home, true
	}
	t.drop(id)
	p.ends = ends
	t.put(id, p)
	return home, true
}

// accept records the life of the home. It returns the current home.
func (t *homeTable[ID]) accept(now time.Time, id ID, home creel.SubclusterID, life int64) (is creel.SubclusterID) {
	p, ok := t.find(now, id)
	if ok && p.home == home {
		p.life = max(p.life, life)
		t.of[id] = p
	}
	return p.home
}

// page lists entries after the id (or from the first), skipping expired ones.
func (t *homeTable[ID]) page(now time.Time, member creel.SubclusterID, after *ID, limit int) (ids []ID, more bool) {
	list := t.at[member]
	i := 0
	if after != nil {
		var ok bool
		if i, ok = slices.BinarySearchFunc(list, *after, t.compare); ok {
			i++
		}
	}
	for ; i < len(list); i++ {
		if _, ok := t.find(now, list[i]); !ok {
			continue
		}
		if len(ids) == limit {
			return ids, true
		}
		ids = append(ids, list[i])
	}
	return ids, false
}

// over removes and returns at most limit expired ids.
func (t *homeTable[ID]) over(now time.Time, limit int) []ID {
	var gone []ID
	for len(gone) < limit && len(t.ending) > 0 && !now.Before(t.ending[0].at) {
		gone = append(gone, t.ending[0].id)
		delete(t.denials, t.ending[0].id)
		t.drop(t.ending[0].id)
	}
	return gone
}

// adopt records the home that another program set in the same store. It counts as a claim if there was none, else as
// a move. again: the record was deleted and made again since.
func (t *homeTable[ID]) adopt(now time.Time, id ID, home creel.SubclusterID, again bool) {
	p, ok := t.of[id]
	if ok && p.home == home && !again {
		return
	}
	t.lose(id)
	if !ok {
		p.claimed = now.Truncate(time.Second)
	}
	t.put(id, homeEntry{home: home, number: p.number + 1, claimed: p.claimed})
}

// lose removes the home that another program removed from the same store.
func (t *homeTable[ID]) lose(id ID) {
	t.drop(id)
	delete(t.denials, id)
}
