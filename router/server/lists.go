// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router"
)

// A member's list of thousands of applications has megabytes, and often has not changed since the last request.
// Creel's ResourceManagers identify such a list by a tag (an entity tag by HTTP, yarnrpc.WithListKnown by RPC). If a
// request has the current tag, they answer only that the list is unchanged. So a router caches for a short time the
// members' lists, and the whole list made of them. It asks the members each time: they decide whether a list is
// unchanged, for each user. Hadoop's ResourceManagers send no tags, and their lists are not cached
// (BenchmarkLongLists of e2e/federation). The bytes of an application are in memory once: when the whole list is made,
// the parts point into it.

// Limits of size and age of the cache. Members themselves answer with the same list for at most a second.
const (
	listKept  = 2 * time.Second
	listsMost = 64
	listBytes = 128 << 20
)

// Lists caches members' answers to requests for long lists, as values of type T, and the whole lists made of them.
type Lists[T any] struct {
	// Last is the time for which a member's last part replaces its answer while the member does not answer; 0: the
	// list is without that part. It is set before use.
	Last time.Duration

	mu    sync.Mutex
	lists map[string]*keptList[T]
	bytes int
}

// ListPart is a member's part of a list.
type ListPart[T any] struct {
	Value T      // read only
	Tag   string // from the member; empty: it sent none
	Bytes int    // approximate size in memory
	Held  bool   // it was cached, and the member confirmed it
	// Late is set if this is the last part of a member that did not answer: the reason. Age is the age of the part.
	Late error
	Age  time.Duration

	at time.Time // time when the member sent or confirmed it
}

// keptList is the cached data of one request.
type keptList[T any] struct {
	parts map[creel.SubclusterID]ListPart[T]
	whole []byte
	of    []string // members and tags of the parts of whole
	bytes int
	last  time.Time // last time when a member sent a part
}

// Part returns a member's part of the list for a request. ask gets the tag of the cached part, "" for none. It
// returns the member's list, or only that tag if the member confirms it.
func (l *Lists[T]) Part(
	question string, member creel.SubclusterID, ask func(tag string) (ListPart[T], error),
) (ListPart[T], error) {
	known := l.known(question, member) // it may be dropped before the member answers
	p, err := ask(known.Tag)
	switch {
	case err != nil, p.Tag == "" && l.Last == 0:
		return p, err
	case p.Tag != "" && p.Tag == known.Tag:
		l.confirm(question, member, p.Tag)
		known.Held = true
		return known, nil
	}
	l.keep(question, member, p)
	return p, nil
}

// Lately replaces the errors of members that did not answer by their last parts. A rejection is an answer.
func (l *Lists[T]) Lately(question string, parts []router.Part[ListPart[T]]) {
	for i := range parts {
		p := &parts[i]
		if l.Last == 0 || !errors.Is(p.Err, creel.ErrUnavailable) && !errors.Is(p.Err, ErrLost) {
			continue
		}
		last := l.known(question, p.Member)
		if age := time.Since(last.at); !last.at.IsZero() && age < l.Last {
			last.Late, last.Age = p.Err, age
			p.Value, p.Err = last, nil
		}
	}
}

// Old returns the members with Late parts, and the ages of these parts.
func Old[T any](parts []router.Part[ListPart[T]]) (old []router.MissingMember) {
	for i := range parts {
		if p := &parts[i]; p.Value.Late != nil {
			ago := units.Age(p.Value.Age.Seconds()) + " ago"
			old = append(old, router.MissingMember{Member: p.Member, Reason: ago})
		}
	}
	return old
}

func (l *Lists[T]) known(question string, member creel.SubclusterID) (p ListPart[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.lists[question]; k != nil {
		p = k.parts[member]
	}
	return p
}

func (l *Lists[T]) keep(question string, member creel.SubclusterID, p ListPart[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.room(question, p.Bytes); k != nil {
		l.grow(k, p.Bytes-k.parts[member].Bytes)
		k.last = time.Now()
		p.at = k.last
		k.parts[member] = p
	}
}

// confirm records that a part is unchanged at the member. It is needed only if Last is set.
func (l *Lists[T]) confirm(question string, member creel.SubclusterID, tag string) {
	if l.Last == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.lists[question]; k != nil && k.parts[member].Tag == tag {
		p := k.parts[member]
		p.at, k.last = time.Now(), time.Now()
		k.parts[member] = p
	}
}

// Made is a whole list made of parts.
type Made[T any] struct {
	Whole []byte
	// Share, if set, returns a part whose items point into Whole, and the bytes of those that do not.
	Share func(part T) (shared T, own int)
}

// Copies has the places of items in a list that was made of them, by the address of the item. Codecs make Made.Share
// of it. The nil map records nothing.
type Copies map[*byte][]byte

// Add records the place of an item.
func (c Copies) Add(item, place []byte) {
	if c != nil && len(item) > 0 {
		c[&item[0]] = place[:len(item):len(item)]
	}
}

// Of returns the place of an item. An item without one, such as a report that was merged with others, is copied, since
// it would otherwise hold the member's whole answer in memory. own is the length of the copy.
func (c Copies) Of(item []byte) (place []byte, own int) {
	if len(item) == 0 {
		return nil, 0
	}
	if place, ok := c[&item[0]]; ok && len(place) == len(item) {
		return place, 0
	}
	return bytes.Clone(item), len(item)
}

// Whole returns the whole list if all parts were cached: the cached list, or the result of made, which is then
// cached. It returns nil if a member just sent its part. Such a list may be out of date before the next request, and
// writing it part by part is faster. If the client has gone, no list is made, and the error is the context's.
func (l *Lists[T]) Whole(
	ctx context.Context, question string, parts []router.Part[ListPart[T]], made func() Made[T],
) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	of := make([]string, 0, 2*len(parts))
	for i := range parts {
		p := &parts[i]
		if p.Err != nil {
			continue
		}
		if !p.Value.Held {
			return nil, nil
		}
		of = append(of, string(p.Member), p.Value.Tag)
	}
	l.mu.Lock()
	if k := l.lists[question]; k != nil && k.whole != nil && slices.Equal(k.of, of) {
		defer l.mu.Unlock()
		return k.whole, nil
	}
	l.mu.Unlock()
	list := made()
	shared := share(parts, list)
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.room(question, len(list.Whole)); k != nil {
		l.grow(k, len(list.Whole)-len(k.whole))
		k.whole, k.of = list.Whole, of
		for _, p := range shared {
			if is, ok := k.parts[p.Member]; ok && is.Tag == p.Value.Tag {
				l.grow(k, p.Value.Bytes-is.Bytes)
				is.Value, is.Bytes = p.Value.Value, p.Value.Bytes
				k.parts[p.Member] = is
			}
		}
	}
	return list.Whole, nil
}

// share returns the parts that point into a whole list, none if it has no Share.
func share[T any](parts []router.Part[ListPart[T]], list Made[T]) (shared []router.Part[ListPart[T]]) {
	if list.Share == nil {
		return nil
	}
	for _, p := range parts {
		if p.Err == nil {
			p.Value.Value, p.Value.Bytes = list.Share(p.Value.Value)
			shared = append(shared, p)
		}
	}
	return shared
}

// room returns the cached data of a request, after making space for more bytes; nil if they are too many. The caller
// must have mu.
func (l *Lists[T]) room(question string, bytes int) *keptList[T] {
	if bytes > listBytes/2 {
		return nil
	}
	k := l.lists[question]
	if l.bytes+bytes > listBytes || k == nil && len(l.lists) >= listsMost {
		clear(l.lists) // lists still in use are cached again
		l.bytes, k = 0, nil
	}
	if k == nil {
		k = &keptList[T]{parts: map[creel.SubclusterID]ListPart[T]{}, last: time.Now()}
		if l.lists == nil {
			l.lists = map[string]*keptList[T]{}
		}
		l.lists[question] = k
		time.AfterFunc(l.keeps(), func() { l.drop(question, k) })
	}
	return k
}

func (l *Lists[T]) keeps() time.Duration { return max(listKept, l.Last) }

func (l *Lists[T]) grow(k *keptList[T], bytes int) {
	k.bytes += bytes
	l.bytes += bytes
}

// drop deletes the cached data of a request if it is old enough.
func (l *Lists[T]) drop(question string, k *keptList[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists[question] != k {
		return
	}
	if left := time.Until(k.last.Add(l.keeps())); left > 0 {
		time.AfterFunc(left, func() { l.drop(question, k) })
		return
	}
	delete(l.lists, question)
	l.bytes -= k.bytes
}
