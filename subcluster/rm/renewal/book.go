// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"container/heap"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
)

// Pauses between failed attempts. They double from the first to the last.
const (
	firstPause = 10 * time.Second
	lastPause  = 10 * time.Minute
)

// Book has the tokens of running applications and the times of their renewals. It is not safe for concurrent use.
type Book struct {
	tokens map[string]*held
	apps   map[creel.ApplicationID][]*held
	due    byTime // those that are neither being renewed nor settled
}

// held is a token.
type held struct {
	token    token.Token
	holders  int
	keep     bool // a holder does not want it cancelled
	next     time.Time
	expires  time.Time // zero before the first renewal
	failures int
	place    int // in due; -1: not there
}

// NewBook makes an empty Book.
func NewBook() *Book {
	return &Book{tokens: map[string]*held{}, apps: map[creel.ApplicationID][]*held{}}
}

// keyOf identifies a token.
func keyOf(t token.Token) string { return t.Kind + "\n" + t.Service + "\n" + string(t.Identifier) }

// Hold adds the tokens of an application. New ones are due at once, because their expiry is unknown. cancel reports
// whether the application wants them cancelled at its end. An application is added once.
func (b *Book) Hold(now time.Time, app creel.ApplicationID, tokens []token.Token, cancel bool) {
	if _, ok := b.apps[app]; ok || len(tokens) == 0 {
		return
	}
	mine := make([]*held, 0, len(tokens))
	named := map[string]bool{}
	for _, t := range tokens {
		key := keyOf(t)
		if named[key] {
			continue
		}
		named[key] = true
		h := b.tokens[key]
		if h == nil {
			h = &held{token: t, next: now}
			b.tokens[key] = h
			heap.Push(&b.due, h)
		}
		h.holders++
		h.keep = h.keep || !cancel
		mine = append(mine, h)
	}
	b.apps[app] = mine
}

// Release removes an application, and returns the tokens to cancel.
func (b *Book) Release(app creel.ApplicationID) (cancel []token.Token) {
	for _, h := range b.apps[app] {
		if h.holders--; h.holders > 0 {
			continue
		}
		delete(b.tokens, keyOf(h.token))
		if h.place >= 0 {
			heap.Remove(&b.due, h.place)
		}
		if !h.keep {
			cancel = append(cancel, h.token)
		}
	}
	delete(b.apps, app)
	return cancel
}

// Due returns a token to renew now. The caller reports the result by Renewed, Failed or Rejected.
func (b *Book) Due(now time.Time) (token.Token, bool) {
	if len(b.due) == 0 || b.due[0].next.After(now) {
		return token.Token{}, false
	}
	h := heap.Pop(&b.due).(*held)
	return h.token, true
}

// Next returns the time at which a token is due; ok is false if there is none.
func (b *Book) Next() (at time.Time, ok bool) {
	if len(b.due) == 0 {
		return time.Time{}, false
	}
	return b.due[0].next, true
}

// Renewed notes the new expiry of a token. It is a time of the server's clock, which is compared with this machine's:
// the protocol has no interval. The clocks of a realm differ by less than the permitted skew, and a tenth of the time
// is left. last reports that the token cannot be extended any more, since its maximum lifetime is reached.
func (b *Book) Renewed(now time.Time, t token.Token, expires time.Time) (last bool) {
	h := b.tokens[keyOf(t)]
	if h == nil || h.place >= 0 {
		return false // its applications have ended
	}
	last = !h.expires.IsZero() && !expires.After(h.expires)
	h.expires, h.failures = expires, 0
	if last || !expires.After(now) {
		return true
	}
	b.again(h, now.Add(max(expires.Sub(now)*9/10, time.Second)))
	return false
}

// Failed notes that a server did not answer.
func (b *Book) Failed(now time.Time, t token.Token) {
	h := b.tokens[keyOf(t)]
	if h == nil || h.place >= 0 {
		return
	}
	pause := min(firstPause<<min(h.failures, 10), lastPause)
	h.failures++
	b.again(h, now.Add(pause))
}

func (b *Book) again(h *held, at time.Time) {
	h.next = at
	heap.Push(&b.due, h)
}

// Len returns the number of tokens.
func (b *Book) Len() int { return len(b.tokens) }

// byTime is a heap of tokens, the next one first.
type byTime []*held

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].next.Before(q[j].next) }
func (q byTime) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *byTime) Push(x any) {
	h := x.(*held)
	h.place = len(*q)
	*q = append(*q, h)
}
func (q *byTime) Pop() any {
	old := *q
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	h.place = -1
	return h
}
