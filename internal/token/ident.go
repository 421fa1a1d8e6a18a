// SPDX-License-Identifier: Apache-2.0

package token

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// AMRM is the identifier of an AM's token for its ResourceManager. The user of a connection with it is the attempt's
// text.
type AMRM struct {
	Attempt creel.AttemptID
	KeyID   int32
}

// Append appends the identifier's bytes.
func (id AMRM) Append(b []byte) []byte {
	b, at := open(b, 1)
	b = closeAt(appendAttempt(b, id.Attempt), at)
	return appendInt(b, 2, int64(id.KeyID))
}

// ParseAMRM reads an identifier. The error is of kind ErrInvalidToken.
func ParseAMRM(b []byte) (AMRM, error) {
	p := new(yarnpb.AMRMTokenIdentifierProto)
	if err := p.UnmarshalVT(b); err != nil {
		return AMRM{}, unreadable(KindAMRM, err)
	}
	return AMRM{Attempt: yarnpb.ToAttemptID(p.AppAttemptId), KeyID: p.GetKeyId()}, nil
}

// NM is the identifier of an AM's token for one node. The user of a connection with it is the attempt's text.
type NM struct {
	Attempt creel.AttemptID
	Node    creel.NodeID
	User    string // user that runs the containers
	KeyID   int32
}

// Append appends the identifier's bytes.
func (id NM) Append(b []byte) []byte {
	b, at := open(b, 1)
	b = closeAt(appendAttempt(b, id.Attempt), at)
	b, at = open(b, 2)
	b = appendString(b, 1, id.Node.Host)
	b = closeAt(appendInt(b, 2, int64(id.Node.Port)), at)
	b = appendString(b, 3, id.User)
	return appendInt(b, 4, int64(id.KeyID))
}

// ParseNM reads an identifier. The error is of kind ErrInvalidToken.
func ParseNM(b []byte) (NM, error) {
	p := new(yarnpb.NMTokenIdentifierProto)
	if err := p.UnmarshalVT(b); err != nil {
		return NM{}, unreadable(KindNM, err)
	}
	return NM{
		Attempt: yarnpb.ToAttemptID(p.AppAttemptId),
		Node:    yarnpb.ToNodeID(p.NodeId),
		User:    p.GetAppSubmitter(),
		KeyID:   p.GetKeyId(),
	}, nil
}

// Container is the identifier of a container's token. The ResourceManager signs it. It contains everything that a node
// needs to start the container.
type Container struct {
	ID                  creel.ContainerID
	Node                creel.NodeID // the node compares it with its own id, letter by letter
	User                string       // the user that the container runs as
	Resource            creel.Resource
	Expires             time.Time // a later start is rejected
	KeyID               int32
	RMIdentifier        int64 // start time of the ResourceManager, ms; the node receives it at registration
	Priority            int32
	Created             time.Time
	Logs                *yarnpb.LogAggregationContextProto // nil: none
	Label               string
	AM                  bool // the container of an application master
	Execution           creel.ExecutionType
	Version             int32 // grows with each change of the container's resource or execution type
	AllocationRequestID int64
	Tags                []string
}

// Append appends the identifier's bytes, as Java writes them for the same values.
func (id Container) Append(b []byte) []byte {
	b, at := open(b, 1)
	b, in := open(b, 2)
	b = closeAt(appendAttempt(b, id.ID.Attempt), in)
	b = closeAt(appendInt(b, 3, id.ID.ID), at)
	b, at = open(b, 2)
	b, _ = id.Node.AppendText(b)
	b = closeAt(b, at)
	b = appendString(b, 3, id.User)
	b, at = open(b, 4)
	b = closeAt(appendResource(b, id.Resource), at)
	b = appendInt(b, 5, id.Expires.UnixMilli())
	b = appendInt(b, 6, int64(id.KeyID))
	b = appendInt(b, 7, id.RMIdentifier)
	b, at = open(b, 8)
	b = closeAt(appendInt(b, 1, int64(id.Priority)), at)
	b = appendInt(b, 9, id.Created.UnixMilli())
	if id.Logs != nil {
		b, at = open(b, 10)
		logs, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, id.Logs)
		if err == nil { // the message contains no required field
			b = logs
		}
		b = closeAt(b, at)
	}
	b = appendString(b, 11, id.Label)
	kind := yarnpb.ContainerTypeProto_TASK
	if id.AM {
		kind = yarnpb.ContainerTypeProto_APPLICATION_MASTER
	}
	b = appendInt(b, 12, int64(kind))
	execution := id.Execution
	if execution == 0 {
		execution = creel.Guaranteed
	}
	b = appendInt(b, 13, int64(execution))
	b = appendInt(b, 14, int64(id.Version))
	b = appendInt(b, 15, id.AllocationRequestID)
	for _, tag := range id.Tags {
		b = appendString(b, 16, tag)
	}
	return b
}

// ParseContainer reads an identifier. The error is of kind ErrInvalidToken.
func ParseContainer(b []byte) (Container, error) {
	p := new(yarnpb.ContainerTokenIdentifierProto)
	if err := p.UnmarshalVT(b); err != nil {
		return Container{}, unreadable(KindContainer, err)
	}
	node, err := creel.ParseNodeID(p.GetNmHostAddr())
	if err != nil {
		return Container{}, unreadable(KindContainer, err)
	}
	return Container{
		ID:   yarnpb.ToContainerID(p.ContainerId),
		Node: node,
		User: p.GetAppSubmitter(),
		Resource: yarnpb.ToResource(
			p.Resource,
		),
		Expires:      time.UnixMilli(p.GetExpiryTimeStamp()),
		KeyID:        p.GetMasterKeyId(),
		RMIdentifier: p.GetRmIdentifier(),
		Priority:     yarnpb.ToPriority(p.Priority),
		Created:      time.UnixMilli(p.GetCreationTime()),
		Logs:         p.LogAggregationContext,
		Label:        p.GetNodeLabelExpression(),
		AM: p.GetContainerType() == yarnpb.ContainerTypeProto_APPLICATION_MASTER &&
			p.ContainerType != nil,
		Execution:           creel.ExecutionType(p.GetExecutionType()),
		Version:             p.GetVersion(),
		AllocationRequestID: p.GetAllocationRequestId(),
		Tags:                p.AllocationTags,
	}, nil
}

// ClientToAM is the identifier of a client's token for one AM.
type ClientToAM struct {
	Attempt creel.AttemptID
	Client  string // user of the token
}

// Append appends the identifier's bytes.
func (id ClientToAM) Append(b []byte) []byte {
	b, at := open(b, 1)
	b = closeAt(appendAttempt(b, id.Attempt), at)
	return appendString(b, 2, id.Client)
}

// ParseClientToAM reads an identifier. The error is of kind ErrInvalidToken.
func ParseClientToAM(b []byte) (ClientToAM, error) {
	p := new(yarnpb.ClientToAMTokenIdentifierProto)
	if err := p.UnmarshalVT(b); err != nil {
		return ClientToAM{}, unreadable(KindClientToAM, err)
	}
	return ClientToAM{Attempt: yarnpb.ToAttemptID(p.AppAttemptId), Client: p.GetClientName()}, nil
}

// Delegation is the identifier of a delegation token.
type Delegation struct {
	Owner    string // the user that the bearer acts as
	Renewer  string // the user that may renew and cancel it, a short user name
	RealUser string // the user that requested it for Owner, or ""
	Issued   time.Time
	Max      time.Time // no renewal extends beyond it
	Sequence int32
	KeyID    int32
}

// Append appends the identifier's bytes. As in Java, only this kind of token omits empty and zero fields.
func (id Delegation) Append(b []byte) []byte {
	for i, s := range []string{id.Owner, id.Renewer, id.RealUser} {
		if s != "" {
			b = appendString(b, protowire.Number(i+1), s)
		}
	}
	for i, v := range []int64{id.Issued.UnixMilli(), id.Max.UnixMilli(), int64(id.Sequence), int64(id.KeyID)} {
		if v != 0 {
			b = appendInt(b, protowire.Number(i+4), v)
		}
	}
	return b
}

// ParseDelegation reads an identifier. The error is of kind ErrInvalidToken.
func ParseDelegation(b []byte) (Delegation, error) {
	p := new(yarnpb.YARNDelegationTokenIdentifierProto)
	if err := p.UnmarshalVT(b); err != nil {
		return Delegation{}, unreadable(KindDelegation, err)
	}
	return Delegation{
		Owner:    p.GetOwner(),
		Renewer:  p.GetRenewer(),
		RealUser: p.GetRealUser(),
		Issued:   time.UnixMilli(p.GetIssueDate()),
		Max:      time.UnixMilli(p.GetMaxDate()),
		Sequence: p.GetSequenceNumber(),
		KeyID:    p.GetMasterKeyId(),
	}, nil
}

func unreadable(kind string, err error) error {
	return invalid("the identifier of a %s cannot be read: %v", kind, err)
}

// The following functions write protobuf forwards into one buffer. Every granted container needs an identifier, and
// this way needs neither messages nor their sizes.

// open begins a nested message of a field; closeAt ends it.
func open(b []byte, field protowire.Number) ([]byte, int) {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return append(b, 0), len(b) + 1
}

// closeAt writes the length of the bytes appended since at into the byte before at, and inserts more bytes if one is
// not enough.
func closeAt(b []byte, at int) []byte {
	n := len(b) - at
	if n < 0x80 {
		b[at-1] = byte(n)
		return b
	}
	more := protowire.SizeVarint(uint64(n)) - 1
	for range more {
		b = append(b, 0)
	}
	copy(b[at+more:], b[at:at+n])
	protowire.AppendVarint(b[:at-1], uint64(n))
	return b
}

func appendInt(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendAttempt(b []byte, a creel.AttemptID) []byte {
	b, at := open(b, 1)
	b = appendInt(b, 1, int64(a.Application.ID))
	b = closeAt(appendInt(b, 2, a.Application.ClusterTimestamp), at)
	return appendInt(b, 2, int64(a.Attempt))
}

func appendResource(b []byte, r creel.Resource) []byte {
	b = appendInt(b, 1, r.MemoryMB)
	b = appendInt(b, 2, int64(int32(min(max(r.VCores, -1<<31), 1<<31-1))))
	b = appendAmount(b, creel.MemoryName, r.MemoryMB, "Mi")
	b = appendAmount(b, creel.VCoresName, r.VCores, "")
	for _, o := range r.Others {
		b = appendAmount(b, o.Name, o.Value, "")
	}
	return b
}

func appendAmount(b []byte, name string, v int64, units string) []byte {
	b, at := open(b, 3)
	b = appendString(b, 1, name)
	b = appendInt(b, 2, v)
	b = appendString(b, 3, units)
	return closeAt(appendInt(b, 4, int64(yarnpb.ResourceTypesProto_COUNTABLE)), at)
}
