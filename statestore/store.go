// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Store is the whole contract. Callers declare the few methods they need.
type Store interface {
	Members
	Homes
	Reservations
	UAMRecords
	Policies
	Documents
	Leases
	Keys
	Tokens
	Daemons
	Schema
	Watch
}

// Members of the federation.
type Members interface {
	// NextEpoch issues the epoch of a process that is to act as a member. It is higher than previous, and than any
	// issued for the member before, by this store or by one whose clock was not ahead. previous is the epoch of the
	// process' own predecessor (a ResourceManager stores it in its journal), 0 if there was none.
	//
	// creel.ErrConflict while the member is alive under another epoch than previous, unless takeOver is set, which
	// takes its name from it. The epoch is in force from Register on.
	NextEpoch(ctx context.Context, id creel.SubclusterID, previous int64, takeOver bool) (epoch int64, err error)
	// Register admits a member, or renews it. It counts as a heartbeat.
	Register(ctx context.Context, m subcluster.Member) error
	// Heartbeat renews the lease and, if it has a load, replaces the load and its parts.
	Heartbeat(ctx context.Context, b subcluster.Heartbeat) error
	// Drain stops new work for a member; reason names the requester and the cause, and an empty one ends the drain.
	// It outlives registrations.
	Drain(ctx context.Context, id creel.SubclusterID, reason string) error
	// Deregister is the goodbye of one epoch. The record stays, so that an older
	// epoch cannot return.
	Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error
	// RemoveMember deletes the record of a member that has deregistered or was
	// silent for three leases, for an admin; else creel.ErrConflict.
	RemoveMember(ctx context.Context, id creel.SubclusterID) error
	// Records reads members and policies at one moment of the store.
	Records(ctx context.Context) (subcluster.Records, error)
	// RecordsOf is Records with loads read in part: the head, and the rows of queues with these leaf names, at least.
	// The load of a member that did not cut it (subcluster.Cut) comes whole. Without loads, members with no other
	// change may have the loads that this store last read: for callers that respond to a change, and read loads
	// periodically anyway.
	RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error)
}

// Homes of applications.
type Homes interface {
	// Claim returns the application's home: member, if it had none. Each claim of an application, and each move, has
	// a number one higher than the one before. The first has 1, so 1 means that this very call made the record, and
	// no other caller can have acted on it before. A repeat has a higher number, also of the same member, and also
	// when the store repeated the call by itself. placement records why the member was chosen, in the caller's own
	// form; nil: no reason. It is stored, in the same step, by the claim that makes the record.
	Claim(
		ctx context.Context,
		app creel.ApplicationID,
		member creel.SubclusterID,
		placement []byte,
	) (home creel.SubclusterID, number int64, err error)
	// Move changes the home if it is from and the newest claim has number (0: any), and returns the current home. So
	// the home cannot have been claimed since the caller made sure that nothing will run at from. Without a number it
	// is also success if the home is to already. Else creel.ErrConflict with the home, or
	// creel.ErrApplicationNotFound. The move has the next number. If it changes the home its placement replaces the
	// one before, also if it is nil.
	Move(
		ctx context.Context,
		app creel.ApplicationID,
		from, to creel.SubclusterID,
		number int64,
		placement []byte,
	) (creel.SubclusterID, error)
	// Absent records that a home which cannot disown (Hadoop's ResourceManager, and creel's before fences) answered
	// that it does not know the application, after a call under the claim of that number; surely: that call was
	// refused, or never arrived.
	//
	// It returns for how long the home has answered so, by the store's clock: since the last call that got no answer,
	// and since each claim without a recorded outcome was overtaken, from any router. A move starts it again.
	// creel.ErrConflict if the application lives elsewhere.
	Absent(
		ctx context.Context,
		app creel.ApplicationID,
		home creel.SubclusterID,
		number int64,
		surely bool,
	) (waited time.Duration, err error)
	// Home finds it; creel.ErrApplicationNotFound.
	Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
	// Placement returns the placement stored by the claim or the move that made the home; nil if there is none. It
	// goes with the home: creel.ErrApplicationNotFound.
	Placement(ctx context.Context, app creel.ApplicationID) ([]byte, error)
	// Ended returns when the home reported the application's end (the first Forget with a ttl), by the store's clock;
	// zero: it has not. creel.ErrApplicationNotFound.
	Ended(ctx context.Context, app creel.ApplicationID) (time.Time, error)
	// Forget starts the end of a record whose home (which must match, else creel.ErrConflict) reported that the
	// application ended. The record and the UAM records go after ttl; a repeat never extends it. A ttl of 0 removes
	// them now, and is for records without an application.
	Forget(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, ttl time.Duration) error
	// HomesAt lists the applications of a home, in the order of the store, at
	// most limit (1 to MaxPage) of them. The cursor is "" at first and next of
	// the page before after that; next is "" at the end. An application that
	// is there during the whole listing is listed exactly once.
	HomesAt(
		ctx context.Context,
		member creel.SubclusterID,
		cursor string,
		limit int,
	) (page []Home, next string, err error)
	// Sweep frees at most limit expired records, of applications and reservations.
	Sweep(ctx context.Context, limit int) (freed int, err error)
}

// Reservations have homes by the same rules as applications.
type Reservations interface {
	ClaimReservation(
		ctx context.Context,
		id creel.ReservationID,
		member creel.SubclusterID,
	) (home creel.SubclusterID, fresh bool, err error)
	MoveReservation(
		ctx context.Context,
		id creel.ReservationID,
		from, to creel.SubclusterID,
	) (creel.SubclusterID, error)
	ReservationHome(ctx context.Context, id creel.ReservationID) (creel.SubclusterID, error)
	ForgetReservation(ctx context.Context, id creel.ReservationID, home creel.SubclusterID, ttl time.Duration) error
	ReservationsAt(
		ctx context.Context,
		member creel.SubclusterID,
		cursor string,
		limit int,
	) (page []ReservationHome, next string, err error)
}

// MaxPlacement is the longest placement of an application, in bytes.
const MaxPlacement = 2048

// MaxPage is the maximum length of a listing's page.
const MaxPage = 1000

// Home is a line of HomesAt.
type Home struct {
	Application creel.ApplicationID `json:"application"`
	Home        creel.SubclusterID  `json:"home"`
	Claimed     time.Time           `json:"claimed"`       // store's clock, to the second
	Ends        time.Time           `json:"ends,omitzero"` // when the record goes, zero while it lives
}

// ReservationHome is a line of ReservationsAt.
type ReservationHome struct {
	Reservation creel.ReservationID `json:"reservation"`
	Home        creel.SubclusterID  `json:"home"`
	Claimed     time.Time           `json:"claimed"`
	Ends        time.Time           `json:"ends,omitzero"`
}

// UAMRecords of attempts.
type UAMRecords interface {
	// SaveUAMRecord writes a record if the stored revision is s.Revision (0: none
	// yet) and returns the new revision, one higher. creel.ErrConflict if
	// another proxy wrote meanwhile; the same content again is success. A record that
	// was dropped is not made again, nor one of an earlier attempt: a save that
	// arrives late is creel.ErrConflict, for DroppedFor at least.
	SaveUAMRecord(ctx context.Context, s UAMRecord) (revision int64, err error)
	// UAMRecord finds one; creel.ErrAttemptNotFound.
	UAMRecord(ctx context.Context, a creel.AttemptID) (UAMRecord, error)
	// UAMRecordsOf finds those of all attempts of an application, by attempt.
	UAMRecordsOf(ctx context.Context, app creel.ApplicationID) ([]UAMRecord, error)
	// DropUAMRecord removes one; it may be gone already.
	DropUAMRecord(ctx context.Context, a creel.AttemptID) error
}

// DroppedFor is how long a store knows at least that a UAM record was dropped: longer
// than a message may be under way.
const DroppedFor = time.Hour

// UAMRecord lists the UAMs of an attempt, with the data that a restarted proxy needs. Secrets in it are sealed (Seal)
// before they come here.
type UAMRecord struct {
	Attempt  creel.AttemptID    `json:"attempt"`
	Revision int64              `json:"revision"`
	Home     creel.SubclusterID `json:"home"`
	Proxy    string             `json:"proxy,omitempty"` // the proxy that wrote it
	// Writers are the sessions that wrote the attempt's record, in the order in which each took it over. The last
	// wrote this one. None: a version before writers wrote it.
	Writers []string `json:"writers,omitempty"`
	UAMs    []UAM    `json:"members,omitempty"`
	State   []byte   `json:"state,omitempty"` // the session as its proxy encodes it
}

// UAM is a subcluster that holds a UAM of the attempt.
type UAM struct {
	Member creel.SubclusterID `json:"member"`
	// OwnID of the UAM, where its member takes no second one of the application's id; zero:
	// it has the application's.
	OwnID creel.ApplicationID `json:"own_id,omitzero"`
	// Attempt is the number of its own attempt, which is another than home's when either was
	// begun again; 0 while it is not launched.
	Attempt int32  `json:"attempt,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"` // the member's epoch that it was launched in
	Phase   string `json:"phase,omitempty"` // the proxy's word: launching, running, ending
	Token   []byte `json:"token,omitempty"` // AMRM token, sealed
}

// Policies by queue path.
type Policies interface {
	// PutPolicy makes a version, if the queue's current one is w.Expect.
	// creel.ErrConflict if it is not, creel.ErrInvalidRequest if the document
	// is refused. The same write again is success.
	PutPolicy(ctx context.Context, w PolicyWrite) (subcluster.Policy, error)
	// PolicyHistory returns versions of a queue, newest first, below before (0: from the newest), at most limit. The
	// last KeptVersions are stored.
	PolicyHistory(ctx context.Context, q creel.QueuePath, before int64, limit int) ([]subcluster.Policy, error)
}

// KeptVersions of each queue's policy remain in the history.
const KeptVersions = 128

// MaxPolicy is the longest policy document, in bytes.
const MaxPolicy = 256 << 10

// PolicyWrite asks for a new version. An empty document removes the queue's
// policy, so that its parent's holds.
type PolicyWrite struct {
	Queue    creel.QueuePath
	Expect   int64 // the queue's current version, 0 for none
	Document []byte
	Author   string
	Comment  string
}

// Validate checks a policy document before it is stored (policies.Parse).
// It must not keep or change the document.
type Validate func(q creel.QueuePath, document []byte) error

// Leases with fencing.
type Leases interface {
	// Acquire takes the lease if it is free, over, or held by the same holder, whose token then stays.
	// creel.ErrConflict comes with the holder's lease.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error)
	// Renew extends it if it had no other holder since; creel.ErrStale if lost. A lease that ran out but has no later
	// holder can be renewed.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release ends it; it is success if it is lost already.
	Release(ctx context.Context, l Lease) error
	// Holder reads it; Holder is "" if it is free or over.
	Holder(ctx context.Context, name string) (Lease, error)
}

// Lease is held by one at a time.
type Lease struct {
	Name    string    `json:"name"`
	Holder  string    `json:"holder"`
	Token   int64     `json:"token"`   // rises with each holder
	Expires time.Time `json:"expires"` // store's clock
}

// Keys are rings of secrets that any router or proxy must know.
type Keys interface {
	// Keys of a ring that are valid, newest first; empty if there is no ring.
	Keys(ctx context.Context, ring string) ([]Key, error)
	// KeysOf are the Keys of several rings, in their order, at one moment.
	KeysOf(ctx context.Context, rings []string) ([][]Key, error)
	// RotateKey makes secret the current key with a number one higher, if the
	// current one is expect (0: none). The one before stays for keep.
	// creel.ErrConflict if another was faster: read Keys again. The same
	// secret again is success.
	RotateKey(ctx context.Context, ring string, expect int32, secret []byte, keep time.Duration) (Key, error)
}

// Key is one secret of a ring.
type Key struct {
	ID      int32     `json:"id"` // from 1
	Secret  []byte    `json:"secret"`
	Created time.Time `json:"created"`          // store's clock
	Expires time.Time `json:"expires,omitzero"` // zero for the current one
}

// Schema is the version of the stored data's format.
type Schema interface {
	// CheckSchema writes its version into an empty store with SchemaVersion, and refuses a store
	// with one outside OldestSchema..SchemaVersion (creel.ErrNotPermitted).
	CheckSchema(ctx context.Context) error
}

// Versions of the stored form that this creel writes and reads.
const (
	SchemaVersion = 1
	OldestSchema  = 1
)

// Watch for changes.
type Watch interface {
	// Watch calls notify, one call at a time, for each change it receives, until ctx ends (nil) or it cannot listen
	// any more (the error). It sends ChangeResync at first and whenever it may have missed something. notify must not
	// block: a slow one loses changes to a later ChangeResync.
	Watch(ctx context.Context, notify func(Change)) error
}

// Change is a hint; the changed data is read from the store.
type Change struct {
	Kind        ChangeKind
	Version     int64               // policies, documents: the new version
	Class       string              // documents: their class
	Application creel.ApplicationID // homes: whose home moved or went
}

// ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of change.
const (
	ChangeResync    ChangeKind = "resync"    // anything may have changed
	ChangeMembers   ChangeKind = "members"   // registered, drained, deregistered, removed; not heartbeats
	ChangePolicies  ChangeKind = "policies"  // a new version
	ChangeKeys      ChangeKind = "keys"      // a ring has a new key
	ChangeDocuments ChangeKind = "documents" // a new version in a class
	ChangeHome      ChangeKind = "home"      // moved or forgotten; not claimed
)
