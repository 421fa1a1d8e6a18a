// SPDX-License-Identifier: Apache-2.0

package client

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

// A member remembers tens of thousands of ended applications, and tidy and reconcile read the list every few minutes.
// They read live applications and those that ended since the previous read. The whole list is read first, after a
// ResourceManager's restart, and once per wholeEvery as a safeguard.
const (
	wholeEvery = time.Hour
	// overlap is the time by which the next read starts before the newest end of the previous one, because an end is
	// dated before it is durable and listed.
	overlap = time.Minute
)

// Lists lists the applications of members for the router's own loops. It keeps the ended ones between reads. It is safe
// for concurrent use.
type Lists struct {
	ask func(context.Context, *subcluster.Status, *yarnpb.GetApplicationsRequestProto) (
		*yarnpb.GetApplicationsResponseProto, error)

	mu sync.Mutex
	of map[creel.SubclusterID]*memberList
}

// memberList is the state that one read of a member's list passes to the next. It is immutable. Reads call the member
// without a lock, and of two concurrent reads the first to finish stores its result.
type memberList struct {
	epoch int64
	whole time.Time // time of the last whole read
	seen  time.Time // end of this read
	until int64     // newest end seen, in ms of the member's clock
	ended map[creel.ApplicationID]statestore.ReportedApplication
}

// NewLists makes the lists of a pool's members.
func NewLists(pool *remote.Pool) *Lists {
	return &Lists{
		ask: func(ctx context.Context, m *subcluster.Status, request *yarnpb.GetApplicationsRequestProto) (
			*yarnpb.GetApplicationsResponseProto, error) {
			return getApplications(ctx, pool.Member(m), request)
		},
		of: map[creel.SubclusterID]*memberList{},
	}
}

// Member lists a member's applications. Ended ones come first, including some that its ResourceManager may have
// dropped since the last whole read, then live ones.
func (l *Lists) Member(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
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
		// Read live applications first: one that ends between the two calls is in both answers, and counts as live
		// until the next read.
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

// keep stores the result of a read if the list that it continues is still the current one. It also drops members
// without a recent read: they were removed.
func (l *Lists) keep(id creel.SubclusterID, last, next *memberList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[id] != last {
		return
	}
	l.of[id] = next
	maps.DeleteFunc(l.of, func(_ creel.SubclusterID, k *memberList) bool { return next.seen.Sub(k.seen) > wholeEvery })
}

// sort adds a list's ended applications and returns the live ones.
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

// with returns the ended applications and the live ones. An application in both counts as live.
func (k *memberList) with(living []statestore.ReportedApplication) []statestore.ReportedApplication {
	out := make([]statestore.ReportedApplication, 0, len(k.ended)+len(living))
	return append(slices.AppendSeq(out, maps.Values(k.ended)), living...)
}

// livingStates are the states of applications that have not ended.
var livingStates = []yarnpb.YarnApplicationStateProto{
	yarnpb.YarnApplicationStateProto_NEW, yarnpb.YarnApplicationStateProto_NEW_SAVING,
	yarnpb.YarnApplicationStateProto_SUBMITTED, yarnpb.YarnApplicationStateProto_ACCEPTED,
	yarnpb.YarnApplicationStateProto_RUNNING,
}

// Applications implements Member.
func (c member) Applications(ctx context.Context) (out []statestore.ReportedApplication, err error) {
	list, err := getApplications(ctx, c.m, &yarnpb.GetApplicationsRequestProto{})
	for _, r := range list.GetApplications() {
		if a, ok := reportedApplication(r); ok {
			out = append(out, a)
		}
	}
	return out, err
}

// getApplications requests a member's applications.
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
	return &list, list.UnmarshalVT(b)
}

// reportedApplication converts an application of a member's list, unmanaged ones included; ok is false for a UAM with
// a separate id, which has no home.
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
		Running:   state == yarnpb.YarnApplicationStateProto_RUNNING,
		Attempt:   a.GetCurrentApplicationAttemptId().GetAttemptId(),
		Submitted: time.UnixMilli(a.GetStartTime()),
		Held:      yarnpb.HeldUnder(a),
		Newest:    yarnpb.NewestClaim(a),
	}, true
}
