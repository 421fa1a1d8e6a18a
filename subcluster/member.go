// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Addresses are the host:port of a member's ResourceManager for each protocol, by name and not by resolved IP, so
// that changes in DNS take effect. An address that the member lacks is empty. Several hosts of one protocol (an HA
// pair) are separated by commas, in the order of yarn.resourcemanager.ha.rm-ids.
type Addresses struct {
	Client    string `json:"client,omitempty"`    // ApplicationClientProtocol, 8032
	Scheduler string `json:"scheduler,omitempty"` // ApplicationMasterProtocol, 8030
	Admin     string `json:"admin,omitempty"`     // ResourceManagerAdministrationProtocol, 8033
	Tracker   string `json:"tracker,omitempty"`   // ResourceTracker, 8031
	Web       string `json:"web,omitempty"`       // REST and pages, 8088 (8090 with TLS)
	HTTPS     bool   `json:"https,omitempty"`     // Web is served by TLS
	Proxy     string `json:"proxy,omitempty"`     // the AM-RM proxy in front of it, 8049
}

// Scheme is http or https, of Web.
func (a *Addresses) Scheme() string {
	if a.HTTPS {
		return "https"
	}
	return "http"
}

// Member is a ResourceManager's registration.
type Member struct {
	ID        creel.SubclusterID `json:"id"`
	Addresses Addresses          `json:"addresses"`

	// Epoch numbers the starts of the member's ResourceManager and only rises. For creel's ResourceManager it is the
	// container epoch; an agent for Hadoop's uses startedOn, in ms. A registration or heartbeat with an epoch below
	// the newest is rejected.
	Epoch int64 `json:"epoch"`

	// Capability is the cluster-metrics JSON at registration, as in Hadoop's SubClusterInfo, without creel's rows of
	// queues. It is the load until the first heartbeat, so that the member can be used at once. It may be empty.
	Capability string `json:"capability,omitempty"`

	// Lease is the time after a heartbeat during which the member is alive. Zero means DefaultLease.
	Lease time.Duration `json:"lease,omitempty"`

	// Version is the software behind the addresses ("creel 1.0", "hadoop-3.4.2"). For Hadoop it determines the
	// member's features; see ByAgent and HadoopRelease.
	Version string `json:"version,omitempty"`

	// Signature signs the fields above with the cluster's secret, see Signer; "" without a secret.
	Signature string `json:"signature,omitempty"`
}

// DefaultLease applies to a member that sets no lease. Members send heartbeats three times as often.
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

// Validate rejects values that a store must not accept: *creel.Error of kind creel.ErrInvalidRequest.
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

// The states, in order of decline.
const (
	StateUnknown      State = iota
	StateActive             // alive: may become a home, may be asked
	StateDraining           // alive, gets no new homes and no new unmanaged AMs: drained, or it rejects them
	StateSuspect            // its lease expired: no new work
	StateLost               // silent for three leases
	StateDeregistered       // it deregistered itself
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

// Hadoop returns the state's name in Hadoop's SubClusterState.
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

// Alive reports whether the member's lease has not expired.
func (s State) Alive() bool { return s == StateActive || s == StateDraining }
