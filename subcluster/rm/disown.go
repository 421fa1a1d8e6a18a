// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"
	"time"

	"github.com/creelrm/creel"
)

// maxDisowned limits the remembered disowned applications, and apart from them those that ended; the oldest are
// dropped. For an error, a submission would have to wait in a socket while so many others are disowned. Applications
// end far more often than that, so they must not push out the others.
const maxDisowned = 100_000

// endedClaim is above every claim: it disowns an application that ran here, ended, and is no longer listed.
const endedClaim = math.MaxInt64

// disownedTable remembers disowned claims.
type disownedTable struct {
	out    *outbox
	claims map[creel.ApplicationID]int64
	order  []creel.ApplicationID // disowned by routers, oldest first; some may have ended since
	ended  []creel.ApplicationID // under endedClaim, oldest first
}

// Disown rejects an application for ever under claims up to claim, unless the machine has it. A router calls it before
// it leaves a home that did not answer, because its submission may still be on its way (package router). It returns the
// highest rejected claim: 0 if the machine has the application, the highest int64 if the application ran here, has
// ended and is not listed. The caller answers once everything that the machine has asked to save is durable.
func (m *Machine) Disown(now time.Time, id creel.ApplicationID, claim int64) (upTo int64, err error) {
	m.at(now)
	if id.IsZero() || claim <= 0 {
		return 0, invalid(
			"cannot disown "+id.String(),
			"an application id and the number of a claim are needed",
			"",
		)
	}
	d := &m.disowned
	before := claim <= d.claims[id]
	if a := m.apps.byID[id]; a != nil && !(before && a.uam()) {
		return 0, nil
	}
	if before {
		return d.claims[id], nil
	}
	d.put(id, claim)
	m.out.save(func(seq uint64) Action { return SaveDisowned{Seq: seq, Disowned: DisownedClaim{id, claim}} }, func() {})
	d.bound()
	return claim, nil
}

// putEnded rejects an ended application for ever, now that it is no longer listed. No caller waits for the save: it
// is in the transaction that deletes the application.
func (d *disownedTable) putEnded(id creel.ApplicationID) {
	d.put(id, endedClaim)
	d.out.store(SaveDisowned{Disowned: DisownedClaim{id, endedClaim}})
	d.bound()
}

// bound drops the oldest claims above maxDisowned.
func (d *disownedTable) bound() {
	drop := func(id creel.ApplicationID) {
		delete(d.claims, id)
		d.out.store(SaveDisowned{Disowned: DisownedClaim{App: id}, Deleted: true})
	}
	for ; len(d.order) > maxDisowned; d.order = d.order[1:] {
		if oldest := d.order[0]; d.claims[oldest] != endedClaim {
			drop(oldest)
		}
	}
	for ; len(d.ended) > maxDisowned; d.ended = d.ended[1:] {
		drop(d.ended[0])
	}
}

// uam reports whether an application is unmanaged and came without a claim, like UAMs of proxies. So may an
// application that was disowned here: its home is the one it moved to, and no late submission or query concerns the
// UAM.
func (a *app) uam() bool { return a.sub.Unmanaged && a.sub.Claim == 0 }

func (d *disownedTable) put(id creel.ApplicationID, claim int64) {
	if d.claims == nil {
		d.claims = map[creel.ApplicationID]int64{}
	}
	switch before, there := d.claims[id]; {
	case claim == endedClaim && before != endedClaim:
		d.ended = append(d.ended, id)
	case !there:
		d.order = append(d.order, id)
	}
	d.claims[id] = claim
}

// refuses rejects a submission whose claim was disowned. A submission without a claim, past the routers, counts
// as older than every claim. But a proxy's unmanaged AM is not the application's home and is always accepted.
func (d *disownedTable) refuses(s *Submission) error {
	upTo, there := d.claims[s.ID]
	if !there || s.Claim > upTo || s.Claim == 0 && s.Unmanaged {
		return nil
	}
	if upTo == endedClaim {
		return &creel.Error{
			Kind: creel.ErrEnded,
			What: fmt.Sprintf("%s has ended", s.ID),
			Why:  "it ran here, and is too old to be listed",
			Try:  "get a new application id to run it again",
		}
	}
	return &creel.Error{
		Kind: creel.ErrApplicationNotFound,
		What: fmt.Sprintf("%s was disowned here", s.ID),
		Why:  fmt.Sprintf("the submission came under claim %d; claims up to %d are refused for ever", s.Claim, upTo),
		Try:  "submit it through a router again",
	}
}
