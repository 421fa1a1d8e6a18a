// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// Report is the list of applications of a member's ResourceManager, for Rebuild.
type Report struct {
	Member       creel.SubclusterID
	Applications []ReportedApplication
}

// ReportedApplication is an application in a ResourceManager's own list.
type ReportedApplication struct {
	ID        creel.ApplicationID
	Unmanaged bool      // its AM is unmanaged here: this subcluster has a UAM of the application and is not its home
	Ended     bool      // it has reached its final state here
	Running   bool      // its AM has registered here, and it has not ended
	Attempt   int32     // of the newest attempt, 0 for none
	Submitted time.Time // by that ResourceManager's clock
	Held      int64     // the number of the claim under which it is held for a move; 0: not held
	Newest    int64     // the highest claim known there; 0: none, or the ResourceManager cannot report it
}

// Conflict describes the decision about an application that several members claimed as their own. It is logged for
// audits.
type Conflict struct {
	Application creel.ApplicationID
	Home        creel.SubclusterID   // the winner
	Others      []creel.SubclusterID // members that must end it, sorted; may be empty
	Rule        string               // the reason
}

func (c Conflict) String() string {
	return fmt.Sprintf("application=%s home=%s others=%v rule=%q", c.Application, c.Home, c.Others, c.Rule)
}

// Rebuild computes the homes for a store that came back empty, from the reports of all ResourceManagers. It is pure,
// and the order of the reports does not matter. Several reports of one member count as their union.
//
// The home of an application with one managed report is the reporting member. Of several members that report it, these
// rules choose the home, each one breaking the ties of the rule before:
//
//  1. the member whose run is further on (Further);
//  2. the member that accepted it first;
//  3. the member whose name sorts first.
//
// A subcluster with a UAM of an application is not its home. But a client may have submitted the application itself
// with an unmanaged AM. So where all its AMs are unmanaged, the home is the member that accepted the application first,
// because UAMs come later; then no run is ended.
//
// A home's Newest is the highest claim that any member reported, the ones that lost included.
func Rebuild(reports []Report) (homes []ApplicationHome, conflicts []Conflict) {
	type claim struct {
		member creel.SubclusterID
		ReportedApplication
	}
	claims := map[creel.ApplicationID][]claim{}
	newest := map[creel.ApplicationID]int64{}
	var ids []creel.ApplicationID
	for _, r := range reports {
		for _, a := range r.Applications {
			if claims[a.ID] == nil {
				ids = append(ids, a.ID)
			}
			claims[a.ID] = append(claims[a.ID], claim{r.Member, a})
			newest[a.ID] = max(newest[a.ID], a.Newest, a.Held)
		}
	}
	slices.SortFunc(ids, creel.ApplicationID.Compare)
	for _, id := range ids {
		var managed, unmanaged []claim
		for _, c := range claims[id] {
			if c.Unmanaged {
				unmanaged = append(unmanaged, c)
			} else {
				managed = append(managed, c)
			}
		}
		rule := ""
		slices.SortStableFunc(managed, func(a, b claim) int {
			return cmp.Or(
				Further(a.ReportedApplication, b.ReportedApplication),
				a.Submitted.Compare(b.Submitted),
				cmp.Compare(a.member, b.member),
			)
		})
		if len(managed) == 0 {
			slices.SortStableFunc(unmanaged, func(a, b claim) int {
				return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.member, b.member))
			})
			w := unmanaged[0]
			homes = append(homes, ApplicationHome{ID: id, Home: w.member, Claimed: w.Submitted, Newest: newest[id]})
			if last := unmanaged[len(unmanaged)-1]; last.member != w.member {
				conflicts = append(
					conflicts,
					Conflict{id, w.member, nil, "all its AMs are unmanaged, and it was accepted there first"},
				)
			}
			continue
		}
		w := managed[0]
		homes = append(homes, ApplicationHome{ID: id, Home: w.member, Claimed: w.Submitted, Newest: newest[id]})
		var others []creel.SubclusterID
		for _, o := range managed[1:] {
			if o.member == w.member {
				continue
			}
			if rule == "" { // against the runner-up
				switch {
				case w.Held != o.Held && o.Held > 0:
					rule = "it has moved there"
				case w.Ended != o.Ended:
					rule = "it has not ended there"
				case w.Running != o.Running:
					rule = "its AM has registered there"
				case w.Attempt != o.Attempt:
					rule = fmt.Sprintf("attempt %d is the highest", w.Attempt)
				case !w.Submitted.Equal(o.Submitted):
					rule = "it was accepted there first"
				default:
					rule = "its name sorts first"
				}
			}
			others = append(others, o.member)
		}
		if len(others) > 0 {
			conflicts = append(conflicts, Conflict{id, w.member, sortedUnique(others), rule})
		}
	}
	return homes, conflicts
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func sortedUnique(ids []creel.SubclusterID) []creel.SubclusterID {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// MostRaised limits the claims by which Reclaim raises the number of one application's next claim.
const MostRaised = 1000

// Reclaim writes rebuilt homes into a store. The store may already have another home: it went back to an earlier state,
// or a router claimed one while the store had lost the record. Then the ResourceManagers' reports win, and the conflict
// is returned. Repeat it until it returns no error.
//
// The claims of a written home continue above its Newest, and above 1. A router that still has a lost claim must not
// find its number in the store again: its move would succeed although another router has acted since. A member that
// knows a higher claim would reject calls under lower ones. A reported number above MostRaised is not believed.
func Reclaim(
	ctx context.Context,
	store Claims[creel.ApplicationID],
	homes []ApplicationHome,
) (conflicts []Conflict, err error) {
	for _, h := range homes {
		is, number, e := store.Claim(ctx, h.ID, h.Home, nil)
		above := max(1, h.Newest)
		if above > MostRaised {
			above = 1
		}
		for e == nil && number <= above {
			is, number, e = store.Claim(ctx, h.ID, h.Home, nil)
		}
		if e == nil && is != h.Home {
			conflicts = append(
				conflicts,
				Conflict{
					h.ID,
					h.Home,
					[]creel.SubclusterID{is},
					"the ResourceManagers' reports outrank the store's home",
				},
			)
			_, e = store.Move(ctx, h.ID, is, h.Home, 0, nil)
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", h.ID, e))
			if ctx.Err() != nil {
				return conflicts, err
			}
		}
	}
	return conflicts, err
}
