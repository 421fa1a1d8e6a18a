// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Every store runs these checks of arguments before it acts, so that all reject the same ones.

// MaxTTL bounds times to live and leases.
const MaxTTL = 366 * 24 * time.Hour

func bad(what, why string, args ...any) error {
	return failf(creel.ErrInvalidRequest, "correct the request", what, why, args...)
}

// CheckApplication refuses ids that cannot be stored.
func CheckApplication(app creel.ApplicationID) error {
	if app.ClusterTimestamp <= 0 || app.ID < 0 {
		return bad("invalid application id", "%s is not an id that a ResourceManager issues", app)
	}
	return nil
}

// CheckPlacement rejects placements that are too long to store.
func CheckPlacement(placement []byte) error {
	if len(placement) > MaxPlacement {
		return bad("invalid placement", "it has %d bytes, more than %d", len(placement), MaxPlacement)
	}
	return nil
}

// CheckReservation refuses ids that cannot be stored.
func CheckReservation(id creel.ReservationID) error {
	if id.ClusterTimestamp <= 0 || id.ID < 0 {
		return bad("invalid reservation id", "%s is not an id that a ResourceManager issues", id)
	}
	return nil
}

// CheckTTL rejects times to live that are negative or above MaxTTL.
func CheckTTL(ttl time.Duration) error {
	if ttl < 0 || ttl > MaxTTL {
		return bad("invalid time to live", "%v is not between 0 and %v", ttl, MaxTTL)
	}
	return nil
}

// CheckLife accepts the time of a start, in ms; see Applications.Accept.
func CheckLife(app creel.ApplicationID, life int64) error {
	if err := CheckApplication(app); err != nil {
		return err
	}
	if life <= 0 || life > 1<<50 {
		return bad("invalid start of a home", "%d is not a time in ms", life)
	}
	return nil
}

// CheckLimit bounds a page.
func CheckLimit(limit int) error {
	if limit < 1 || limit > MaxPage {
		return bad("invalid page size", "%d is not between 1 and %d", limit, MaxPage)
	}
	return nil
}

// CheckName refuses names of leases, holders and rings that are empty, long, or
// have control characters or spaces.
func CheckName(what, name string) error {
	if name == "" || len(name) > 256 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return bad("invalid "+what, "%.80q must have 1 to 256 bytes and no spaces or control characters", name)
	}
	return nil
}

// CheckDrain bounds the reason of a drain.
func CheckDrain(reason string) error {
	if len(reason) > 1024 {
		return bad("invalid drain reason", "it is longer than 1024 bytes")
	}
	return nil
}

// CheckHeartbeat rejects a heartbeat whose load cannot be read, so that stored loads are readable.
func CheckHeartbeat(b subcluster.Heartbeat) error {
	_, err := ReadHeartbeat(b)
	return err
}

// ReadHeartbeat is CheckHeartbeat that also returns the parsed load, nil for an empty report.
func ReadHeartbeat(b subcluster.Heartbeat) (*subcluster.Load, error) {
	if err := subcluster.ValidID(b.ID); err != nil {
		return nil, err
	}
	if len(b.Load) == 0 {
		return nil, nil
	}
	l, err := subcluster.ParseLoad(b.Load)
	return &l, err
}

// CheckUAMRecord rejects a record that a reader could not use.
func CheckUAMRecord(s *UAMRecord) error {
	if err := CheckApplication(s.Attempt.Application); err != nil {
		return err
	}
	if s.Attempt.Attempt <= 0 || s.Revision < 0 {
		return bad("invalid UAM record", "%s, revision %d", s.Attempt, s.Revision)
	}
	if err := subcluster.ValidID(s.Home); err != nil {
		return err
	}
	size := len(s.State) + len(s.Proxy)
	for _, w := range s.Writers {
		size += len(w)
	}
	for _, m := range s.UAMs {
		if err := subcluster.ValidID(m.Member); err != nil {
			return err
		}
		if !m.OwnID.IsZero() {
			if err := CheckApplication(m.OwnID); err != nil {
				return err
			}
		}
		if m.Attempt < 0 {
			return bad("invalid UAM record", "attempt %d in %s", m.Attempt, m.Member)
		}
		size += len(m.Token) + len(m.Phase)
	}
	if size > MaxUAMRecord {
		return bad("invalid UAM record", "%d bytes are more than %d", size, MaxUAMRecord)
	}
	return nil
}

// MaxUAMRecord bounds a UAM record, in bytes before encoding.
const MaxUAMRecord = 1 << 20

// CheckPolicy rejects a write that cannot be stored, then calls valid, which may be nil.
func CheckPolicy(w *PolicyWrite, valid Validate) error {
	if w.Queue != "*" {
		if _, err := creel.ParseQueuePath(string(w.Queue)); err != nil {
			return err
		}
	}
	if len(w.Document) > MaxPolicy {
		return bad("policy refused", "the document has %d bytes, more than %d", len(w.Document), MaxPolicy)
	}
	if len(w.Author) > 256 || len(w.Comment) > 4096 {
		return bad("policy refused", "author is longer than 256 bytes or comment longer than 4096")
	}
	if w.Expect < 0 {
		return bad("policy refused", "expected version %d is negative", w.Expect)
	}
	if len(w.Document) == 0 || valid == nil {
		return nil
	}
	if err := valid(w.Queue, w.Document); err != nil {
		return failf(
			creel.ErrInvalidRequest,
			"correct the document; the old one stays in force",
			"policy of "+string(w.Queue)+" refused",
			"%v",
			err,
		)
	}
	return nil
}

// CheckSecret bounds a key.
func CheckSecret(secret []byte) error {
	if len(secret) == 0 || len(secret) > 4096 {
		return bad("invalid key", "a secret has 1 to 4096 bytes, this has %d", len(secret))
	}
	return nil
}

// CheckLease rejects names that cannot be stored and leases without a duration.
func CheckLease(name, holder string, ttl time.Duration) error {
	if err := CheckName("lease name", name); err != nil {
		return err
	}
	if err := CheckName("lease holder", holder); err != nil {
		return err
	}
	if ttl <= 0 {
		return bad("invalid lease", "its time to live is %v", ttl)
	}
	return CheckTTL(ttl)
}
