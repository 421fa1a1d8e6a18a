// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/amrmproxy/stored"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
)

// clients is amrmproxy.Clients: the calls for launching and killing UAMs, for a flow.
type clients struct{ f *flow }

// NewID is called only for Hadoop's ResourceManagers, which do not exist here.
func (c clients) NewID(_ context.Context, m creel.SubclusterID, _ string) (creel.ApplicationID, error) {
	return creel.ApplicationID{}, fmt.Errorf("%s takes the id of an application again", m)
}

func (c clients) Submit(
	_ context.Context,
	member creel.SubclusterID,
	user string,
	app *pb.ApplicationSubmissionContextProto,
) error {
	to := c.f.w.cluster(member)
	_, err := ask(c.f, to.host, memberTime, func(reply func(bool, error)) {
		to.submit(user, app, 0, reply)
	})
	return err
}

func (c clients) Report(
	ctx context.Context,
	member creel.SubclusterID,
	_ string,
	app creel.ApplicationID,
) (*pb.ApplicationReportProto, error) {
	to, most := c.f.w.cluster(member), memberTime
	if until, ok := ctx.Deadline(); ok {
		most = min(most, until.Sub(c.f.w.now))
	}
	return ask(c.f, to.host, most, func(reply func(*pb.ApplicationReportProto, error)) {
		to.applicationReport(app, reply)
	})
}

func (c clients) Kill(
	_ context.Context,
	member creel.SubclusterID,
	_ string,
	app creel.ApplicationID,
	why string,
) (bool, error) {
	to := c.f.w.cluster(member)
	return ask(c.f, to.host, memberTime, func(reply func(bool, error)) { to.kill(app, why, reply) })
}

// records is the state store for a recording, in a flow: each call of stored.Records to the store is a call over the
// network.
type records struct{ f *flow }

func (r records) SaveUAMRecord(_ context.Context, s statestore.UAMRecord) (int64, error) {
	w := r.f.w
	return ask(r.f, w.storeAt, storeTime, func(reply func(int64, error)) {
		reply(atStore(w, true, func() (int64, error) { return w.store.SaveUAMRecord(s) }))
	})
}

func (r records) UAMRecordsOf(_ context.Context, app creel.ApplicationID) ([]statestore.UAMRecord, error) {
	w := r.f.w
	return ask(r.f, w.storeAt, storeTime, func(reply func([]statestore.UAMRecord, error)) {
		reply(atStore(w, false, func() ([]statestore.UAMRecord, error) { return w.store.UAMRecordsOf(app), nil }))
	})
}

func (r records) DropUAMRecord(_ context.Context, a creel.AttemptID) error {
	w := r.f.w
	_, err := ask(r.f, w.storeAt, storeTime, func(reply func(bool, error)) {
		reply(atStore(w, true, func() (bool, error) {
			w.store.DropUAMRecord(a)
			w.audit.recordDropped(a)
			return true, nil
		}))
	})
	return err
}

// record starts a flow with an attempt's recording: a load or a save.
func (s *session) record(do func(f *flow), then func()) {
	s.w.start(s.proxy.host, storeTime, func(f *flow) {
		kept := &stored.Records{
			Records: records{f},
			Secrets: func(context.Context) ([]statestore.Key, error) { return s.w.secret, nil },
			Random:  nonces{s.w.rnd},
		}
		s.recording.Store, s.recording.Sealer = kept, kept
		do(f)
	}, then)
}

// launch carries out a Launch like the daemon.
func (s *session) launch(l amrmproxy.Launch) {
	s.w.audit.launching(s, l.Member, "")
	var launched amrmproxy.Launched
	var err error
	s.w.start(s.proxy.host, launchUAMTime, func(f *flow) {
		brief := f.part(amrmproxy.HomeTime(launchUAMTime))
		launched, err = amrmproxy.LaunchUAM(f, brief, clients{f}, f.sleep, l)
	}, func() {
		if err != nil {
			s.w.mark("no UAM", int64(l.Application.ID), 0)
			s.w.say("no UAM of %s in %s: %v", l.Application, l.Member, err)
			s.step(amrmproxy.LaunchFailed{Member: l.Member, Err: err})
			return
		}
		s.w.mark("UAM", int64(l.Application.ID), s.w.cluster(l.Member).number)
		s.step(launched)
	})
}

// drop carries out a Drop like the daemon.
func (s *session) drop(d amrmproxy.Drop) {
	var err error
	s.w.start(s.proxy.host, memberTime, func(f *flow) {
		brief := f.part(amrmproxy.HomeTime(memberTime))
		err = amrmproxy.DropUAM(f, brief, clients{f}, f.sleep, d)
	}, func() { s.step(amrmproxy.Dropped{Member: d.Member, Err: err}) })
}

// askHome carries out an AskHome like the daemon.
func (s *session) askHome(a amrmproxy.AskHome) {
	var answer amrmproxy.HomeAnswered
	s.w.start(s.proxy.host, memberTime, func(f *flow) {
		report, err := clients{f}.Report(f, a.Home, "", a.Application)
		answer = amrmproxy.AnsweredBy(report, err)
	}, func() { s.step(answer) })
}

// nonces is the world's random source as a reader.
type nonces struct{ rnd *rand.Rand }

func (n nonces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(n.rnd.Uint32())
	}
	return len(b), nil
}

const (
	memberTime    = 10 * time.Second // limit of a session's call to a member
	storeTime     = 5 * time.Second  // limit of reading or saving a record
	launchUAMTime = 15 * time.Second // limit of a UAM's launch
)
