// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

// federation answers for members, and counts their calls.
type federation struct {
	hadoop map[creel.SubclusterID]bool
	answer map[creel.SubclusterID]func(path string) (string, error)

	mu    sync.Mutex
	calls map[creel.SubclusterID][]string // paths without queries
}

// changes answers with applications by changes: the list once, and no changes after it.
func changes(apps string) func(path string) (string, error) {
	return func(path string) (string, error) {
		if strings.Contains(path, "since=1") {
			return `{"at":"1"}`, nil
		}
		return `{"at":"1","whole":true,"apps":[` + apps + `]}`, nil
	}
}

// reported answers with applications in YARN's form.
func reported(apps string) func(path string) (string, error) {
	return func(string) (string, error) { return `{"apps":{"app":[` + apps + `]}}`, nil }
}

func (f *federation) list() *List {
	f.calls = map[creel.SubclusterID][]string{}
	return New(Config{
		Ask: func(
			ctx context.Context, asked func(creel.SubclusterID) bool, call func(context.Context, Member) ([]*Row, error),
		) (parts []router.Part[[]*Row]) {
			for id, answer := range f.answer {
				if !asked(id) {
					continue
				}
				get := func(_ context.Context, path string) ([]byte, error) {
					f.mu.Lock()
					defer f.mu.Unlock()
					page, _, _ := strings.Cut(path, "?")
					f.calls[id] = append(f.calls[id], page)
					text, err := answer(path)
					return []byte(text), err
				}
				p := router.Part[[]*Row]{Member: id}
				p.Value, p.Err = call(ctx, Member{id, get})
				parts = append(parts, p)
			}
			slices.SortFunc(parts, func(a, b router.Part[[]*Row]) int {
				return strings.Compare(string(a.Member), string(b.Member))
			})
			return parts
		},
		RunsHadoop: func(id creel.SubclusterID) bool { return f.hadoop[id] },
		Home:       func(creel.ApplicationID) (creel.SubclusterID, bool) { return "", false },
		User:       "creel",
		Allows: func(user string) func(acl string) bool {
			return func(acl string) bool { return acl == user }
		},
		Changed: func() int64 { return 0 },
	})
}

func (f *federation) count(id creel.SubclusterID, path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.calls[id] {
		if p == path {
			n++
		}
	}
	if n != len(f.calls[id]) {
		return -1
	}
	return n
}

func read(t *testing.T, l *List, user string) *View {
	t.Helper()
	v, err := l.Read(t.Context(), Reader{Identity: "user.name=" + user, User: user})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func page(t *testing.T, l *List, user string) *Page {
	t.Helper()
	f, err := NewFilter(Query{Limit: 100, Sort: "id"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := read(t, l, user).Page(f, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	changesPath = "/api/v1/apps/changes"
	ownPath     = "/api/v1/apps"
	yarnPath    = "/ws/v1/cluster/apps"
)

// A member that runs Hadoop's ResourceManager is asked for each viewer. The members of creel keep their shared lists:
// viewers cost them no calls.
func TestHadoopMemberIsAskedAlone(t *testing.T) {
	f := &federation{
		hadoop: map[creel.SubclusterID]bool{"sc-h": true},
		answer: map[creel.SubclusterID]func(string) (string, error){
			"sc-a": changes(`{"id":"application_1_0001","user":"ann","state":"RUNNING","started":1,"containers":2}`),
			"sc-b": changes(`{"id":"application_1_0002","user":"bob","state":"RUNNING","started":2,"containers":4}`),
			"sc-h": reported(`{"id":"application_1_0003","user":"zoe","state":"RUNNING","startedTime":3,"runningContainers":8}`),
		},
	}
	synctest.Test(t, func(t *testing.T) {
		l := f.list()
		const viewers = 20
		for range 2 {
			for i := range viewers {
				p := page(t, l, fmt.Sprint("user", i))
				if len(p.Rows) != 3 || p.Matching.Running != 3 || p.Matching.Containers != 8 {
					t.Fatalf("the list: %+v, %+v", p.Rows, p.Matching)
				}
			}
		}
		if p := page(t, l, "ann"); p.Matching.Containers != 2+8 || p.Rows[0].Started != 1 || p.Rows[1].Started != 0 {
			t.Errorf("ann's list: %+v, %+v", p.Rows, p.Matching)
		}
		for id, want := range map[creel.SubclusterID]int{"sc-a": 1, "sc-b": 1} {
			if n := f.count(id, changesPath); n != want {
				t.Errorf("%s has %d calls for changes, want %d: %v", id, n, want, f.calls[id])
			}
		}
		if n := f.count("sc-h", yarnPath); n != viewers+1 {
			t.Errorf("Hadoop's member has %d calls, want one for each viewer", n)
		}
		if row := l.Last(creel.ApplicationID{ClusterTimestamp: 1, ID: 2}); row == nil || row.Home != "sc-b" {
			t.Errorf("the last list has %+v", row)
		}
		if l.Waiting(time.Now()) != nil {
			t.Error("waiting applications are counted without those of Hadoop's member")
		}
		if n := len(l.Tallies(t.Context(), nil)); n != 1 {
			t.Errorf("%d queues are counted", n)
		}
	})
}

// A member that rejects this router publishes no changes. It is asked as each viewer, and after a minute again as the
// router.
func TestMemberThatRejectsRouterIsAskedAgain(t *testing.T) {
	rejects := true
	f := &federation{answer: map[creel.SubclusterID]func(string) (string, error){
		"sc-a": changes(`{"id":"application_1_0001","user":"ann","state":"RUNNING","started":1}`),
		"sc-b": func(path string) (string, error) {
			switch own := `{"id":"application_1_0002","user":"bob","state":"RUNNING","started":2,"containers":4}`; {
			case !strings.HasPrefix(path, changesPath):
				return `{"apps":[` + own + `]}`, nil
			case rejects:
				return "", &remote.StatusError{Code: http.StatusForbidden}
			default:
				return changes(own)(path)
			}
		},
	}}
	synctest.Test(t, func(t *testing.T) {
		l := f.list()
		for range 3 {
			if p := page(t, l, "bob"); len(p.Rows) != 2 || p.Matching.Containers != 4 {
				t.Fatalf("the list: %+v", p.Rows)
			}
			time.Sleep(2 * time.Second)
		}
		asked := func(path string) (n int) {
			for _, p := range f.calls["sc-b"] {
				if p == path {
					n++
				}
			}
			return n
		}
		if asked(changesPath) != 1 || asked(ownPath) != 3 {
			t.Errorf("in six seconds it is asked %q", f.calls["sc-b"])
		}
		rejects = false
		time.Sleep(unfed)
		for range 3 {
			page(t, l, "bob")
			time.Sleep(2 * time.Second)
		}
		if p := page(t, l, "bob"); len(p.Rows) != 2 || p.Matching.Containers != 4 || asked(changesPath) < 3 || asked(ownPath) > 4 {
			t.Errorf("after a minute: %+v; it was asked %q", p.Rows, f.calls["sc-b"])
		}
	})
}

// The home of an application decides the right to see it, also if its home and its UAM's member publish in different ways.
func TestHomeDecidesWhoSeesApplication(t *testing.T) {
	const (
		lineUAM = `{"id":"application_1_0001","user":"ann","name":"uam","state":"RUNNING","started":5,"containers":2,` +
			`"unmanaged":true,"tags":["creel-uam"]}`
		reportUAM = `{"id":"application_1_0001","user":"ann","name":"uam","state":"RUNNING","startedTime":5,` +
			`"runningContainers":2,"unmanagedApplication":true,"applicationTags":"creel-uam"}`
	)
	hadoopHome := func(path string) (string, error) { // it sends others neither a start nor containers
		if strings.Contains(path, "user.name=ann") || strings.Contains(path, "user.name=friend") {
			return reported(`{"id":"application_1_0001","user":"ann","state":"RUNNING","startedTime":3,"runningContainers":8}`)("")
		}
		return reported(`{"id":"application_1_0001","user":"ann","state":"RUNNING","startedTime":0,"runningContainers":-1}`)("")
	}
	for name, f := range map[string]*federation{
		"home at Hadoop": {answer: map[creel.SubclusterID]func(string) (string, error){
			"sc-a": changes(lineUAM), "sc-h": hadoopHome,
		}},
		"home at creel": {answer: map[creel.SubclusterID]func(string) (string, error){
			"sc-a": changes(`{"id":"application_1_0001","user":"ann","state":"RUNNING","started":3,"containers":8,"viewers":"friend"}`),
			"sc-h": reported(reportUAM),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f.hadoop = map[creel.SubclusterID]bool{"sc-h": true}
			synctest.Test(t, func(t *testing.T) {
				l := f.list()
				for user, containers := range map[string]int64{"ann": 10, "friend": 10, "mallory": 0} {
					p := page(t, l, user)
					if len(p.Rows) != 1 || p.Rows[0].Containers != containers || p.Matching.Containers != containers ||
						len(p.Rows[0].Elsewhere) != 1 || (p.Rows[0].Started > 0) != (containers > 0) {
						t.Errorf("%s sees %+v, counts %+v", user, p.Rows, p.Matching)
					}
				}
			})
		})
	}
}

// A member that stops to answer keeps its last rows with their age, whichever way it publishes.
func TestSilentMembersKeepTheirRows(t *testing.T) {
	silent := false
	orSilent := func(answer func(string) (string, error)) func(string) (string, error) {
		return func(path string) (string, error) {
			if silent {
				return "", errors.New("silent")
			}
			return answer(path)
		}
	}
	f := &federation{
		hadoop: map[creel.SubclusterID]bool{"sc-h": true},
		answer: map[creel.SubclusterID]func(string) (string, error){
			"sc-a": orSilent(changes(`{"id":"application_1_0001","user":"ann","state":"RUNNING","started":1,"containers":2}`)),
			"sc-h": orSilent(reported(`{"id":"application_1_0003","user":"ann","state":"RUNNING","startedTime":3,"runningContainers":8}`)),
		},
	}
	synctest.Test(t, func(t *testing.T) {
		l := f.list()
		if p := page(t, l, "ann"); p.Matching.Containers != 10 {
			t.Fatalf("counts: %+v", p.Matching)
		}
		silent = true
		time.Sleep(10 * time.Second)
		p := page(t, l, "ann")
		if len(p.Rows) != 2 || p.Matching.Containers != 0 || p.Matching.Running != 2 {
			t.Fatalf("the list: %+v, %+v", p.Rows, p.Matching)
		}
		for _, a := range p.Rows {
			if a.AgeSeconds != 10 {
				t.Errorf("%s is %v s old", a.ID, a.AgeSeconds)
			}
		}
		if parts := read(t, l, "ann").Parts; len(parts) != 2 || parts[0].Err == nil || parts[1].Err == nil {
			t.Errorf("the parts: %+v", parts)
		}
	})
}

// If every member rejects a viewer, the list is an error; if one does, the others' applications are listed.
func TestRejectionOfViewer(t *testing.T) {
	refuse := func(string) (string, error) { return "", &remote.StatusError{Code: http.StatusForbidden} }
	f := &federation{
		hadoop: map[creel.SubclusterID]bool{"sc-h": true},
		answer: map[creel.SubclusterID]func(string) (string, error){
			"sc-a": changes(`{"id":"application_1_0001","user":"ann","state":"RUNNING","started":1}`), "sc-h": refuse,
		},
	}
	synctest.Test(t, func(t *testing.T) {
		l := f.list()
		if p := page(t, l, "ann"); len(p.Rows) != 1 {
			t.Errorf("the list: %+v", p.Rows)
		}
		delete(f.answer, "sc-a")
		time.Sleep(2 * time.Second)
		if v, err := l.Read(t.Context(), Reader{Identity: "user.name=ann", User: "ann"}); !errors.Is(err, creel.ErrNotPermitted) {
			t.Errorf("the list: %+v, %v", v, err)
		}
	})
}

// Only members can allow a caller to act for another user: all of them are asked as that user.
func TestActingForAnotherAsksAllMembers(t *testing.T) {
	f := &federation{answer: map[creel.SubclusterID]func(string) (string, error){
		"sc-a": func(path string) (string, error) {
			if !strings.HasPrefix(path, ownPath+"?doAs=ann") {
				t.Errorf("asked %s", path)
			}
			return `{"apps":[{"id":"application_1_0001","user":"ann","state":"RUNNING"}]}`, nil
		},
	}}
	synctest.Test(t, func(t *testing.T) {
		v, err := f.list().Read(t.Context(), Reader{Identity: "doAs=ann&user.name=proxy", User: "proxy", DoAs: true})
		if err != nil || len(v.Rows) != 1 {
			t.Errorf("the list: %+v, %v", v, err)
		}
	})
}
