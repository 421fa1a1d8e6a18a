// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// A ResourceManager that lists one ended application forgets earlier ones. A client repeats the submission of a
// forgotten application, also after a restart of the ResourceManager. The response reports the end, and nothing runs.
func TestRepeatAfterTheEndRunsNothing(t *testing.T) {
	operatorsSee(t)
	dir := t.TempDir()
	f := foundAs(t, redistest.Start(t).URL(), layout{ofRM: func(id string) []string {
		return []string{
			"creel.rm.data=" + filepath.Join(dir, id),
			"yarn.resourcemanager.max-completed-applications=1",
		}
	}})
	b := &behindPaths{federation: f, client: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})}
	t.Cleanup(func() { b.client.Close() })
	s := &story{behindPaths: b}
	var forgotten []string // one for each manner
	end := func(id string) {
		f.await(id+" is killed", func() bool { return f.kill(f.router, id).code == http.StatusOK })
		f.await(id+" has ended", func() bool { state := f.state(f.router, id); return state == "KILLED" || state == "" })
	}
	for _, how := range manners {
		id := f.newID()
		f.await("the submission of "+id+" is accepted", func() bool { return s.once(id, how.byRPC, how.managed) == nil })
		end(id)
		forgotten = append(forgotten, id)
	}
	f.await("each ResourceManager forgets them", func() bool {
		left := 0
		for _, id := range forgotten {
			left += len(f.homes(id))
		}
		if left > 0 {
			id := f.newID()
			f.submitSoon(id)
			end(id)
		}
		return left == 0
	})
	repeat := func(when string) {
		for i, how := range manners {
			err := s.once(forgotten[i], how.byRPC, how.managed)
			if err == nil || !strings.Contains(err.Error(), "has ended") {
				t.Errorf("%s, the repeat by %s is answered: %v", when, how.name, err)
			}
			if at := f.homes(forgotten[i]); len(at) > 0 {
				t.Errorf("%s, the repeat by %s runs at %v", when, how.name, at)
			}
		}
	}
	repeat("after the end")
	for _, m := range f.members {
		m.rm.Kill()
		m.rm.again(t)
	}
	f.await("all members are active again", func() bool { return len(f.active()) == len(f.members) })
	repeat("after a restart of the ResourceManagers")
}

// Hadoop's ResourceManager lists one ended application and forgets earlier ones, before a router has read their ends.
// A repeat of a forgotten submission is rejected and nothing runs twice. A restart without recovery loses applications
// that ran; the repeat of their submissions runs.
func TestRepeatForgottenByHadoopRunsNothing(t *testing.T) {
	operatorsSee(t)
	var theirs *hadoop.ResourceManager
	s := &story{behindPaths: foundBehindPaths(t, redistest.Start(t).URL(), []*farMember{{
		name: "hadoop",
		start: func(f *federation, name string) memberProcess {
			theirs = startHadoopRM(f, name, hadoop.Conf{"yarn.resourcemanager.max-completed-applications": "1"})
			return memberOf(theirs)
		},
	}})}
	submitted := func() []string {
		ids := s.newIDs(len(manners))
		for i, how := range manners {
			s.await("the submission of "+ids[i]+" is accepted", func() bool {
				return s.once(ids[i], how.byRPC, how.managed) == nil
			})
		}
		return ids
	}
	ended := submitted()
	for _, id := range append(ended, submitted()...) { // the later ones make it forget the earlier
		s.await(id+" is killed", func() bool { return s.kill(s.router, id).code == http.StatusOK })
	}
	for _, id := range ended {
		s.await("the ResourceManager forgets "+id, func() bool { return len(s.homes(id)) == 0 })
	}
	for i, how := range manners {
		err := s.once(ended[i], how.byRPC, how.managed)
		if err == nil || !strings.Contains(err.Error(), ended[i]+" has ended") ||
			!strings.Contains(err.Error(), "hadoop accepted it") {
			t.Errorf("the repeat by %s is answered: %v", how.name, err)
		}
		if at := s.homes(ended[i]); len(at) > 0 {
			t.Errorf("the repeat by %s runs at %v", how.name, at)
		}
	}

	lost := submitted()
	theirs.Kill()
	theirs.Restart(t)
	for i, how := range manners {
		if at := s.homes(lost[i]); len(at) > 0 {
			t.Fatalf("%s survived a restart without recovery, at %v", lost[i], at)
		}
		s.await("the repeat of "+lost[i]+" by "+how.name+" is accepted", func() bool {
			return s.once(lost[i], how.byRPC, how.managed) == nil
		})
		s.await(lost[i]+" runs again", func() bool { return len(s.homes(lost[i])) == 1 })
	}
}
