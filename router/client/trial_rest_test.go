// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// A member passes if it answers 404 under a near clock; other answers, and a far clock, are findings.
func TestTrialKillsAbsentApplicationByREST(t *testing.T) {
	absent := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	for _, c := range []struct {
		name  string
		code  int
		ahead time.Duration
		want  string
	}{
		{"passes", http.StatusNotFound, 0, ""},
		{"rejects user.name", http.StatusForbidden, 0, "refuses kills by REST: no user"},
		{"kills anything", http.StatusOK, 0, "refuses kills by REST: it reported the end"},
		{"far clock", http.StatusNotFound, 11*time.Minute - time.Second, "has a clock 10 min ahead of this router's"},
	} {
		var called string
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			called = r.Method + " " + r.URL.String()
			w.Header().Set("Date", time.Now().Add(c.ahead).UTC().Format(http.TimeFormat))
			w.WriteHeader(c.code)
			w.Write([]byte(`{"RemoteException":{"message":"no user"}}`))
		}))
		pool := remote.NewPool(remote.Config{KindOf: yarnrpc.KindOf})
		m := pool.Member(&subcluster.Status{Member: subcluster.Member{
			ID: "east", Addresses: subcluster.Addresses{Web: strings.TrimPrefix(web.URL, "http://")},
		}})
		found, err := TryKillByREST(t.Context(), m, "tester", absent)
		if err != nil || called != "PUT /ws/v1/cluster/apps/application_1_0001/state?user.name=tester" {
			t.Errorf("%s: %v, %s", c.name, err, called)
		}
		if got := texts(found); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		web.Close()
		if _, err := TryKillByREST(t.Context(), m, "tester", absent); !errors.Is(err, creel.ErrUnavailable) {
			t.Errorf("%s, closed: %v", c.name, err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}

func texts(found []router.Refusal) (all string) {
	for _, r := range found {
		all += r.Text
	}
	return all
}
