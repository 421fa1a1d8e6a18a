// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/statestore"
)

// DaemonRow is a router, an AM-RM proxy or a rebalancer in a list.
type DaemonRow struct {
	statestore.Daemon
	Ready bool `json:"ready"`
	// AgeSeconds is the age of this report, by the store's clock.
	AgeSeconds float64 `json:"age_s"`

	id  string
	age time.Duration // age when the store was read
}

// DaemonsDoc is a page of daemons, by kind and name.
type DaemonsDoc struct {
	Daemons  []DaemonRow      `json:"daemons"`
	Matching int64            `json:"matching"`
	Kinds    map[string]int64 `json:"kinds"`    // of all daemons
	Versions map[string]int64 `json:"versions"` // of the matching daemons
	Next     string           `json:"next,omitempty"`
	// AgeSeconds is the time since the store was read. Problem is the error of the latest read.
	AgeSeconds float64 `json:"age_s"`
	Problem    string  `json:"problem,omitempty"`
}

const (
	// daemonsFresh limits the load of the store: daemons report every ten seconds.
	daemonsFresh = 3 * time.Second
	// daemonsAtOnce is small since the store answers no other call while it reads a page.
	daemonsAtOnce = 200
	daemonsTime   = 2 * time.Second // of one read, so that an unavailable store is reported soon
)

// daemonsAPI serves the list of live daemons.
type daemonsAPI struct {
	store statestore.Daemons // nil: none are listed
	shown *shared[*DaemonRow]
}

func newDaemons(store statestore.Daemons) *daemonsAPI {
	a := &daemonsAPI{store: store}
	a.shown = sharedList(a.ask, mergeDaemons, daemonsFresh, nil)
	return a
}

// ask reads all daemons' records, as one part.
func (a *daemonsAPI) ask(ctx context.Context, _ string) []router.Part[[]*DaemonRow] {
	out := make([]router.Part[[]*DaemonRow], 1)
	if a.store == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, daemonsTime)
	defer cancel()
	for cursor := ""; ; {
		page, next, err := a.store.Daemons(ctx, cursor, daemonsAtOnce)
		if err != nil {
			out[0].Err = err
			return out
		}
		for _, d := range page {
			out[0].Value = append(out[0].Value,
				&DaemonRow{Daemon: d.Daemon, Ready: d.NotReady == "", id: d.ID(), age: d.Age})
		}
		if cursor = next; cursor == "" {
			return out
		}
	}
}

// mergeDaemons lists the daemons in the store's order.
func mergeDaemons(parts []snapshot.Part[*DaemonRow]) []*DaemonRow { return parts[0].Items }

// serve serves a page of the live daemons.
func (a *daemonsAPI) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := pageLimit(r)
	var all []*DaemonRow
	var parts []snapshot.Part[*DaemonRow]
	if err == nil {
		all, parts, err = a.shown.Get(r.Context(), "", false)
	}
	if err == nil && parts[0].At.IsZero() {
		err = parts[0].Err // there is no earlier data
	}
	cursor := q.Get("cursor")
	if err == nil && cursor != "" && strings.Count(cursor, " ") != 3 {
		err = invalid("the cursor "+strconv.Quote(cursor)+" is invalid", "leave it out to start again")
	}
	if err != nil {
		problemOf(w, err)
		return
	}
	doc := DaemonsDoc{Daemons: []DaemonRow{}, Kinds: map[string]int64{}, Versions: map[string]int64{}}
	since := time.Since(parts[0].At)
	doc.AgeSeconds = since.Round(100 * time.Millisecond).Seconds()
	if parts[0].Err != nil {
		doc.Problem = parts[0].Err.Error()
	}
	var rows []*DaemonRow
	for _, d := range all {
		doc.Kinds[d.Kind]++
		if kind := q.Get("kind"); kind == "" || kind == d.Kind {
			doc.Versions[d.Version]++
			rows = append(rows, d)
		}
	}
	doc.Matching = int64(len(rows))
	from, found := slices.BinarySearchFunc(rows, cursor, func(d *DaemonRow, id string) int {
		return strings.Compare(d.id, id)
	})
	if found {
		from++
	}
	for _, d := range rows[from:min(from+int(limit), len(rows))] {
		row := *d
		row.AgeSeconds = (d.age + since).Round(100 * time.Millisecond).Seconds()
		doc.Daemons = append(doc.Daemons, row)
	}
	if from+len(doc.Daemons) < len(rows) {
		doc.Next = rows[from+len(doc.Daemons)-1].id
	}
	answer(w, doc)
}
