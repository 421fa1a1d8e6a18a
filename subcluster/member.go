// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Addresses are where a member's ResourceManager listens, each host:port, by
// name and not by resolved IP, so that a move in DNS is followed. An address that
// the member does not have is empty. Several hosts of one protocol (an HA pair)
// are separated by commas, in the order of yarn.resourcemanager.ha.rm-ids.
type Addresses struct {
	Client    string `json:"client,omitempty"`    // ApplicationClientProtocol, 8032
	Scheduler string `json:"scheduler,omitempty"` // ApplicationMasterProtocol, 8030
	Admin     string `json:"admin,omitempty"`     // ResourceManagerAdministrationProtocol, 8033
	Tracker   string `json:"tracker,omitempty"`   // ResourceTracker, 8031
	Web       string `json:"web,omitempty"`       // REST and pages, 8088
	Proxy     string `json:"proxy,omitempty"`     // the AM-RM proxy in front of it, 8049
}

// Member is a ResourceManager's registration.
type Member struct {
	ID        creel.SubclusterID `json:"id"`
	Addresses Addresses          `json:"addresses"`

	// Epoch numbers the starts of the member's ResourceManager and only rises
	// (creel's own: its container epoch; an agent for Hadoop's: startedOn, ms).
	// A registration or heartbeat with a lower one than the store knows is refused.
	Epoch int64 `json:"epoch"`

	// Capability is the cluster-metrics JSON at registration, as in Hadoop's
	// SubClusterInfo, without creel's rows of queues. It serves as the load until the
	// first heartbeat, so that the member can be used at once. May be empty.
	Capability string `json:"capability,omitempty"`

	// Lease is how long after a heartbeat the member counts as alive.
	// Zero means DefaultLease.
	Lease time.Duration `json:"lease,omitempty"`

	// Version is the software behind the addresses ("creel 1.0", "hadoop-3.4.2"). For Hadoop it determines the
	// member's features; see ByAgent and HadoopRelease.
	Version string `json:"version,omitempty"`

	// Signature is that of the fields above under the cluster's secret, see Signer; "" without a secret in a file.
	Signature string `json:"signature,omitempty"`
}

// DefaultLease of a member that names none. It sends heartbeats three times as often.
const DefaultLease = 10 * time.Second

const (
	minLease, maxLease = 50 * time.Millisecond, time.Hour
	maxID              = 128       // bytes
	maxCapability      = 256 << 10 // bytes
)

// LeaseOrDefault is the member's lease, never zero.
func (m Member) LeaseOrDefault() time.Duration {
	if m.Lease <= 0 {
		return DefaultLease
	}
	return m.Lease
}

// Validate rejects values that a store must not keep: *creel.Error of kind creel.ErrInvalidRequest.
func (m Member) Validate() error {
	if err := ValidID(m.ID); err != nil {
		return err
	}
	bad := func(why, try string) error {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("member %q cannot register", m.ID),
			Why:  why,
			Try:  try,
		}
	}
	switch {
	case m.Epoch < 0:
		return bad("its epoch is negative", "use 0 at the first start and raise it at each restart")
	case m.Lease != 0 && (m.Lease < minLease || m.Lease > maxLease):
		return bad(
			fmt.Sprintf("its lease %v is outside %v..%v", m.Lease, minLease, maxLease),
			"take about three heartbeat periods",
		)
	case len(m.Capability) > maxCapability:
		return bad("its capability is longer than 256 KiB", "send cluster metrics only")
	}
	for _, a := range []string{
		m.Addresses.Client,
		m.Addresses.Scheduler,
		m.Addresses.Admin,
		m.Addresses.Tracker,
		m.Addresses.Web,
		m.Addresses.Proxy,
	} {
		if len(a) > 1024 || strings.ContainsAny(a, " \t\r\n\x00") {
			return bad(fmt.Sprintf("address %.80q is not host:port", a), "give each address as host:port")
		}
	}
	if m.Capability != "" {
		if _, err := ParseLoad([]byte(m.Capability)); err != nil {
			return bad("its capability cannot be read: "+err.Error(), "send the JSON of /ws/v1/cluster/metrics")
		}
	}
	return nil
}

// ValidID accepts names of 1 to 128 letters, digits, dots, dashes and
// underscores. Stores, keys and URLs rely on that alphabet.
func ValidID(id creel.SubclusterID) error {
	ok := id != "" && len(id) <= maxID
	for i := 0; ok && i < len(id); i++ {
		c := id[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	if ok {
		return nil
	}
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: fmt.Sprintf("invalid subcluster id %.80q", string(id)),
		Why: "it must have 1 to 128 letters, digits, dots, dashes or underscores", Try: `name it like "sc-1"`}
}

// State is a member's state at a moment of the store's clock.
type State int32

// The states, from well to gone.
const (
	StateUnknown      State = iota
	StateActive             // alive: may become a home, may be asked
	StateDraining           // alive, gets no new homes and no new unmanaged AMs: drained, or refusing them
	StateSuspect            // its lease ran out: no new work
	StateLost               // silent for three leases
	StateDeregistered       // it left by itself
)

func (s State) String() string {
	switch s {
	case StateActive:
		return "active"
	case StateDraining:
		return "draining"
	case StateSuspect:
		return "suspect"
	case StateLost:
		return "lost"
	case StateDeregistered:
		return "deregistered"
	}
	return "unknown"
}

// Hadoop is the state as Hadoop's SubClusterState prints it.
func (s State) Hadoop() string {
	switch s {
	case StateActive:
		return "SC_RUNNING"
	case StateDraining:
		return "SC_DECOMMISSIONING"
	case StateSuspect:
		return "SC_UNHEALTHY"
	case StateLost:
		return "SC_LOST"
	case StateDeregistered:
		return "SC_UNREGISTERED"
	}
	return "SC_NEW"
}

// Alive reports whether the member's lease holds.
func (s State) Alive() bool { return s == StateActive || s == StateDraining }
