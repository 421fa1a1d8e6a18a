// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// A member remembers what ended by the ten thousands, and tidy and reconcile look each few minutes. They are given what
// lives, and what has ended since the look before; the whole list is read at first, when a ResourceManager has
// started anew, and each wholeEvery, for what was missed.
const (
	wholeEvery = time.Hour
	// overlap is by how much the next look begins before the newest end of the last one: an end is dated
	// before it is durable and shown.
	overlap = time.Minute
)

// lists are the applications of members.
type lists struct {
	ask func(context.Context, *subcluster.Status, *yarnpb.GetApplicationsRequestProto) (
		*yarnpb.GetApplicationsResponseProto, error)

	mu sync.Mutex
	of map[creel.SubclusterID]*memberList
}

// memberList is what one look at a member leaves for the next. It is not changed once it is made: looks ask the member
// under no lock, and of two at the same time the one that is first leaves what it saw.
type memberList struct {
	epoch int64
	whole time.Time // when the whole list was read
	seen  time.Time // when this look was over
	until int64     // the newest end that was seen, in ms of the member's clock
	ended map[creel.ApplicationID]statestore.ReportedApplication
}

func newLists(pool *remote.Pool) *lists {
	return &lists{
		ask: func(ctx context.Context, m *subcluster.Status, request *yarnpb.GetApplicationsRequestProto) (
			*yarnpb.GetApplicationsResponseProto, error) {
			return getApplications(ctx, pool.Member(m), request)
		},
		of: map[creel.SubclusterID]*memberList{},
	}
}

// member lists the applications of a member: what has ended, of which its ResourceManager may have forgotten some
// since the whole list was read, then what lives.
func (l *lists) member(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
	l.mu.Lock()
	last := l.of[m.ID]
	l.mu.Unlock()
	began := time.Now()
	var next *memberList
	var living []statestore.ReportedApplication
	if last == nil || last.epoch != m.Epoch || began.Sub(last.whole) > wholeEvery {
		all, err := l.ask(ctx, m, &yarnpb.GetApplicationsRequestProto{})
		if err != nil {
			return nil, err
		}
		none := map[creel.ApplicationID]statestore.ReportedApplication{}
		next = &memberList{epoch: m.Epoch, whole: began, ended: none}
		living = next.sort(all)
	} else {
		// What lives first: what ends between the two answers is in both, and lives until the next look.
		lives, err := l.ask(ctx, m, &yarnpb.GetApplicationsRequestProto{ApplicationStates: livingStates})
		if err != nil {
			return nil, err
		}
		since, err := l.ask(ctx, m, &yarnpb.GetApplicationsRequestProto{
			FinishBegin: proto.Int64(max(1, last.until-overlap.Milliseconds())),
		})
		if err != nil {
			return nil, err
		}
		next = &memberList{epoch: m.Epoch, whole: last.whole, until: last.until, ended: maps.Clone(last.ended)}
		next.sort(since)
		living = next.sort(lives)
	}
	next.seen = time.Now()
	l.keep(m.ID, last, next)
	return next.with(living), nil
}

// keep leaves a look for the next one, if that which it goes on from is still the last one, and forgets members that
// nobody has looked at for long: they were removed.
func (l *lists) keep(id creel.SubclusterID, last, next *memberList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[id] != last {
		return
	}
	l.of[id] = next
	maps.DeleteFunc(l.of, func(_ creel.SubclusterID, k *memberList) bool { return next.seen.Sub(k.seen) > wholeEvery })
}

// sort adds what has ended of a list, and returns what lives.
func (k *memberList) sort(list *yarnpb.GetApplicationsResponseProto) (living []statestore.ReportedApplication) {
	for _, r := range list.GetApplications() {
		a, ok := reportedApplication(r)
		switch {
		case !ok:
		case a.Ended:
			k.until = max(k.until, r.GetFinishTime())
			k.ended[a.ID] = a
		default:
			living = append(living, a)
		}
	}
	return living
}

// with is what has ended, and what lives, which counts if one is in both.
func (k *memberList) with(living []statestore.ReportedApplication) []statestore.ReportedApplication {
	out := make([]statestore.ReportedApplication, 0, len(k.ended)+len(living))
	return append(slices.AppendSeq(out, maps.Values(k.ended)), living...)
}

// livingStates are those of applications that have not ended.
var livingStates = []yarnpb.YarnApplicationStateProto{
	yarnpb.YarnApplicationStateProto_NEW, yarnpb.YarnApplicationStateProto_NEW_SAVING,
	yarnpb.YarnApplicationStateProto_SUBMITTED, yarnpb.YarnApplicationStateProto_ACCEPTED,
	yarnpb.YarnApplicationStateProto_RUNNING,
}

// getApplications asks a member for applications.
func getApplications(
	ctx context.Context, m *remote.Member, request *yarnpb.GetApplicationsRequestProto,
) (*yarnpb.GetApplicationsResponseProto, error) {
	body, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	b, err := m.Client(ctx, remote.List, "", "getApplications", body)
	if err != nil {
		return nil, err
	}
	var list yarnpb.GetApplicationsResponseProto
	return &list, proto.Unmarshal(b, &list)
}

// reportedApplication is an application of a member's list, unmanaged ones included; false for a UAM with an id of
// its own, which has no home.
func reportedApplication(a *yarnpb.ApplicationReportProto) (statestore.ReportedApplication, bool) {
	if _, ok := router.UAMOf(a.GetUnmanagedApplication(), a.GetApplicationTags()); ok {
		return statestore.ReportedApplication{}, false
	}
	state := a.GetYarnApplicationState()
	return statestore.ReportedApplication{
		ID:        yarnpb.ToApplicationID(a.GetApplicationId()),
		Unmanaged: a.GetUnmanagedApplication(),
		Ended: state == yarnpb.YarnApplicationStateProto_FINISHED ||
			state == yarnpb.YarnApplicationStateProto_FAILED || state == yarnpb.YarnApplicationStateProto_KILLED,
		Attempt:   a.GetCurrentApplicationAttemptId().GetAttemptId(),
		Submitted: time.UnixMilli(a.GetStartTime()),
		Held:      yarnpb.HeldUnder(a),
	}, true
}
