// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
)

// rememberer is a ResourceManager that stores for each application its reported end, in ms of its own clock; 0: it is
// live.
type rememberer struct {
	ends    map[int32]int64
	told    int // reports given
	between func()
}

func (r *rememberer) ask(
	_ context.Context, _ *subcluster.Status, request *yarnpb.GetApplicationsRequestProto,
) (*yarnpb.GetApplicationsResponseProto, error) {
	list := &yarnpb.GetApplicationsResponseProto{}
	for id, end := range r.ends {
		state := yarnpb.YarnApplicationStateProto_RUNNING
		if end > 0 {
			state = yarnpb.YarnApplicationStateProto_FINISHED
		}
		if s := request.GetApplicationStates(); len(s) > 0 && !slices.Contains(s, state) ||
			request.FinishBegin != nil && end < request.GetFinishBegin() {
			continue
		}
		list.Applications = append(list.Applications, &yarnpb.ApplicationReportProto{
			ApplicationId:        yarnpb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 1, ID: id}),
			YarnApplicationState: state.Enum(), FinishTime: proto.Int64(end),
		})
	}
	r.told += len(list.Applications)
	if r.between != nil {
		r.between()
	}
	return list, nil
}

// A member that remembers a thousand ended applications returns only live and newly ended ones, and the list is still
// complete.
func TestMemberReportsCompletionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rememberer{ends: map[int32]int64{}}
		now := func() int64 { return time.Now().Add(-72 * time.Hour).UnixMilli() } // its clock is another
		for id := range int32(1000) {
			r.ends[id+1] = now()
		}
		r.ends[2001], r.ends[2002] = 0, 0
		l := &Lists{ask: r.ask, of: map[creel.SubclusterID]*memberList{}}
		m := &subcluster.Status{Member: subcluster.Member{ID: "sc-1", Epoch: 1}}
		look := func(when string, ended, living, told int) {
			t.Helper()
			r.told = 0
			list, err := l.Member(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			is := map[creel.ApplicationID]bool{}
			for _, a := range list {
				is[a.ID] = a.Ended
			}
			n := 0
			for _, over := range is {
				if over {
					n++
				}
			}
			if n != ended || len(is)-n != living || r.told != told {
				t.Errorf("%s: %d ended and %d live, of %d reports; want %d, %d, %d", when, n, len(is)-n, r.told, ended,
					living, told)
			}
		}
		look("at first", 1000, 2, 1002)
		time.Sleep(10 * time.Minute)
		r.ends[2001], r.ends[2003] = now(), 0
		look("one has ended, and one was submitted", 1001, 2, 2+1+1000) // the thousand are of the overlap
		time.Sleep(10 * time.Minute)
		look("nothing has happened", 1001, 2, 2+1)
		r.between = func() { r.ends[2002] = now() }
		look("one ends between the two answers", 1001, 2, 2+2)
		r.between = nil
		look("it has ended", 1002, 1, 1+1)
		delete(r.ends, 1)
		look("one is forgotten", 1002, 1, 1+1)
		m.Epoch = 2
		look("it has started anew", 1001, 1, 1002)
		look("it has been up for a while", 1001, 1, 1+1)
		r.ends[2004] = 1 // as its clock was set back
		look("an end was missed", 1001, 1, 1+1)
		time.Sleep(wholeEvery + time.Second)
		look("an hour later", 1002, 1, 1003)
	})
}

// Two concurrent reads of a member do not block each other, and both return the complete list. A member that is no
// longer read is forgotten.
func TestMemberSamplesAreConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rememberer{ends: map[int32]int64{1: 1, 2: 0}}
		gate := make(chan struct{})
		var held bool
		l := &Lists{of: map[creel.SubclusterID]*memberList{}}
		l.ask = func(ctx context.Context, m *subcluster.Status, request *yarnpb.GetApplicationsRequestProto) (
			*yarnpb.GetApplicationsResponseProto, error) {
			list, err := r.ask(ctx, m, request)
			if !held {
				held = true
				<-gate // the first answer is slow
			}
			return list, err
		}
		m := &subcluster.Status{Member: subcluster.Member{ID: "sc-1", Epoch: 1}}
		slow := make(chan int)
		go func() {
			list, err := l.Member(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			slow <- len(list)
		}()
		synctest.Wait()
		r.ends[3] = 3
		if list, err := l.Member(t.Context(), m); err != nil || len(list) != 3 {
			t.Errorf("beside a slow look: %d applications, %v; want 3", len(list), err)
		}
		close(gate)
		if n := <-slow; n != 2 {
			t.Errorf("the slow look: %d applications, want the 2 there were", n)
		}
		if kept := l.of["sc-1"].ended; len(kept) != 2 {
			t.Errorf("the slow look has left %d ended applications in place of the newer look's 2", len(kept))
		}
		time.Sleep(wholeEvery + time.Minute)
		if _, err := l.Member(t.Context(), &subcluster.Status{Member: subcluster.Member{ID: "sc-2", Epoch: 1}}); err != nil {
			t.Error(err)
		}
		if len(l.of) != 1 {
			t.Errorf("%d members are remembered, want the one that is looked at", len(l.of))
		}
	})
}
