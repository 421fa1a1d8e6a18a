// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// denials measures for how long a home that cannot disown an application has reported it as
// unknown: see Applications.Absent. The store measures it, by its own clock, so that all routers may ask.
type denials struct {
	Since  time.Time   `json:"since"`  // of the last answer after a call that may still arrive
	Latest int64       `json:"latest"` // the highest recorded claim
	Open   []openClaim `json:"open,omitempty"`
}

// openClaim is an earlier claim whose call has no recorded outcome.
type openClaim struct {
	Number int64     `json:"number"`
	Seen   time.Time `json:"seen"` // when a later claim was recorded
}

// record stores an answer. It returns for how long the home has reported the application as unknown, since the last
// call that may still be on its way.
func (a *denials) record(now time.Time, number int64, surely bool) time.Duration {
	if a.Latest == 0 {
		*a = denials{Since: now, Latest: number}
	}
	if number-a.Latest-1+int64(len(a.Open)) > statestore.MostOpenClaims {
		*a = denials{Since: now, Latest: number}
	}
	for ; a.Latest < number; a.Latest++ {
		if a.Latest+1 < number {
			a.Open = append(a.Open, openClaim{a.Latest + 1, now})
		}
	}
	a.Open = slices.DeleteFunc(a.Open, func(o openClaim) bool { return o.Number == number })
	if !surely {
		a.Since = now
	}
	from := a.Since
	for _, o := range a.Open {
		if o.Seen.After(from) {
			from = o.Seen
		}
	}
	return max(0, now.Sub(from))
}

// absent is Applications.Absent for one kind of ids.
func (t *homeTable[ID]) absent(
	now time.Time,
	id ID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (is creel.SubclusterID, waited time.Duration) {
	p, ok := t.find(now, id)
	if !ok || p.home != home {
		return p.home, 0
	}
	a := t.denials[id]
	if a == nil {
		a = &denials{}
		t.denials[id] = a
	}
	return home, a.record(now, number, surely)
}

// Absent: see Homes.
func (t *State) Absent(
	now time.Time,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (time.Duration, error) {
	if err := statestore.CheckApplication(app); err != nil {
		return 0, err
	}
	is, waited := t.apps.absent(now, app, home, number, surely)
	switch is {
	case home:
		return waited, nil
	case "":
		return 0, statestore.NoHome(app)
	}
	return 0, statestore.OtherHome(app, home, is)
}
