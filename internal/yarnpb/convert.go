// SPDX-License-Identifier: Apache-2.0

package yarnpb

import (
	"fmt"
	"math"

	"github.com/creelrm/creel"
)

// The To functions accept nil and absent fields and give the zero value, so that a reader needs one check (IsZero)
// and not one for each level. The From functions give a new message the caller owns, in one allocation: a node with
// ten thousand containers is reported in identifiers.

// ToApplicationID reads an application id.
func ToApplicationID(p *ApplicationIdProto) creel.ApplicationID {
	return creel.ApplicationID{ClusterTimestamp: p.GetClusterTimestamp(), ID: p.GetId()}
}

// ToReservationID reads a reservation id.
func ToReservationID(p *ReservationIdProto) creel.ReservationID {
	return creel.ReservationID{ClusterTimestamp: p.GetClusterTimestamp(), ID: p.GetId()}
}

// ToAttemptID reads an attempt id.
func ToAttemptID(p *ApplicationAttemptIdProto) creel.AttemptID {
	return creel.AttemptID{Application: ToApplicationID(p.GetApplicationId()), Attempt: p.GetAttemptId()}
}

// ToContainerID reads a container id. Field app_id is ignored: Java neither sets nor reads it.
func ToContainerID(p *ContainerIdProto) creel.ContainerID {
	return creel.ContainerID{Attempt: ToAttemptID(p.GetAppAttemptId()), ID: p.GetId()}
}

// ToNodeID reads a node id.
func ToNodeID(p *NodeIdProto) creel.NodeID {
	return creel.NodeID{Host: p.GetHost(), Port: p.GetPort()}
}

// FromApplicationID writes an application id.
func FromApplicationID(a creel.ApplicationID) *ApplicationIdProto {
	m := &struct {
		p  ApplicationIdProto
		id int32
		ts int64
	}{id: a.ID, ts: a.ClusterTimestamp}
	m.p.Id, m.p.ClusterTimestamp = &m.id, &m.ts
	return &m.p
}

// attemptBlock is an attempt id and all it points to.
type attemptBlock struct {
	attempt ApplicationAttemptIdProto
	app     ApplicationIdProto
	id, nr  int32
	ts      int64
}

func (m *attemptBlock) fill(a creel.AttemptID) *ApplicationAttemptIdProto {
	m.id, m.nr, m.ts = a.Application.ID, a.Attempt, a.Application.ClusterTimestamp
	m.app.Id, m.app.ClusterTimestamp = &m.id, &m.ts
	m.attempt.ApplicationId, m.attempt.AttemptId = &m.app, &m.nr
	return &m.attempt
}

// FromAttemptID writes an attempt id.
func FromAttemptID(a creel.AttemptID) *ApplicationAttemptIdProto {
	return new(attemptBlock).fill(a)
}

// FromContainerID writes a container id; app_id stays absent, as from Java.
func FromContainerID(c creel.ContainerID) *ContainerIdProto {
	m := &struct {
		p       ContainerIdProto
		attempt attemptBlock
		id      int64
	}{id: c.ID}
	m.p.AppAttemptId, m.p.Id = m.attempt.fill(c.Attempt), &m.id
	return &m.p
}

// FromNodeID writes a node id.
func FromNodeID(n creel.NodeID) *NodeIdProto {
	m := &struct {
		p    NodeIdProto
		node creel.NodeID
	}{node: n}
	m.p.Host, m.p.Port = &m.node.Host, &m.node.Port
	return &m.p
}

// FromPriority writes a priority. In a request the smaller number is served first, in an application the larger.
func FromPriority(n int32) *PriorityProto {
	m := &struct {
		p PriorityProto
		n int32
	}{n: n}
	m.p.Priority = &m.n
	return &m.p
}

// ToPriority reads a priority, 0 when absent.
func ToPriority(p *PriorityProto) int32 { return p.GetPriority() }

// Texts that every resource repeats. Messages point at them, so code must not write through such a pointer; protobuf
// code never does, it replaces pointers.
var (
	memoryKey, coresKey  = creel.MemoryName, creel.VCoresName
	memoryUnits, noUnits = "Mi", ""
	countable            = ResourceTypesProto_COUNTABLE
	baseUnits            = map[string]string{creel.MemoryName: memoryUnits}
)

// ToResource reads a resource. As in Java, memory and cores come from fields 1 and 2 and everything else from the
// map; only when such a field is absent does the map speak for it. Amounts are converted from the units written to
// MiB for memory and to plain counts for every other type. An amount with unknown units, or without units, counts as
// plain: servers convert or reject it before, by ConvertUnits.
func ToResource(p *ResourceProto) creel.Resource {
	r := creel.Resource{MemoryMB: p.GetMemory(), VCores: int64(p.GetVirtualCores())}
	for _, e := range p.GetResourceValueMap() {
		switch e.GetKey() {
		case creel.MemoryName:
			if p.Memory == nil {
				r.MemoryMB = amount(e)
			}
		case creel.VCoresName:
			if p.VirtualCores == nil {
				r.VCores = amount(e)
			}
		case "":
		default:
			r = r.With(e.GetKey(), amount(e))
		}
	}
	return r
}

// ConvertUnits converts the amounts of a request to the units of the configured types, as Hadoop does on reading: an
// amount without a unit is in its type's unit, and a fraction of that unit is cut off. It rejects an unknown unit, and
// an amount that does not fit into 64 bits. Types that are not configured count in ones.
func ConvertUnits(p *ResourceProto, types []creel.ResourceType) error {
	for _, e := range p.GetResourceValueMap() {
		unit := baseUnits[e.GetKey()]
		for i := range types {
			if types[i].Name == e.GetKey() {
				unit = types[i].Unit
			}
		}
		if e.Units == nil {
			e.Units = &unit
		}
		from, value := e.GetUnits(), e.GetValue()
		if from == unit {
			continue
		}
		v, err := creel.ConvertUnits(value, from, unit)
		if (v == math.MaxInt64 || v == math.MinInt64) && v != value {
			err = fmt.Errorf("%d %s is too large in the unit %q", value, from, unit)
		}
		if err != nil {
			return &creel.Error{
				Kind: creel.ErrInvalidResource, What: "invalid amount of " + e.GetKey(), Why: err.Error(),
			}
		}
		e.Value, e.Units = &v, &unit
	}
	return nil
}

// amount is the value of a map entry in its type's base units.
func amount(e *ResourceInformationProto) int64 {
	from, to := e.GetUnits(), baseUnits[e.GetKey()]
	if from == to || e.Units == nil {
		return e.GetValue()
	}
	if v, err := creel.ConvertUnits(e.GetValue(), from, to); err == nil {
		return v
	}
	return e.GetValue()
}

// FromResource writes a resource the way Java does: fields 1 and 2, and a map with memory-mb (in Mi), vcores and then
// every other type in the order of names. Cores above an int32 are written as its limit in field 2.
func FromResource(r creel.Resource) *ResourceProto {
	m := &struct {
		p          ResourceProto
		mem, cores ResourceInformationProto
		list       [2]*ResourceInformationProto
		vcores     int32
		memoryMB   int64
		cores64    int64
	}{memoryMB: r.MemoryMB, cores64: r.VCores, vcores: int32(min(max(r.VCores, math.MinInt32), math.MaxInt32))}
	m.mem.Key, m.mem.Value, m.mem.Units, m.mem.Type = &memoryKey, &m.memoryMB, &memoryUnits, &countable
	m.cores.Key, m.cores.Value, m.cores.Units, m.cores.Type = &coresKey, &m.cores64, &noUnits, &countable
	m.list = [2]*ResourceInformationProto{&m.mem, &m.cores}
	m.p.Memory, m.p.VirtualCores, m.p.ResourceValueMap = &m.memoryMB, &m.vcores, m.list[:]
	for _, o := range r.Others {
		m.p.ResourceValueMap = append(m.p.ResourceValueMap,
			&ResourceInformationProto{Key: &o.Name, Value: &o.Value, Units: &noUnits, Type: &countable})
	}
	return &m.p
}
