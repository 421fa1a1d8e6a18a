// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// A member has two nodes. A member that registered here has creel's record, and each change of it writes Hadoop's. A
// member that Hadoop's ResourceManager registered has Hadoop's alone: then that is the record, and the time of the
// node's last change is the heartbeat, so that the writer's clock has no effect.

// memberShard is the shard of one member.
type memberShard struct {
	*shard
	id      creel.SubclusterID
	hadoop  *node
	drain   *node              // the drain of a member that Hadoop registered
	foreign *subcluster.Record // as read from Hadoop's record; nil: creel's record counts
	own     string             // path of creel's record
}

// memberRecord returns the member in a shard's records, nil if there is none.
func memberRecord(f fields) (*subcluster.Record, error) {
	if f["members"] == nil {
		return nil, nil
	}
	var list []subcluster.Record
	if err := json.Unmarshal(f["members"], &list); err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// member reads both nodes of a member.
func (t *txn) member(id creel.SubclusterID) (*memberShard, error) {
	if err := subcluster.ValidID(id); err != nil {
		return nil, err
	}
	p := &t.store.paths
	m := &memberShard{id: id, own: p.members + "/" + name(string(id))}
	var err error
	if m.hadoop, err = t.get(p.memberships + "/" + string(id)); err != nil {
		return nil, err
	}
	if m.drain, err = t.get(p.drains + "/" + name(string(id))); err != nil {
		return nil, err
	}
	steps := len(t.ends)
	if m.shard, err = t.shard(part{m.own, []string{"members", "epochs"}}); err != nil {
		return nil, err
	}
	t.ends = slices.Insert(t.ends, steps, m.finish)
	f, err := m.fields()
	if err != nil {
		return nil, err
	}
	record, err := memberRecord(f)
	if err != nil {
		return nil, statestore.Unreadable("a member", err)
	}
	foreign := t.store.hadoopMember(id, m.hadoop)
	if foreign == nil || record != nil && !replaced(record, foreign, t.now) {
		return m, nil
	}
	foreign.Draining = cmp.Or(string(m.drain.data), foreign.Draining)
	m.foreign = foreign
	member := *foreign
	if record != nil { // a drain outlives a registration
		member.Draining = cmp.Or(string(m.drain.data), record.Draining, foreign.Draining)
	}
	if f["members"], err = json.Marshal([]subcluster.Record{member}); err != nil {
		return nil, err
	}
	return m, m.set(f)
}

// replaced reports whether Hadoop's ResourceManager took a member's name. It does not ask whether the name is free, as
// creel's do. So creel's record counts while its lease holds. An agent's ResourceManager may register itself, too.
func replaced(record, foreign *subcluster.Record, now time.Time) bool {
	if foreign.Deregistered {
		return false
	}
	return record.Deregistered || foreign.Epoch != record.Epoch &&
		now.Sub(record.Heartbeat) > record.LeaseOrDefault() && foreign.Heartbeat.After(record.Heartbeat)
}

// hadoopMember reads a member that Hadoop's ResourceManager registered, nil if there is none.
func (s *engine) hadoopMember(id creel.SubclusterID, n *node) *subcluster.Record {
	var info yarnpb.SubClusterInfoProto
	if len(n.data) == 0 || proto.Unmarshal(n.data, &info) != nil {
		return nil
	}
	r := &subcluster.Record{
		Member: subcluster.Member{
			ID: id, Epoch: max(0, info.GetLastStartTime()), Lease: s.cfg.HadoopLease, Version: subcluster.HadoopVersion,
			Addresses: subcluster.Addresses{
				Client: info.GetClientRMServiceAddress(), Scheduler: info.GetAMRMServiceAddress(),
				Admin: info.GetRMAdminServiceAddress(), Web: info.GetRMWebServiceAddress(), HTTPS: s.cfg.HadoopHTTPS,
			},
			Capability: info.GetCapability(),
		},
		Registered: n.stat.Ctime, Heartbeat: n.written(),
	}
	if _, err := subcluster.ParseLoad([]byte(r.Capability)); err != nil {
		r.Capability = "" // the member has no load before its next heartbeat
	}
	if r.Validate() != nil {
		return nil
	}
	switch state := info.GetState(); state {
	case yarnpb.SubClusterStateProto_SC_UNREGISTERED, yarnpb.SubClusterStateProto_SC_DECOMMISSIONED:
		r.Deregistered = true
	case yarnpb.SubClusterStateProto_SC_LOST:
		r.Heartbeat = time.UnixMilli(0).UTC()
	case yarnpb.SubClusterStateProto_SC_RUNNING:
	default:
		r.Draining = "Hadoop's store has it as " + state.String()
	}
	return r
}

// hadoopInfo is Hadoop's record of a member that registered here.
func hadoopInfo(r *subcluster.Record) *yarnpb.SubClusterInfoProto {
	state := yarnpb.SubClusterStateProto_SC_RUNNING
	switch {
	case r.Deregistered:
		state = yarnpb.SubClusterStateProto_SC_UNREGISTERED
	case r.Draining != "":
		state = yarnpb.SubClusterStateProto_SC_DECOMMISSIONING
	}
	first := func(list string) string { // Hadoop's record has one address of an HA pair
		address, _, _ := strings.Cut(list, ",")
		return address
	}
	return &yarnpb.SubClusterInfoProto{
		SubClusterId:           &yarnpb.SubClusterIdProto{Id: proto.String(string(r.ID))},
		AMRMServiceAddress:     proto.String(first(cmp.Or(r.Addresses.Scheduler, r.Addresses.Client))),
		ClientRMServiceAddress: proto.String(first(r.Addresses.Client)),
		RMAdminServiceAddress:  proto.String(first(cmp.Or(r.Addresses.Admin, r.Addresses.Client))),
		RMWebServiceAddress:    proto.String(first(cmp.Or(r.Addresses.Web, r.Addresses.Client))),
		LastHeartBeat:          proto.Int64(r.Heartbeat.UnixMilli()),
		State:                  &state,
		LastStartTime:          proto.Int64(r.Epoch),
		Capability:             proto.String(metricsOf(r)),
	}
}

// metricsOf are the cluster metrics of a member's load, which Hadoop's policies read.
func metricsOf(r *subcluster.Record) string {
	f := fields{}
	if json.Unmarshal([]byte(cmp.Or(r.Load, r.Capability)), &f) != nil || f["clusterMetrics"] == nil {
		return r.Capability
	}
	return string(jsonOf(fields{"clusterMetrics": f["clusterMetrics"]}))
}

// finish writes Hadoop's record.
func (m *memberShard) finish() error {
	f, err := m.fields()
	if err != nil {
		return err
	}
	record, err := memberRecord(f)
	if err != nil {
		return err
	}
	if m.foreign != nil && (record == nil || record.Registered.Equal(m.foreign.Registered)) {
		return m.finishForeign(f, record)
	}
	if record == nil {
		if m.hadoop.is {
			m.txn.remove(m.hadoop.path)
		}
		return nil
	}
	if m.drain.is { // it counts in creel's record from now on
		m.txn.remove(m.drain.path)
	}
	data, err := proto.Marshal(hadoopInfo(record))
	if err == nil && string(data) != string(m.hadoop.data) {
		m.txn.put(m.hadoop.path, data)
	}
	return err
}

// finishForeign writes a change of a member that Hadoop's ResourceManager registered. It gets no record of creel's.
func (m *memberShard) finishForeign(f fields, record *subcluster.Record) error {
	t := m.txn
	m.without(m.own)
	if err := t.save(part{m.own, []string{"epochs"}}, f); err != nil {
		return err
	}
	var data []byte
	switch {
	case record == nil: // removed
		t.remove(m.hadoop.path)
	case record.Deregistered && !m.foreign.Deregistered:
		var info yarnpb.SubClusterInfoProto
		if err := proto.Unmarshal(m.hadoop.data, &info); err != nil {
			return err
		}
		info.State = yarnpb.SubClusterStateProto_SC_UNREGISTERED.Enum()
		data, err := proto.Marshal(&info)
		if err != nil {
			return err
		}
		t.put(m.hadoop.path, data)
	case record.Draining != m.foreign.Draining:
		data = []byte(record.Draining)
	default:
		return nil
	}
	switch {
	case len(data) > 0:
		t.put(m.drain.path, data)
	case m.drain.is:
		t.remove(m.drain.path)
	}
	return nil
}

// NextEpoch implements statestore.Members.
func (s *Store) NextEpoch(
	ctx context.Context, id creel.SubclusterID, previous int64, takeOver bool,
) (epoch int64, err error) {
	err = s.change(ctx, false, func(t *txn) error {
		m, err := t.member(id)
		if err == nil {
			epoch, err = m.NextEpoch(t.now, id, previous, takeOver)
		}
		return err
	})
	return epoch, err
}

// Register implements statestore.Members.
func (s *Store) Register(ctx context.Context, member subcluster.Member) error {
	if err := member.Validate(); err != nil {
		return err
	}
	return s.change(ctx, false, func(t *txn) error {
		m, err := t.member(member.ID)
		if err != nil {
			return err
		}
		t.tell(statestore.Change{Kind: statestore.ChangeMembers})
		return m.Register(t.now, member)
	})
}

// Heartbeat implements statestore.Members. The load is stored whole; its parts are not.
func (s *Store) Heartbeat(ctx context.Context, b subcluster.Heartbeat) error {
	if err := statestore.CheckHeartbeat(b); err != nil {
		return err
	}
	b.Parts, b.AllParts = nil, false
	return s.change(ctx, false, func(t *txn) error {
		m, err := t.member(b.ID)
		if err == nil {
			err = m.Heartbeat(t.now, b)
		}
		return err
	})
}

// Drain implements statestore.Members.
func (s *Store) Drain(ctx context.Context, id creel.SubclusterID, reason string) error {
	if err := statestore.CheckDrain(reason); err != nil {
		return err
	}
	return s.change(ctx, true, func(t *txn) error {
		return t.ofMember(id, func(m *memberShard) error { return m.Drain(id, reason) })
	})
}

// Deregister implements statestore.Members.
func (s *Store) Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error {
	return s.change(ctx, false, func(t *txn) error {
		return t.ofMember(id, func(m *memberShard) error { return m.Deregister(id, epoch) })
	})
}

// RemoveMember implements statestore.Members.
func (s *Store) RemoveMember(ctx context.Context, id creel.SubclusterID) error {
	return s.change(ctx, false, func(t *txn) error {
		return t.ofMember(id, func(m *memberShard) error { return m.RemoveMember(t.now, id) })
	})
}

// ofMember makes a change of a member that is announced, with the event of the context.
func (t *txn) ofMember(id creel.SubclusterID, f func(m *memberShard) error) error {
	m, err := t.member(id)
	if err != nil {
		return err
	}
	t.tell(statestore.Change{Kind: statestore.ChangeMembers})
	if err := f(m); err != nil {
		return err
	}
	return t.record()
}

// Records implements statestore.Members. Each member's record is of one moment, and so are all policies.
func (s *Store) Records(ctx context.Context) (out subcluster.Records, err error) {
	if err := s.adoptPolicies(ctx); err != nil {
		return out, err
	}
	err = s.look(ctx, func(t *txn) error {
		out = subcluster.Records{}
		m, err := t.meta()
		if err != nil {
			return err
		}
		out.Store = m.identity()
		if err := t.members(&out); err != nil {
			return err
		}
		if out.Policies, err = t.policies(&out); err != nil {
			return err
		}
		changes, err := t.get(s.paths.feed + "/" + string(statestore.ChangeKeys))
		if err != nil {
			return err
		}
		out.KeyChanges = changes.stat.Version
		out.Now, err = s.now(ctx)
		return err
	})
	return out, err
}

// RecordsOf implements statestore.Members. Loads are read whole.
func (s *Store) RecordsOf(ctx context.Context, _ []string, _ bool) (subcluster.Records, error) {
	return s.Records(ctx)
}

// members reads all members, sorted by id.
func (t *txn) members(out *subcluster.Records) error {
	var names []string
	for _, parent := range []string{t.store.paths.members, t.store.paths.memberships} {
		list, err := t.children(parent)
		if err != nil {
			return err
		}
		for _, n := range list {
			names = append(names, named(n))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	found, problems := make([]*subcluster.Record, len(names)), make([]string, len(names))
	err := each(len(names), func(i int) error {
		m, err := t.apart().member(creel.SubclusterID(names[i]))
		if err == nil && m.foreign == nil && m.hadoop.is && !t.store.own(m) {
			problems[i] = "Hadoop's record of member " + names[i] + " cannot be read"
		}
		switch {
		case isLost(err):
			return err
		case err != nil:
			problems[i] = err.Error()
		default:
			if list := m.Records(t.now).Members; len(list) > 0 {
				found[i] = &list[0]
			}
		}
		return nil
	})
	for i := range names {
		if found[i] != nil {
			out.Members = append(out.Members, *found[i])
		}
		if problems[i] != "" {
			out.Problems = append(out.Problems, problems[i])
		}
	}
	return err
}

// own reports whether creel's record of a member counts.
func (s *engine) own(m *memberShard) bool { return len(m.txn.nodes[m.own].data) > 0 }
