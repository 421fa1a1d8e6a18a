// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
)

// Pauses between failed attempts. They double from the first to the last.
const (
	firstPause = 10 * time.Second
	lastPause  = 10 * time.Minute
)

// Act is a call about a token.
type Act int

// These are the calls.
const (
	Renew  Act = iota
	Obtain     // another token of the same kind and service, for a user
	Cancel
)

// Job is a call that is due.
type Job struct {
	Act   Act
	Token token.Token
	User  string // of Obtain
}

// App is an application with its tokens.
type App struct {
	ID   creel.ApplicationID
	User string
	// Tokens are all tokens in its credentials, by alias. Renew reports whether the ResourceManager renews one.
	Tokens []token.AliasedToken
	Renew  func(token.Token) bool
	// Cancel reports whether the application wants its tokens cancelled at its end.
	Cancel bool
}

// Book has the tokens of running applications and the times of their calls. It is not safe for concurrent use.
type Book struct {
	// Obtains reports whether tokens of a kind are replaced when they cannot be renewed; nil: none are.
	Obtains func(kind string) bool
	// Default has the kind and the service of the token that each application needs; zero: there is none.
	Default token.Token

	tokens  map[string]*held
	apps    map[creel.ApplicationID]*application
	due     byTime
	cancels []token.Token // due at once
}

// application is an application with its tokens.
type application struct {
	App
	held   []*held
	system bool  // it has a token that was obtained here
	end    *task // of an application that has ended
}

// held is a token.
type held struct {
	token    token.Token
	holders  map[creel.ApplicationID]*application
	keep     bool      // a holder does not want it cancelled
	expires  time.Time // zero before the first renewal
	most     time.Time // its maximum lifetime ends; zero: unknown
	obtained bool      // here, not by a client
	renew    *task
	replace  map[string]*task // by user; nil: it is renewed
	at       time.Time        // of its replacement
}

// task is something to do at a time: renew or replace a token, or remove an ended application.
type task struct {
	of       *held
	act      Act
	user     string
	app      creel.ApplicationID // if of is nil
	next     time.Time
	failures int
	place    int // in due; -1: not there
}

// NewBook makes an empty Book.
func NewBook() *Book {
	return &Book{tokens: map[string]*held{}, apps: map[creel.ApplicationID]*application{}}
}

// keyOf identifies a token.
func keyOf(t token.Token) string { return t.Kind + "\n" + t.Service + "\n" + string(t.Identifier) }

// Hold adds an application. New tokens are due at once, because their expiry is unknown. An application without a
// token of the default service gets one. An application is added once.
func (b *Book) Hold(now time.Time, app App) {
	if _, ok := b.apps[app.ID]; ok {
		return
	}
	a := &application{App: app}
	needs := b.Default.Kind != "" && b.obtains(b.Default.Kind)
	for _, t := range app.Tokens {
		if t.Token.Kind == b.Default.Kind {
			needs = false
		}
		if app.Renew(t.Token) {
			b.add(now, a, t.Token)
		}
	}
	if needs {
		h := b.add(now, a, b.Default)
		b.want(h, app.User, now, 0)
	}
	if len(a.held) > 0 {
		b.apps[app.ID] = a
	}
}

// add makes an application hold a token.
func (b *Book) add(now time.Time, a *application, t token.Token) *held {
	key := keyOf(t)
	h := b.tokens[key]
	if h == nil {
		h = &held{token: t, holders: map[creel.ApplicationID]*application{}, most: endOf(t)}
		h.renew = &task{of: h, act: Renew, next: now, place: -1}
		b.tokens[key] = h
		if len(t.Identifier) > 0 {
			heap.Push(&b.due, h.renew)
		}
	}
	if h.holders[a.ID] != nil {
		return h
	}
	h.holders[a.ID] = a
	h.keep = h.keep || !a.Cancel
	a.held = append(a.held, h)
	if h.replace != nil {
		b.want(h, a.User, h.at, h.renew.failures)
	}
	return h
}

// want schedules the replacement of a token for a user.
func (b *Book) want(h *held, user string, at time.Time, failures int) {
	if h.replace == nil {
		h.replace, h.at = map[string]*task{}, at
	}
	if h.replace[user] == nil {
		h.replace[user] = &task{of: h, act: Obtain, user: user, next: at, failures: failures}
		heap.Push(&b.due, h.replace[user])
	}
}

// obtains reports whether tokens of a kind are replaced.
func (b *Book) obtains(kind string) bool { return b.Obtains != nil && b.Obtains(kind) }

// End removes an application that has ended, after a delay in which nodes upload its logs. Then its tokens are
// cancelled. removed reports that it was removed at once.
func (b *Book) End(now time.Time, app creel.ApplicationID, delay time.Duration) (removed bool) {
	a := b.apps[app]
	switch {
	case a == nil || a.end != nil:
		return false
	case delay <= 0:
		b.remove(a, true)
		return true
	}
	a.end = &task{app: app, next: now.Add(delay)}
	heap.Push(&b.due, a.end)
	return false
}

// KeepAlive delays the removal of an ended application whose logs a node still uploads.
func (b *Book) KeepAlive(now time.Time, app creel.ApplicationID, delay time.Duration) {
	if a := b.apps[app]; a != nil && a.end != nil {
		a.end.next = now.Add(delay)
		heap.Fix(&b.due, a.end.place)
	}
}

// Forget removes an application that continues elsewhere: its tokens are not cancelled.
func (b *Book) Forget(app creel.ApplicationID) {
	if a := b.apps[app]; a != nil {
		b.remove(a, false)
	}
}

func (b *Book) remove(a *application, cancel bool) {
	delete(b.apps, a.ID)
	b.drop(a.end)
	for _, h := range a.held {
		delete(h.holders, a.ID)
		if len(h.holders) > 0 {
			continue
		}
		b.discard(h)
		if cancel && !h.keep && len(h.token.Identifier) > 0 {
			b.cancels = append(b.cancels, h.token)
		}
	}
}

// discard removes a token without holders.
func (b *Book) discard(h *held) {
	delete(b.tokens, keyOf(h.token))
	b.drop(h.renew)
	for _, t := range h.replace {
		b.drop(t)
	}
}

// drop removes a task that is due.
func (b *Book) drop(t *task) {
	if t != nil && t.place >= 0 {
		heap.Remove(&b.due, t.place)
	}
}

// Due returns a call to make now. The caller reports the result of Renew by Renewed, Rejected or Failed, that of Obtain
// by Obtained or Failed.
func (b *Book) Due(now time.Time) (Job, bool) {
	for {
		if n := len(b.cancels); n > 0 {
			t := b.cancels[n-1]
			b.cancels = b.cancels[:n-1]
			return Job{Act: Cancel, Token: t}, true
		}
		if len(b.due) == 0 || b.due[0].next.After(now) {
			return Job{}, false
		}
		t := heap.Pop(&b.due).(*task)
		if t.of != nil {
			return Job{Act: t.act, Token: t.of.token, User: t.user}, true
		}
		b.remove(b.apps[t.app], true)
	}
}

// Next returns the time at which something is due; ok is false if nothing is.
func (b *Book) Next() (at time.Time, ok bool) {
	if len(b.due) == 0 {
		return time.Time{}, false
	}
	return b.due[0].next, true
}

// renewing returns a token whose renewal has a result, nil if its applications have ended.
func (b *Book) renewing(t token.Token) *held {
	h := b.tokens[keyOf(t)]
	if h == nil || h.renew.place >= 0 || h.replace != nil {
		return nil
	}
	return h
}

// Renewed notes the new expiry of a token. It is a time of the server's clock, which is compared with this machine's:
// the protocol has no interval. The clocks of a realm differ by less than the permitted skew, and a tenth of the time
// is left. last reports that the token cannot be extended any more, since its maximum lifetime is reached, and that no
// other one replaces it.
func (b *Book) Renewed(now time.Time, t token.Token, expires time.Time) (last bool) {
	h := b.renewing(t)
	if h == nil {
		return false
	}
	left := expires.Sub(now)
	last = left <= 0 || !h.expires.IsZero() && !expires.After(h.expires)
	// A renewal that adds less than an eighth is not worth its call: with the default of a day these are Hadoop's three
	// hours. So a token is replaced with time for more than one attempt.
	near := !h.most.IsZero() && h.most.Sub(expires) <= left/8
	h.expires, h.renew.failures = expires, 0
	at := now.Add(max(left*9/10, time.Second))
	if (last || near) && b.obtains(t.Kind) {
		b.replaceAll(h, at)
		return false
	}
	if !last {
		b.again(h.renew, at)
	}
	return last
}

// Rejected notes that a token cannot be renewed at its server. replaced reports that another one is obtained. The
// server may reject this one, too, so a token obtained here is replaced after a pause.
func (b *Book) Rejected(now time.Time, t token.Token) (replaced bool) {
	if !b.obtains(t.Kind) {
		return false
	}
	if h := b.renewing(t); h != nil {
		if h.obtained {
			now = now.Add(pause(h.renew.failures))
			h.renew.failures++
		}
		b.replaceAll(h, now)
	}
	return true
}

func (b *Book) replaceAll(h *held, at time.Time) {
	for _, a := range h.holders {
		b.want(h, a.User, at, h.renew.failures)
	}
}

// Obtained notes the token that replaces a job's one in the applications of the job's user. The old one is not
// cancelled: their running containers may still use it.
func (b *Book) Obtained(now time.Time, job Job, fresh token.Token) {
	h := b.tokens[keyOf(job.Token)]
	if h == nil || h.replace[job.User] == nil || h.replace[job.User].place >= 0 {
		b.cancels = append(b.cancels, fresh) // its applications have ended
		return
	}
	if keyOf(fresh) == keyOf(job.Token) { // the server would return it again
		b.Failed(now, job)
		return
	}
	failures := h.replace[job.User].failures
	delete(h.replace, job.User)
	for id, a := range h.holders {
		if a.User != job.User {
			continue
		}
		delete(h.holders, id)
		a.held = slices.DeleteFunc(a.held, func(o *held) bool { return o == h })
		a.replace(h.token, fresh)
		n := b.add(now, a, fresh)
		n.obtained, n.renew.failures = true, failures
	}
	if len(h.holders) == 0 {
		b.discard(h)
	}
}

// replace changes the application's tokens. A token keeps its alias, so that it replaces the old one at nodes.
func (a *application) replace(old, fresh token.Token) {
	a.system = true
	a.Tokens = slices.Clone(a.Tokens)
	found := false
	for i := range a.Tokens {
		if keyOf(a.Tokens[i].Token) == keyOf(old) {
			a.Tokens[i].Token, found = fresh, true
		}
	}
	if !found {
		a.Tokens = append(a.Tokens, token.AliasedToken{Alias: fresh.Service, Token: fresh})
	}
}

// Failed notes that a server did not do a job.
func (b *Book) Failed(now time.Time, job Job) {
	h := b.tokens[keyOf(job.Token)]
	if h == nil {
		return // its applications have ended
	}
	t := h.renew
	if job.Act == Obtain {
		t = h.replace[job.User]
	}
	if t == nil || t.place >= 0 {
		return
	}
	wait := pause(t.failures)
	t.failures++
	b.again(t, now.Add(wait))
}

func pause(failures int) time.Duration { return min(firstPause<<min(failures, 10), lastPause) }

func (b *Book) again(t *task, at time.Time) {
	t.next = at
	heap.Push(&b.due, t)
}

// System returns the applications that have a token obtained here, with all their tokens, in the order of their ids.
func (b *Book) System() []App {
	var all []App
	for _, a := range b.apps {
		if a.system {
			all = append(all, a.App)
		}
	}
	slices.SortFunc(all, func(x, y App) int {
		return cmp.Or(cmp.Compare(x.ID.ClusterTimestamp, y.ID.ClusterTimestamp), cmp.Compare(x.ID.ID, y.ID.ID))
	})
	return all
}

// Len returns the number of tokens.
func (b *Book) Len() int { return len(b.tokens) }

// byTime is a heap of tasks, the next one first.
type byTime []*task

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].next.Before(q[j].next) }
func (q byTime) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *byTime) Push(x any) {
	t := x.(*task)
	t.place = len(*q)
	*q = append(*q, t)
}
func (q *byTime) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.place = -1
	return t
}
