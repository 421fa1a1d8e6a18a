// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
)

// A member's list of thousands of applications is megabytes, of which nothing may have changed since a moment ago.
// Creel's ResourceManagers identify such a list by a tag (an entity tag by HTTP, yarnrpc.WithListKnown by RPC), and
// if a request carries the current tag they answer only that it is unchanged. So a router stores for a moment the
// members' lists, and the whole list that it made of them. Members are asked each time: they decide what is
// unchanged, and for which user. Hadoop's send no tags, and their lists are not stored (BenchmarkLongLists of
// e2e/federation).

// How much is stored, and for how long after a member sent it: members themselves answer with the same list for no
// longer than a second.
const (
	listKept  = 2 * time.Second
	listsMost = 64
	listBytes = 128 << 20
)

// Lists are members' answers to questions for long lists, cut into values of type T, and
// the whole lists made of them.
type Lists[T any] struct {
	// Last is how long a member's last part replaces its answer while it does not answer; 0: such a list is without
	// it. It is set before use.
	Last time.Duration

	mu    sync.Mutex
	lists map[string]*keptList[T]
	bytes int
}

// ListPart is a member's part of a list.
type ListPart[T any] struct {
	Value T      // read only
	Tag   string // the member's; empty: it sent none
	Bytes int    // the approximate memory that it takes
	Held  bool   // it was sent before, and the member confirmed it
	// Late is why the member did not answer, where this is its last part, and Age how old that is.
	Late error
	Age  time.Duration

	at time.Time // when the member sent it, or confirmed it
}

// keptList is the stored data of one question.
type keptList[T any] struct {
	parts map[creel.SubclusterID]ListPart[T]
	whole []byte
	of    []string // members and tags of the parts of the whole
	bytes int
	last  time.Time // when a member sent its part
}

// Part returns a member's part of the list for a question. ask gets the tag of the stored one, "" for none, and
// returns the member's list, or that tag alone if the member confirms it.
func (l *Lists[T]) Part(
	question string, member creel.SubclusterID, ask func(tag string) (ListPart[T], error),
) (ListPart[T], error) {
	known := l.known(question, member) // it may be gone when the member has answered
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

// Lately puts the last parts of members that did not answer in their place. A rejection is an answer.
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

// Old returns the members whose parts are their last ones, and the ages of these.
func Old[T any](parts []router.Part[ListPart[T]]) (old []router.MissingMember) {
	for i := range parts {
		if p := &parts[i]; p.Value.Late != nil {
			ago := p.Value.Age.Round(time.Second).String() + " ago"
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

// confirm notes that a part is unchanged at the member, if its last part may be used.
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

// Whole returns the list made of these parts if all of them are stored ones: the stored list, or the one that made
// returns, which is stored then. It returns nil if a member sent its part just now: such a list may be out of date
// before it is asked for again, and is quicker written piece by piece. If the client has gone, no list is made, and the
// error is the context's.
func (l *Lists[T]) Whole(
	ctx context.Context, question string, parts []router.Part[ListPart[T]], made func() []byte,
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
	whole := made()
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.room(question, len(whole)); k != nil {
		l.grow(k, len(whole)-len(k.whole))
		k.whole, k.of = whole, of
	}
	return whole, nil
}

// room returns the stored data of a question, once there is space for so many bytes more; nil if they are too many.
// Under mu.
func (l *Lists[T]) room(question string, bytes int) *keptList[T] {
	if bytes > listBytes/2 {
		return nil
	}
	k := l.lists[question]
	if l.bytes+bytes > listBytes || k == nil && len(l.lists) >= listsMost {
		clear(l.lists) // those that are still asked for come back
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

// drop deletes the stored data of a question, when it is old enough.
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
