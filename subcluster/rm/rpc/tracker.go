// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// Version is what nodes and reports are told we are: the Hadoop release whose
// protocols are spoken.
const Version = "3.4.2"

// tracker is what the doors of nodes and administrators share: which hosts are
// wanted, and how often nodes shall beat.
type tracker struct {
	interval atomic.Int64 // ns
	known    sync.Map     // host -> ip, resolved once
	beats    *beats

	mu    sync.RWMutex
	hosts Hosts
}

func newTracker(cfg Config) *tracker {
	t := &tracker{beats: newBeats()}
	t.interval.Store(int64(cfg.HeartbeatInterval))
	return t
}

// wanted tells whether a host may serve.
func (t *tracker) wanted(host string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if slices.Contains(t.hosts.Exclude, host) {
		return false
	}
	return len(t.hosts.Include) == 0 || slices.Contains(t.hosts.Include, host)
}

func (t *tracker) setHosts(h Hosts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hosts = h
}

// pace keeps the load of beats near what the daemon is meant to bear: with more
// nodes, or with a tighter interval than it can serve, each beats less often.
func (t *tracker) pace(cfg Config, nodes int) {
	interval := cfg.HeartbeatInterval
	if cfg.BeatsPerSecond > 0 {
		interval = max(interval, time.Duration(nodes)*time.Second/time.Duration(cfg.BeatsPerSecond))
	}
	t.interval.Store(int64(min(interval, 10*cfg.HeartbeatInterval)))
}

// service is a node's ip:port, as tokens name it.
func (t *tracker) service(ctx context.Context, id creel.NodeID) string {
	port := strconv.Itoa(int(id.Port))
	if net.ParseIP(id.Host) != nil {
		return net.JoinHostPort(id.Host, port)
	}
	if ip, ok := t.known.Load(id.Host); ok {
		return net.JoinHostPort(ip.(string), port)
	}
	addresses, err := net.DefaultResolver.LookupIP(ctx, "ip4", id.Host)
	if err != nil || len(addresses) == 0 {
		return net.JoinHostPort(id.Host, port)
	}
	t.known.Store(id.Host, addresses[0].String())
	return net.JoinHostPort(addresses[0].String(), port)
}

// trackerDoor is ResourceTracker.
type trackerDoor struct {
	yarnrpc.UnimplementedResourceTracker // nodeHeartbeat is beat
	d                                    *Daemon
}

func (d *Daemon) trackerService() hrpc.Service {
	door := &trackerDoor{d: d}
	s := yarnrpc.Inline(yarnrpc.ResourceTrackerService(door), "nodeHeartbeat", "unRegisterNodeManager")
	m := s.Methods["nodeHeartbeat"]
	m.NewRequest = func() proto.Message { return d.tracker.beats.get() }
	m.Serve = func(ctx context.Context, req proto.Message) (proto.Message, error) {
		return nil, door.beat(ctx, req.(*beat))
	}
	s.Methods["nodeHeartbeat"] = m
	return s
}

func (p *trackerDoor) RegisterNodeManager(
	ctx context.Context,
	req *pb.RegisterNodeManagerRequestProto,
) (*pb.RegisterNodeManagerResponseProto, error) {
	type R = *pb.RegisterNodeManagerResponseProto
	d, id := p.d, pb.ToNodeID(req.GetNodeId())
	if id.Host == "" || id.Port <= 0 {
		return nil, invalid("a node registers as %q; it needs a host and a port", id)
	}
	refuse := func(text string) (R, error) {
		d.audit(callerOf(ctx), "registerNodeManager", id.String(), fmt.Errorf("%s", text))
		return &pb.RegisterNodeManagerResponseProto{
			NodeAction:         pb.NodeActionProto_SHUTDOWN.Enum(),
			DiagnosticsMessage: &text,
		}, nil
	}
	if !d.tracker.wanted(id.Host) {
		return refuse(
			fmt.Sprintf("Disallowed NodeManager from  %s, Sending SHUTDOWN signal to the NodeManager.", id.Host),
		)
	}
	event := decodeRegisterNode(req, d.cfg.Rack(id.Host))
	d.secrets.setService(id, d.tracker.service(ctx, id))
	return later(
		ctx,
		d,
		op[R]{
			name:   "registerNodeManager",
			target: id.String(),
			run: func(m *rm.Machine, now time.Time) func() (R, error) {
				answer, err := m.RegisterNode(now, &event)
				if err != nil {
					return failed[R](err)
				}
				return func() (R, error) {
					container, nm := d.secrets.keysFor(nil, nil)
					r := &pb.RegisterNodeManagerResponseProto{
						ContainerTokenMasterKey: container,
						NmTokenMasterKey:        nm,
						NodeAction: new(
							pb.NodeActionProto(answer.Action),
						),
						RmIdentifier: new(d.start.UnixMilli()),
						RmVersion:    new(Version),
					}
					if answer.Diagnostics != "" {
						r.DiagnosticsMessage = &answer.Diagnostics
					}
					if answer.Override {
						r.Resource = pb.FromResource(answer.Resource)
					}
					return r, nil
				}
			},
		},
	)
}

// beat is nodeHeartbeat.
func (p *trackerDoor) beat(ctx context.Context, b *beat) error {
	d, reply := p.d, hrpc.Later(ctx)
	container, nm := d.secrets.keysFor(b.GetLastKnownContainerTokenMasterKey(), b.GetLastKnownNmTokenMasterKey())
	d.metrics.Beats.Add(1)
	err := d.box.post(func(m *rm.Machine, now time.Time) func() {
		answer := m.NodeHeartbeat(now, &b.report)
		b.answered(answer.Action)
		a := *answer
		a.Cleanup, a.Apps, a.Forget = slices.Clone(a.Cleanup), slices.Clone(a.Apps), slices.Clone(a.Forget)
		a.Update, a.Signals = slices.Clone(a.Update), slices.Clone(a.Signals)
		return func() {
			r := d.encodeBeat(&a)
			r.ContainerTokenMasterKey, r.NmTokenMasterKey = container, nm
			reply(r, nil)
			d.tracker.beats.put(b)
		}
	})
	if err != nil {
		reply(nil, err)
		d.tracker.beats.put(b)
	}
	return hrpc.ErrLater
}

func (d *Daemon) encodeBeat(a *rm.NodeAnswer) *pb.NodeHeartbeatResponseProto {
	r := &pb.NodeHeartbeatResponseProto{
		ResponseId:            &a.ResponseID,
		NodeAction:            new(pb.NodeActionProto(a.Action)),
		NextHeartBeatInterval: new(d.tracker.interval.Load() / int64(time.Millisecond)),
	}
	if a.Diagnostics != "" {
		r.DiagnosticsMessage = &a.Diagnostics
	}
	for _, c := range a.Cleanup {
		r.ContainersToCleanup = append(r.ContainersToCleanup, pb.FromContainerID(c))
	}
	for _, app := range a.Apps {
		r.ApplicationsToCleanup = append(r.ApplicationsToCleanup, pb.FromApplicationID(app))
	}
	for _, c := range a.Forget {
		r.ContainersToBeRemovedFromNm = append(r.ContainersToBeRemovedFromNm, pb.FromContainerID(c))
	}
	for i := range a.Update {
		g := &a.Update[i]
		t, finish := d.secrets.minting(g.ID.Attempt.Application)
		r.ContainersToUpdate = append(r.ContainersToUpdate, t.containerProto(g))
		finish()
	}
	for _, s := range a.Signals {
		r.ContainersToSignal = append(
			r.ContainersToSignal,
			&pb.SignalContainerRequestProto{
				ContainerId: pb.FromContainerID(s.Container),
				Command:     new(pb.SignalContainerCommandProto(s.Command)),
			},
		)
	}
	if a.Override {
		r.Resource = pb.FromResource(a.Resource)
	}
	return r
}

func (p *trackerDoor) UnRegisterNodeManager(
	ctx context.Context,
	req *pb.UnRegisterNodeManagerRequestProto,
) (*pb.UnRegisterNodeManagerResponseProto, error) {
	type R = *pb.UnRegisterNodeManagerResponseProto
	d, id := p.d, pb.ToNodeID(req.GetNodeId())
	return later(
		ctx,
		d,
		op[R]{
			name:   "unRegisterNodeManager",
			target: id.String(),
			run: func(m *rm.Machine, now time.Time) func() (R, error) {
				m.UnregisterNode(now, id)
				d.tracker.beats.keep(id, nil)
				return done(&pb.UnRegisterNodeManagerResponseProto{})
			},
		},
	)
}
