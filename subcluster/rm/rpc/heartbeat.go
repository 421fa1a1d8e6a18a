// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"google.golang.org/protobuf/encoding/protowire"
)

// A NodeManager reports every container in every heartbeat, nearly always with the same bytes as before. Their
// decoding was most of a heartbeat's cost (BenchmarkHeartbeatDecode). So the handler stores, for each node, a hash of
// each running container's status with the container's id, and decodes only unknown statuses. This cache is the only
// state in this package. It is here because it works on bytes, which the server never sees.
//
// The cache stores the meaning of bytes, not their effect. The machine still receives every container with every
// heartbeat, in the order of the message. So kills, completions, registrations and repeats need not invalidate
// anything. Completions are always decoded.

// runningStatus is a status that means: this container runs. It has 40 bytes.
type runningStatus struct {
	sum uint64 // of its bytes
	id  creel.ContainerID
}

// maxRemembered limits the cache of one node, in containers.
const maxRemembered = 1024

// ahead is the number of remembered statuses that may be missing in a row before the search stops.
const ahead = 8

// memory is the cache of the nodes' last heartbeats. It has only nodes whose heartbeats the machine accepted, so not
// more than the machine itself.
type memory struct {
	seed maphash.Seed

	mu    sync.RWMutex
	nodes map[creel.NodeID][]runningStatus // the lists are immutable
}

func (h *memory) of(host []byte, port int32) []runningStatus {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.nodes[creel.NodeID{Host: string(host), Port: port}]
}

func (h *memory) keep(id creel.NodeID, list []runningStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(list) == 0 {
		delete(h.nodes, id)
		return
	}
	h.nodes[id] = list
}

// heartbeat is a heartbeat's request, which hrpc decodes through UnmarshalVT, with the report for the machine. It is
// reused after its answer.
type heartbeat struct {
	pb.NodeHeartbeatRequestProto
	report rm.NodeReport
	use    rm.NodeUse

	memory  *memory
	list    []runningStatus // of each status in order; without id: the status is among the decoded ones
	next    []runningStatus // next content of the cache, if it differs
	differs bool
}

// UnmarshalVT decodes the request and makes the report.
func (b *heartbeat) UnmarshalVT(in []byte) error {
	before, known := b.decodeUnknown(in)
	if !known {
		b.NodeHeartbeatRequestProto.Reset()
		b.list = b.list[:0]
		if err := b.NodeHeartbeatRequestProto.UnmarshalVT(in); err != nil {
			return err
		}
	}
	codec.NodeHeartbeat(&b.NodeHeartbeatRequestProto, &b.report, &b.use)
	if known {
		b.merge(before)
	}
	return nil
}

// decodeUnknown decodes a request except for the remembered statuses, and lists all statuses. ok is false if the
// request does not have the form that every node writes, or is damaged. Then it must be decoded whole.
func (b *heartbeat) decodeUnknown(in []byte) (before []runningStatus, ok bool) {
	b.list = b.list[:0]
	start, end := -1, 0
	for at := 0; at < len(in); {
		number, kind, size := protowire.ConsumeField(in[at:])
		if size < 0 {
			return nil, false
		}
		if number == nodeStatus {
			if kind != protowire.BytesType || start >= 0 {
				return nil, false
			}
			start, end = at, at+size
		}
		at += size
	}
	if start < 0 {
		return nil, false
	}
	r := &b.NodeHeartbeatRequestProto
	// A message may be decoded in pieces: each piece adds its fields.
	if r.UnmarshalVT(in[:start]) != nil || r.UnmarshalVT(in[end:]) != nil {
		return nil, false
	}
	r.NodeStatus = &pb.NodeStatusProto{}
	return b.decodeStatus(content(in[start:end]))
}

// content returns the content of a consumed bytes field.
func content(field []byte) []byte {
	_, _, n := protowire.ConsumeTag(field)
	value, _ := protowire.ConsumeBytes(field[n:])
	return value
}

// These are field numbers.
const (
	nodeStatus         = 1 // NodeHeartbeatRequestProto
	nodeID             = 1 // NodeStatusProto
	containersStatuses = 3
)

func (b *heartbeat) decodeStatus(in []byte) (before []runningStatus, ok bool) {
	s := b.NodeStatus
	pending, next := 0, 0 // in[pending:at] must be decoded; before[next] is expected
	named := false
	for at := 0; at < len(in); {
		number, kind, size := protowire.ConsumeField(in[at:])
		if size < 0 {
			return nil, false
		}
		from, to := at, at+size
		at = to
		if number != nodeID && number != containersStatuses {
			continue
		}
		if kind != protowire.BytesType {
			return nil, false
		}
		value := content(in[from:to])
		if number == nodeID {
			host, port, good := readNodeID(value)
			if named || !good {
				return nil, false
			}
			named, before = true, b.memory.of(host, port)
			continue
		}
		if !named {
			return nil, false
		}
		k := runningStatus{sum: maphash.Bytes(b.memory.seed, value)}
		for i := next; i < min(next+ahead, len(before)); i++ {
			if before[i].sum == k.sum {
				k.id, next = before[i].id, i+1
				if pending < from && s.UnmarshalVT(in[pending:from]) != nil {
					return nil, false
				}
				pending = to
				break
			}
		}
		b.list = append(b.list, k)
	}
	return before, named && s.UnmarshalVT(in[pending:]) == nil
}

// readNodeID reads a NodeIdProto in the form that every node writes, without a copy.
func readNodeID(in []byte) (host []byte, port int32, ok bool) {
	for want := protowire.Number(1); len(in) > 0; want++ {
		number, kind, n := protowire.ConsumeTag(in)
		switch {
		case n < 0 || number != want:
			return nil, 0, false
		case number == 1 && kind == protowire.BytesType:
			value, size := protowire.ConsumeBytes(in[n:])
			if size < 0 {
				return nil, 0, false
			}
			host, n = value, n+size
		case number == 2 && kind == protowire.VarintType:
			value, size := protowire.ConsumeVarint(in[n:])
			if size < 0 {
				return nil, 0, false
			}
			port, n = int32(value), n+size
		default:
			return nil, 0, false
		}
		in = in[n:]
	}
	return host, port, true
}

// merge inserts the cached containers among the decoded ones and builds the next cache.
func (b *heartbeat) merge(before []runningStatus) {
	all, left := b.report.Containers, len(b.report.Containers)
	all = slices.Grow(all, len(b.list)-left)[:len(b.list)]
	for i := len(all) - 1; i >= 0; i-- { // from the back, because decoded statuses only move towards it
		k := &b.list[i]
		if !k.id.IsZero() {
			all[i] = rm.ContainerStatus{ID: k.id, State: creel.ContainerRunning}
			continue
		}
		left--
		all[i] = all[left]
		if all[i].State == creel.ContainerRunning && !all[i].Waiting { // those in queues are few, and change soon
			k.id = all[i].ID
		}
	}
	b.report.Containers = all
	running := b.list[:0]
	for _, k := range b.list {
		if !k.id.IsZero() && len(running) < maxRemembered {
			running = append(running, k)
		}
	}
	if b.differs = !slices.Equal(running, before); b.differs {
		b.next = slices.Clone(running)
	}
}

// taken updates the cache after the machine accepted the heartbeat. It drops a node that is ordered to register again
// or to shut down.
func (b *heartbeat) taken(action rm.NodeAction) {
	switch {
	case action != rm.NodeNormal:
		b.memory.keep(b.report.ID, nil)
	case b.differs:
		b.memory.keep(b.report.ID, b.next)
	}
}

// heartbeats is the pool of unused ones.
type heartbeats struct {
	pool sync.Pool
	memory
}

func newHeartbeats() *heartbeats {
	return &heartbeats{memory: memory{seed: maphash.MakeSeed(), nodes: map[creel.NodeID][]runningStatus{}}}
}

func (p *heartbeats) get() *heartbeat {
	if b, ok := p.pool.Get().(*heartbeat); ok {
		return b
	}
	return &heartbeat{memory: &p.memory}
}

// put returns a heartbeat that is no longer in use to the pool.
func (p *heartbeats) put(b *heartbeat) {
	containers, list := b.report.Containers, b.list
	if max(cap(containers), cap(list)) > maxRemembered {
		return
	}
	b.NodeHeartbeatRequestProto.Reset()
	clear(containers)
	b.report = rm.NodeReport{Containers: containers[:0]}
	b.list, b.next, b.differs = list[:0], nil, false
	p.pool.Put(b)
}
