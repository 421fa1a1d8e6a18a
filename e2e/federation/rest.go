// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

var httpClient = &http.Client{Timeout: time.Minute}

// App contains the fields of YARN's app document that the tests read.
type App struct {
	ID, State, FinalStatus, Diagnostics string
	Unmanaged                           bool `json:"unmanagedApplication"`
	Containers                          int  `json:"runningContainers"`
	Priority                            int
}

// Call makes one REST call as the OS user and returns the status code.
func Call(t testing.TB, method, web, path string, in, out any) (int, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+web+path+"?user.name="+url.QueryEscape(hadoop.OSUser(t)), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode >= 300 {
		return resp.StatusCode, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	if out == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(b, out)
}

// NewApplication requests an application id from a router.
func NewApplication(t testing.TB, web string) (string, error) {
	var doc struct {
		ID string `json:"application-id"`
	}
	_, err := Call(t, http.MethodPost, web, "/ws/v1/cluster/apps/new-application", nil, &doc)
	return doc.ID, err
}

// Submit submits an application whose AM sleeps.
func Submit(t testing.TB, web, id, queue string) error {
	code, err := Call(t, http.MethodPost, web, "/ws/v1/cluster/apps", map[string]any{
		"application-id":    id,
		"application-name":  "sleeper",
		"queue":             queue,
		"application-type":  "TEST",
		"max-app-attempts":  1,
		"resource":          map[string]any{"memory": 128, "vCores": 1},
		"am-container-spec": map[string]any{"commands": map[string]any{"command": "sleep 1000"}},
	}, nil)
	if err == nil && code != http.StatusAccepted {
		err = fmt.Errorf("submission answered %d", code)
	}
	return err
}

// Report reads an application at a web address.
func Report(t testing.TB, web, id string) (App, int, error) {
	var doc struct{ App App }
	code, err := Call(t, http.MethodGet, web, "/ws/v1/cluster/apps/"+id, nil, &doc)
	return doc.App, code, err
}

// KillApp kills an application at a web address and waits until it is killed.
func KillApp(t testing.TB, web, id string) {
	t.Helper()
	if _, err := Call(
		t,
		http.MethodPut,
		web,
		"/ws/v1/cluster/apps/"+id+"/state",
		map[string]string{"state": "KILLED"},
		nil,
	); err != nil {
		t.Fatal(err)
	}
	AwaitState(t, web, id, "KILLED")
}

// AwaitState waits until a web address reports the application in this state.
func AwaitState(t testing.TB, web, id, state string) {
	t.Helper()
	var last App
	var err error
	if process.Poll(nil, func() bool {
		last, _, err = Report(t, web, id)
		return err == nil && last.State == state
	}) != nil {
		t.Fatalf("%s is not %s: %+v, %v", id, state, last, err)
	}
}

// Home returns an application's home subcluster, as the routers report it.
func (f *Federation) Home(t testing.TB, id string) *Subcluster {
	t.Helper()
	var why struct{ Home string }
	var err error
	for _, addresses := range f.RouterAddresses {
		if _, err = Call(t, http.MethodGet, addresses.Web, "/api/v1/apps/"+id+"/why", nil, &why); err == nil {
			break
		}
	}
	for _, s := range f.Subclusters {
		if s.ID == why.Home {
			return s
		}
	}
	t.Fatalf("the home of %s is %q, %v", id, why.Home, err)
	return nil
}

// Other returns another subcluster.
func (f *Federation) Other(s *Subcluster) *Subcluster {
	for _, o := range f.Subclusters {
		if o != s {
			return o
		}
	}
	return nil
}

// AwaitActive waits until a router reports this number of active members.
func AwaitActive(t testing.TB, web string, n int) {
	t.Helper()
	seen := 0
	if process.Poll(nil, func() bool {
		var doc struct{ Subclusters []struct{ State string } }
		if _, err := Call(t, http.MethodGet, web, "/api/v1/subclusters", nil, &doc); err != nil {
			return false
		}
		seen = 0
		for _, s := range doc.Subclusters {
			if strings.EqualFold(s.State, "active") {
				seen++
			}
		}
		return seen == n
	}) != nil {
		t.Fatalf("the router sees %d active members, want %d", seen, n)
	}
}
