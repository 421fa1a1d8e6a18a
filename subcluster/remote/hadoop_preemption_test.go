// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

// hadoopConf answers as Hadoop's ResourceManager does with a scheduler of 16 GB and 64 cores, a quarter of them on
// nodes of a label, and this configuration, nil for that of a file.
func hadoopConf(t *testing.T, conf map[string]string) *HadoopPreemption {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ws/v1/cluster/scheduler":
			fmt.Fprint(w, `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root","capacities":{
				"queueCapacitiesByPartition":[{"partitionName":"","effectiveMinResource":{"memory":12288,"vCores":48}},
				{"partitionName":"gpu","effectiveMinResource":{"memory":4096,"vCores":16},
				"effectiveMaxResource":{"memory":4096,"vCores":16}}]}}}}`)
		case "/jmx":
			fmt.Fprint(w, `{"beans":[{"name":"root","AggregateMemoryMBPreempted":1024,"AggregateVcoresPreempted":2}]}`)
		case SchedulerConfPath:
			if conf == nil {
				http.Error(w, "not mutable", http.StatusBadRequest)
				return
			}
			if r.Method == http.MethodGet {
				var doc struct {
					Property []map[string]string `json:"property"`
				}
				for name, value := range conf {
					doc.Property = append(doc.Property, map[string]string{"name": name, "value": value})
				}
				_ = json.NewEncoder(w).Encode(doc)
				return
			}
			var change struct {
				Global struct{ Entry []QueueParam } `json:"global-updates"`
			}
			body, _ := io.ReadAll(r.Body)
			if err := json.Unmarshal(body, &change); err != nil || len(change.Global.Entry) == 0 {
				t.Errorf("%s: %v", body, err)
			}
			for _, e := range change.Global.Entry {
				if conf[e.Key] = e.Value; e.Value == "" {
					delete(conf, e.Key)
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return &HadoopPreemption{Web: NewWebPort(subcluster.Addresses{Web: strings.TrimPrefix(s.URL, "http://")}, login.Login{}, nil), User: "root"}
}

// The limit of one round is a part of the cluster that is enough for whole containers. An administrator's value, if
// any, is restored also by an agent that was started since.
func TestRoundLimitIsSetAndRestored(t *testing.T) {
	for _, own := range []string{"", "0.3"} {
		conf := map[string]string{"yarn.scheduler.capacity.root.a.capacity": "100"}
		if own != "" {
			conf[perRound] = own
		}
		h := hadoopConf(t, conf)
		for _, c := range []struct {
			most creel.Resource
			want string
		}{
			{creel.NewResource(4096, 64), "0.250030518"}, // half a MB more
			{creel.NewResource(4096, 8), "0.132812500"},  // half a core more
			{creel.NewResource(0, 8), "0.000000000"},
			{creel.NewResource(99999, 999), "1.000000000"},
		} {
			now, err := h.Read(t.Context())
			if err != nil || !now.Change || now.Taken.MemoryMB != 1024 || now.Taken.VCores != 2 {
				t.Fatalf("%+v, %v", now, err)
			}
			if err := h.Bind(t.Context(), c.most); err != nil || conf[perRound] != c.want {
				t.Errorf("%s of 16 GB and 64 cores is %q, want %s (%v)", c.most, conf[perRound], c.want, err)
			}
		}
		again := &HadoopPreemption{Web: h.Web, User: h.User}
		if now, err := again.Read(t.Context()); err != nil || !now.Bound {
			t.Fatalf("%+v, %v", now, err)
		}
		if err := again.Restore(t.Context()); err != nil || conf[perRound] != own || len(conf) > 2 {
			t.Errorf("restored it is %v, with %q before: %v", conf, own, err)
		}
	}
	if now, err := hadoopConf(t, nil).Read(t.Context()); err != nil || now.Change || now.Bound {
		t.Errorf("of a file: %+v, %v", now, err)
	}
	if _, err := parseTaken([]byte(`{"beans":[]}`)); err == nil {
		t.Error("no bean says nothing")
	}
}
