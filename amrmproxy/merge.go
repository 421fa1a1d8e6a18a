// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// absorb merges an answer into the AM's next answer. Lists are joined, and share their elements. Single values come
// from home, which owns the attempt: its message becomes the base. Numbers over the whole federation (limit, nodes,
// enhanced headroom) are set when the AM is answered, from the last answer of each member.
//
// Unknown fields of both messages are retained, home's last, so that home's value of a single field wins.
func absorb(into, answer *yarnpb.AllocateResponseProto, home bool) *yarnpb.AllocateResponseProto {
	base, other := into, answer
	if home {
		base, other = answer, into
	}
	join(&base.AllocatedContainers, into.AllocatedContainers, answer.AllocatedContainers)
	join(&base.CompletedContainerStatuses, into.CompletedContainerStatuses, answer.CompletedContainerStatuses)
	join(&base.UpdatedNodes, into.UpdatedNodes, answer.UpdatedNodes)
	join(&base.NmTokens, into.NmTokens, answer.NmTokens)
	join(&base.UpdateErrors, into.UpdateErrors, answer.UpdateErrors)
	join(&base.UpdatedContainers, into.UpdatedContainers, answer.UpdatedContainers)
	join(
		&base.ContainersFromPreviousAttempts,
		into.ContainersFromPreviousAttempts,
		answer.ContainersFromPreviousAttempts,
	)
	join(&base.RejectedSchedulingRequests, into.RejectedSchedulingRequests, answer.RejectedSchedulingRequests)
	base.Preempt = joinPreempt(into.Preempt, answer.Preempt)
	if home {
		// Keep values of home's earlier answer that this one lacks.
		if base.AMCommand == nil {
			base.AMCommand = other.AMCommand
		}
		if base.AmRmToken == nil {
			base.AmRmToken = other.AmRmToken
		}
		if base.ApplicationPriority == nil {
			base.ApplicationPriority = other.ApplicationPriority
		}
		if base.CollectorInfo == nil {
			base.CollectorInfo = other.CollectorInfo
		}
	}
	if u := other.ProtoReflect().GetUnknown(); len(u) > 0 {
		b := base.ProtoReflect()
		b.SetUnknown(append(slices.Clone(u), b.GetUnknown()...))
	}
	return base
}

// join sets at to first followed by second, without a copy if one is empty.
func join[T any](at *[]T, first, second []T) {
	switch {
	case len(second) == 0:
		*at = first
	case len(first) == 0:
		*at = second
	default:
		*at = append(first[:len(first):len(first)], second...)
	}
}

// joinPreempt joins the containers that two ResourceManagers want to preempt.
func joinPreempt(a, b *yarnpb.PreemptionMessageProto) *yarnpb.PreemptionMessageProto {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	if a.StrictContract == nil {
		a.StrictContract = b.StrictContract
	} else if b.StrictContract != nil {
		joinVictims(&a.StrictContract.Container, b.StrictContract.Container)
	}
	if a.Contract == nil {
		a.Contract = b.Contract
	} else if b.Contract != nil {
		// The resources that these containers must free are also sent once.
		if joinVictims(&a.Contract.Container, b.Contract.Container) || len(b.Contract.Container) == 0 {
			join(&a.Contract.Resource, a.Contract.Resource, b.Contract.Resource)
		}
	}
	return a
}

// joinVictims adds containers that are not in the list yet, and reports whether it added any. Creel's
// ResourceManagers repeat all victims in each answer. Hadoop's send only victims chosen since the last answer.
func joinVictims(at *[]*yarnpb.PreemptionContainerProto, more []*yarnpb.PreemptionContainerProto) (news bool) {
	seen := make(map[creel.ContainerID]bool, len(*at))
	list := (*at)[:len(*at):len(*at)]
	for _, c := range list {
		seen[yarnpb.ToContainerID(c.GetId())] = true
	}
	for _, c := range more {
		if c.GetId() == nil || !seen[yarnpb.ToContainerID(c.GetId())] {
			list, news = append(list, c), true
		}
	}
	*at = list
	return news
}

// addResource adds b to a in place, type by type; a must not be shared. Java repeats memory and cores in the map, so
// map entries are added by name.
func addResource(a, b *yarnpb.ResourceProto) {
	if b == nil {
		return
	}
	if a.Memory != nil || b.Memory != nil {
		a.Memory = proto.Int64(saturate(a.GetMemory(), b.GetMemory()))
	}
	if a.VirtualCores != nil || b.VirtualCores != nil {
		a.VirtualCores = proto.Int32(saturate32(a.GetVirtualCores(), b.GetVirtualCores()))
	}
	for _, v := range b.GetResourceValueMap() {
		i := slices.IndexFunc(
			a.ResourceValueMap,
			func(w *yarnpb.ResourceInformationProto) bool { return w.GetKey() == v.GetKey() },
		)
		if i < 0 {
			a.ResourceValueMap = append(a.ResourceValueMap, v.CloneVT())
			continue
		}
		w := a.ResourceValueMap[i]
		n, err := creel.ConvertUnits(v.GetValue(), v.GetUnits(), w.GetUnits())
		if err != nil {
			n = v.GetValue()
		}
		w.Value = proto.Int64(saturate(w.GetValue(), n))
	}
}

func saturate(a, b int64) int64 {
	return creel.Resource{MemoryMB: a}.Add(creel.Resource{MemoryMB: b}).MemoryMB
}

func saturate32(a, b int32) int32 {
	return int32(max(math.MinInt32, min(math.MaxInt32, int64(a)+int64(b))))
}

// total sets the numbers that are sums over all members that answer.
func total(into *yarnpb.AllocateResponseProto, members []*link) {
	into.Limit, into.NumClusterNodes, into.EnhancedHeadroom = nil, nil, nil
	for _, m := range members {
		if !m.counted() {
			continue
		}
		if m.limit != nil {
			if into.Limit == nil {
				into.Limit = m.limit.CloneVT()
			} else {
				addResource(into.Limit, m.limit)
			}
		}
		if m.nodes != nil {
			into.NumClusterNodes = proto.Int32(saturate32(into.GetNumClusterNodes(), *m.nodes))
		}
		if h := m.enhanced; h != nil {
			if into.EnhancedHeadroom == nil {
				into.EnhancedHeadroom = h.CloneVT()
				continue
			}
			into.EnhancedHeadroom.TotalPendingCount = proto.Int32(
				saturate32(into.EnhancedHeadroom.GetTotalPendingCount(), h.GetTotalPendingCount()),
			)
			into.EnhancedHeadroom.TotalActiveCores = proto.Int32(
				saturate32(into.EnhancedHeadroom.GetTotalActiveCores(), h.GetTotalActiveCores()),
			)
		}
	}
}

// lostStatus returns the completion of a container that ended with its UAM. It has the exit status -100 (aborted), as
// YARN reports for a lost node.
func lostStatus(id *yarnpb.ContainerIdProto, why string) *yarnpb.ContainerStatusProto {
	return &yarnpb.ContainerStatusProto{
		ContainerId: id,
		State:       yarnpb.ContainerStateProto_C_COMPLETE.Enum(),
		ExitStatus:  proto.Int32(-100),
		Diagnostics: proto.String(why),
	}
}
