// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Store is the whole contract. Callers declare only the methods they need.
type Store interface {
	Members
	Applications
	// Reservations have homes by the same rules as applications. Watch does not report their changes.
	Reservations() Homes[creel.ReservationID]
	// Sweep deletes at most limit expired records of applications and reservations.
	Sweep(ctx context.Context, limit int) (freed int, err error)
	UAMRecords
	Policies
	Documents
	Leases
	Keys
	Tokens
	Daemons
	Events
	Schema
	Watch
}

// Members of the federation.
type Members interface {
	// NextEpoch issues the epoch of a process that will act as a member. It is higher than previous and than any epoch
	// issued for the member before, by this store or by a store whose clock was not ahead. previous is the epoch of the
	// last process before it (a ResourceManager stores it in its journal), 0 for none.
	//
	// It returns creel.ErrConflict while the member is alive under an epoch above previous. A lower one is an earlier
	// process of the caller, in a store that went back. takeOver skips this check and takes the name from that process.
	// The epoch takes effect with Register.
	NextEpoch(ctx context.Context, id creel.SubclusterID, previous int64, takeOver bool) (epoch int64, err error)
	// Register admits a member, or renews it. It counts as a heartbeat.
	Register(ctx context.Context, m subcluster.Member) error
	// Heartbeat renews the lease and, if it has a load, replaces the load and its parts.
	Heartbeat(ctx context.Context, b subcluster.Heartbeat) error
	// Drain stops new work for a member; reason names the requester and the cause. An empty reason ends the drain. A
	// drain outlasts registrations.
	Drain(ctx context.Context, id creel.SubclusterID, reason string) error
	// Deregister ends one epoch of a member. The record stays, so that an older epoch cannot return.
	Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error
	// RemoveMember deletes, for an admin, the record of a member that has deregistered or was
	// silent for three leases; else it returns creel.ErrConflict.
	RemoveMember(ctx context.Context, id creel.SubclusterID) error
	// Records reads members and policies at one moment of the store.
	Records(ctx context.Context) (subcluster.Records, error)
	// RecordsOf is Records with partial loads: at least the head, and the rows of queues with these leaf names. A load
	// that its member did not cut (subcluster.Cut) is returned whole. Without loads, a member with no other change may
	// have the load that this store read last. This is for callers that respond to a change and read loads periodically
	// anyway.
	RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error)
}

// Claims decide the homes of one kind of id: of applications, or of reservations.
type Claims[ID any] interface {
	// Claim returns the id's home, which is member if it had none. Each claim of an id, and each move, has a number one
	// higher than the one before. The first has 1. So 1 means that this very call made the record, and that no other
	// caller can have acted on it before. A repeat has a higher number, even for the same member, and even if the store
	// repeated the call by itself. placement records why the member was chosen, in the caller's own form; nil: no
	// reason. The claim that makes the record stores it in the same step.
	//
	// A store that went back issues the numbers of lost claims again, except for an application that a member reports:
	// its numbers continue above every reported one (Reclaim). Submissions that were on their way then know a lost
	// number, and members that disowned the application. Such a member rejects a later claim up to that number too, and
	// its router tries another member.
	Claim(
		ctx context.Context,
		id ID,
		member creel.SubclusterID,
		placement []byte,
	) (home creel.SubclusterID, number int64, err error)
	// Move changes the home if it is from and the newest claim has number (0: any). It returns the current home. So no
	// claim of the old home can have followed the caller's check that nothing will run there. With number 0, a home
	// that is already to is success too. Otherwise it returns creel.ErrConflict with the home, or the error of Home.
	// The move takes the next number. If it changes the home, its placement replaces the previous one, even if it is
	// nil.
	Move(
		ctx context.Context,
		id ID,
		from, to creel.SubclusterID,
		number int64,
		placement []byte,
	) (creel.SubclusterID, error)
}

// Homes of one kind of id.
type Homes[ID any] interface {
	Claims[ID]
	// Home returns an id's home. Without one the error is creel.ErrApplicationNotFound for an application, and
	// creel.ErrInvalidRequest for a reservation.
	Home(ctx context.Context, id ID) (creel.SubclusterID, error)
	// Forget schedules the end of an id's record, after its home reported the end. The home must match, else
	// creel.ErrConflict. The record, and an application's UAM records, expire after ttl; a repeat never extends the
	// time. A ttl of 0 deletes them now, and is for records without an application or a reservation.
	Forget(ctx context.Context, id ID, home creel.SubclusterID, ttl time.Duration) error
	// HomesAt lists the ids of a home, in the store's order, at most limit (1 to MaxPage) of them. The cursor of the
	// first page is "", of a later page the previous page's next; next is "" at the end. An id that exists during the
	// whole listing is listed exactly once.
	HomesAt(
		ctx context.Context,
		member creel.SubclusterID,
		cursor string,
		limit int,
	) (page []Home[ID], next string, err error)
}

// Applications have homes, and facts about the life of the application there.
type Applications interface {
	Homes[creel.ApplicationID]
	// Absent records that a home reported an application as unknown, after a call under the claim of that number. It is
	// for homes that cannot disown: Hadoop's ResourceManager, and creel's before fences. surely: that call was
	// rejected, or never arrived.
	//
	// It returns for how long the home has reported so, by the store's clock and from any router. The time starts at
	// the last call without an answer, or when a later claim overtook a claim without a recorded outcome. A move starts
	// it again. It returns creel.ErrConflict if the application has another home.
	Absent(
		ctx context.Context,
		app creel.ApplicationID,
		home creel.SubclusterID,
		number int64,
		surely bool,
	) (waited time.Duration, err error)
	// Accept records that a home that cannot disown accepted the application, and in which life: the start of its
	// process, in ms. A later life replaces an earlier one; a move deletes it. It returns creel.ErrConflict if the
	// application has another home, and creel.ErrApplicationNotFound for an unknown application.
	Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error
	// AcceptedIn returns the life in which the home accepted the application; 0: none is recorded. It returns
	// creel.ErrApplicationNotFound for an unknown application.
	AcceptedIn(ctx context.Context, app creel.ApplicationID) (life int64, err error)
	// Placement returns the placement stored by the claim or the move that set the home; nil if there is none. It is
	// deleted with the home: then creel.ErrApplicationNotFound.
	Placement(ctx context.Context, app creel.ApplicationID) ([]byte, error)
	// Ended returns the time at which the home reported the application's end (the first Forget with a ttl), by the
	// store's clock; zero before that. It returns creel.ErrApplicationNotFound for an unknown application.
	Ended(ctx context.Context, app creel.ApplicationID) (time.Time, error)
}

// MostOpenClaims limits the calls without a recorded outcome that are remembered one by one. Beyond it the wait starts
// again.
const MostOpenClaims = 8

// MaxPlacement is the longest placement of an application, in bytes.
const MaxPlacement = 2048

// MaxPage is the maximum length of a listing's page.
const MaxPage = 1000

// Home is a line of HomesAt.
type Home[ID any] struct {
	ID      ID
	Home    creel.SubclusterID
	Claimed time.Time // store's clock, to the second
	Ends    time.Time // when the record expires, zero while the application or the reservation lives
	Newest  int64     // highest claim that members reported; only from Rebuild
}

// ApplicationHome is the home of an application.
type ApplicationHome = Home[creel.ApplicationID]

// UAMRecords of attempts.
type UAMRecords interface {
	// SaveUAMRecord writes a record if the stored revision is s.Revision (0: none yet), and returns
	// the new revision, one higher. It returns creel.ErrConflict if another proxy wrote meanwhile;
	// the same content again is success. A late save cannot restore a dropped record, or write one
	// for an earlier attempt: it gets creel.ErrConflict, at least for DroppedFor.
	SaveUAMRecord(ctx context.Context, s UAMRecord) (revision int64, err error)
	// UAMRecord returns a record, or creel.ErrAttemptNotFound.
	UAMRecord(ctx context.Context, a creel.AttemptID) (UAMRecord, error)
	// UAMRecordsOf returns the records of all attempts of an application, by attempt.
	UAMRecordsOf(ctx context.Context, app creel.ApplicationID) ([]UAMRecord, error)
	// DropUAMRecord removes a record; a missing record is success.
	DropUAMRecord(ctx context.Context, a creel.AttemptID) error
}

// DroppedFor is the minimum time for which a store remembers a dropped UAM record: longer than a
// message can be on its way.
const DroppedFor = time.Hour

// UAMRecord lists the UAMs of an attempt, with the data that a restarted proxy needs. Its secrets are sealed (Seal)
// before they are stored.
type UAMRecord struct {
	Attempt  creel.AttemptID    `json:"attempt"`
	Revision int64              `json:"revision"`
	Home     creel.SubclusterID `json:"home"`
	Proxy    string             `json:"proxy,omitempty"` // the proxy that wrote it
	// Writers are the sessions that wrote the attempt's record, in the order of their takeovers. The last one wrote
	// this revision. Empty: written by a version before this field.
	Writers []string `json:"writers,omitempty"`
	UAMs    []UAM    `json:"members,omitempty"`
	State   []byte   `json:"state,omitempty"` // the session as its proxy encodes it
}

// UAM is a subcluster that holds a UAM of the attempt.
type UAM struct {
	Member creel.SubclusterID `json:"member"`
	// OwnID is the UAM's own application id, where its member rejects a second application with the
	// same id. Zero: it uses the application's id.
	OwnID creel.ApplicationID `json:"own_id,omitzero"`
	// Attempt is the number of the UAM's attempt; 0 before the launch. It differs from the home's
	// if either restarted.
	Attempt int32  `json:"attempt,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"` // the member's epoch at the launch
	Phase   string `json:"phase,omitempty"` // the proxy's state: launching, running, ending
	Token   []byte `json:"token,omitempty"` // AMRM token, sealed
}

// Policies by queue path.
type Policies interface {
	// PutPolicy stores a new version if the queue's current version is w.Expect, else creel.ErrConflict. It returns
	// creel.ErrInvalidRequest if the document is rejected. The same write again is success.
	PutPolicy(ctx context.Context, w PolicyWrite) (subcluster.Policy, error)
	// PolicyHistory returns at most limit versions of a queue, newest first, below before (0: from the newest). The
	// last KeptVersions are available.
	PolicyHistory(ctx context.Context, q creel.QueuePath, before int64, limit int) ([]subcluster.Policy, error)
}

// KeptVersions is the number of versions of a queue's policy in the history.
const KeptVersions = 128

// MaxPolicy is the longest policy document, in bytes.
const MaxPolicy = 256 << 10

// PolicyWrite asks for a new version. An empty document removes the queue's policy, so that its
// parent's policy applies.
type PolicyWrite struct {
	Queue    creel.QueuePath
	Expect   int64 // the queue's current version, 0 for none
	Document []byte
	Author   string
	Comment  string
}

// Validate checks a policy document before it is stored (policies.Parse). It must not retain or change the document.
type Validate func(q creel.QueuePath, document []byte) error

// Leases with fencing.
type Leases interface {
	// Acquire takes the lease if it is free, expired or held by the same holder, whose token then
	// stays. Otherwise it returns creel.ErrConflict and the holder's lease.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error)
	// Renew extends the lease if it has had no other holder since; creel.ErrStale if it has. An expired lease without a
	// later holder can be renewed, and so can one whose earlier holder is recorded in a store that went back.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release ends the lease; it is success if the lease is lost already.
	Release(ctx context.Context, l Lease) error
	// Holder reads the lease; its Holder is "" if it is free or expired.
	Holder(ctx context.Context, name string) (Lease, error)
}

// Lease has one holder at a time.
type Lease struct {
	Name    string    `json:"name"`
	Holder  string    `json:"holder"`
	Token   int64     `json:"token"`   // rises with each holder
	Expires time.Time `json:"expires"` // store's clock
}

// Keys are rings of secrets that every router or proxy needs.
type Keys interface {
	// Keys returns the valid keys of a ring, newest first; empty if there is no ring.
	Keys(ctx context.Context, ring string) ([]Key, error)
	// KeysOf returns the Keys of several rings, in their order, read at one moment.
	KeysOf(ctx context.Context, rings []string) ([][]Key, error)
	// RotateKey makes secret the current key, with a number one higher, if the current one is
	// expect (0: none). The previous key stays valid for keep. creel.ErrConflict if another process
	// rotated first: read Keys again. The same secret again is success.
	//
	// A store that went back may issue the id of a lost key again, for another secret. That is harmless: the id only
	// selects the secret, and values that the lost key sealed or signed fail the check with the other one.
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
	// CheckSchema writes SchemaVersion into an empty store. It rejects a store with a version
	// outside OldestSchema..SchemaVersion (creel.ErrNotPermitted).
	CheckSchema(ctx context.Context) error
}

// These are the newest and the oldest format that this creel reads; it writes the newest.
const (
	SchemaVersion = 1
	OldestSchema  = 1
)

// Watch reports changes.
type Watch interface {
	// Watch calls notify for each change it receives, one call at a time. It returns nil when ctx ends, or the error
	// when it cannot listen any more. It sends ChangeResync at first, and whenever it may have missed something. notify
	// must not block: a slow one loses changes, and a ChangeResync follows.
	Watch(ctx context.Context, notify func(Change)) error
}

// Change is a hint; the changed data is read from the store.
type Change struct {
	Kind        ChangeKind
	Version     int64               // policies, documents: the new version
	Class       string              // documents: their class
	Application creel.ApplicationID // homes: the application whose home changed or was deleted
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
