// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// vectorTrees are queues without legacy mode, each a line of "setting=value"; both return an empty answer for a tree
// that both reject.
var vectorTrees = []string{
	"queues=a,b,c a.capacity=[memory=1000,vcores=3] b.capacity=33.3 c.capacity=2w",
	"queues=a,b,c a.capacity=[memory=1000,vcores=50%] b.capacity=[memory=30%,vcores=2] c.capacity=[memory=70%,vcores=1w]",
	"queues=a,b,c a.capacity=1w b.capacity=1w c.capacity=1w",
	"queues=a,b,c a.capacity=80 b.capacity=70 c.capacity=1w",
	"queues=a,b,c a.capacity=[memory=8000,vcores=8] b.capacity=[memory=8000,vcores=8] c.capacity=[memory=4000,vcores=2]",
	"queues=a,b,c a.capacity=[memory=8000,vcores=8] b.capacity=[memory=8000,vcores=8] c.capacity=50",
	"queues=a,b a.capacity=50 a.maximum-capacity=[memory=6000,vcores=7] b.capacity=[memory=6000,vcores=7] b.maximum-capacity=50",
	"queues=a,b a.capacity=50 a.maximum-capacity=40 b.capacity=50",
	"queues=a,b a.capacity=50 b.capacity=30",
	"queues=a,b a.capacity=0w b.capacity=0w",
	"queues=a,b a.capacity=[memory=120%,vcores=50%] b.capacity=1w",
	"queues=a,b a.capacity=[memory=3333,vcores=33%] b.capacity=3w a.queues=x,y,z a.x.capacity=1w a.y.capacity=33 " +
		"a.z.capacity=[memory=500,vcores=1] b.queues=x,y,z b.x.capacity=1w b.y.capacity=1w " +
		"b.z.capacity=[memory=10%,vcores=1w,gpu=1] b.maximum-capacity=70 b.x.maximum-capacity=50",
	"queues=a,b a.capacity=50 a.maximum-capacity=3w b.capacity=50",
	"queues=a,b a.capacity=120 b.capacity=1w",
}

// drawVectors draws a tree of two levels with mixed units. A vector names memory above zero: without it, a real
// ResourceManager 3.4.2 keeps the previous value ("unknown"), where creel's assigns none.
func drawVectors(r *rand.Rand) string {
	amount := func() string {
		one := func(most int) string {
			switch r.IntN(3) {
			case 0:
				return fmt.Sprint(1 + r.IntN(most))
			case 1:
				return fmt.Sprintf("%.1f%%", r.Float64()*70)
			}
			return fmt.Sprintf("%dw", 1+r.IntN(7))
		}
		switch r.IntN(4) {
		case 0:
			return fmt.Sprintf("%.2f", r.Float64()*60)
		case 1:
			return fmt.Sprintf("%.1fw", 0.5+r.Float64()*5)
		case 2:
			return fmt.Sprintf("[memory=%d,vcores=%d]", 1+r.IntN(6000), r.IntN(8))
		}
		return "[memory=" + one(6000) + ",vcores=" + one(8) + "]"
	}
	out := []string{"queues=a,b,c"}
	for _, q := range []string{"a", "b", "c"} {
		out = append(out, q+".capacity="+amount())
		if r.IntN(3) == 0 {
			out = append(out, fmt.Sprintf("%s.maximum-capacity=%.1f", q, 40+r.Float64()*60))
		}
	}
	out = append(out, "a.queues=x,y,z")
	for _, q := range []string{"x", "y", "z"} {
		out = append(out, "a."+q+".capacity="+amount())
	}
	return strings.Join(out, " ")
}

// side is one ResourceManager whose queues are changed by calls.
type side struct {
	t   *testing.T
	web string
	has map[string]bool // keys of the tree in force
	at  []string        // and its queues
}

func (s *side) call(method, path string, body any) (int, []byte) {
	s.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.web+"/ws/v1/cluster/"+path, bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, out
}

type entry struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

func (s *side) put(list []entry) (int, []byte) {
	s.t.Helper()
	return s.call("PUT", "scheduler-conf", map[string]any{"global-updates": map[string]any{"entry": list}})
}

// set stops the queues that are there, so that they may go, and puts a tree in force. It
// reports whether it was taken.
func (s *side) set(tree string) bool {
	s.t.Helper()
	const root = "yarn.scheduler.capacity.root."
	var stop, list []entry
	for _, q := range s.at {
		stop = append(stop, entry{root + q + ".state", "STOPPED"})
	}
	if code, body := s.put(stop); code != http.StatusOK {
		s.t.Fatalf("stopping %v: %d %s", s.at, code, body)
	}
	has, at := map[string]bool{}, []string{}
	for _, p := range strings.Fields(tree) {
		key, value, _ := strings.Cut(p, "=")
		list = append(list, entry{root + key, value})
		has[key] = true
		if q, ok := strings.CutSuffix(key, ".capacity"); ok {
			at = append(at, q)
		}
	}
	for key := range s.has {
		if !has[key] {
			list = append(list, entry{Key: root + key})
		}
	}
	for _, q := range s.at {
		list = append(list, entry{Key: root + q + ".state"})
	}
	code, _ := s.put(list)
	if code == http.StatusOK {
		s.has, s.at = has, at
	}
	return code == http.StatusOK
}

// shares returns the queues' sizes in the documents, by queue and field.
func (s *side) shares() map[string]any {
	s.t.Helper()
	_, body := s.call("GET", "scheduler", nil)
	// A real ResourceManager without nodes writes invalid JSON: creel's writes 0.
	body = bytes.ReplaceAll(body, []byte(":NaN"), []byte(":0.0"))
	var doc struct {
		Scheduler struct {
			Info map[string]any `json:"schedulerInfo"`
		} `json:"scheduler"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		s.t.Fatalf("%v: %s", err, body)
	}
	out := map[string]any{}
	var look func(q map[string]any, path string)
	look = func(q map[string]any, path string) {
		path += "." + q["queueName"].(string)
		for _, field := range []string{
			"capacity", "maxCapacity", "absoluteCapacity", "absoluteMaxCapacity", "weight", "normalizedWeight", "mode",
			"isAbsoluteResource", "maxApplications",
		} {
			out[path+" "+field] = q[field]
		}
		row := q["capacities"].(map[string]any)["queueCapacitiesByPartition"].([]any)[0].(map[string]any)
		for _, field := range []string{"capacity", "maxCapacity", "absoluteCapacity", "absoluteMaxCapacity", "weight", "normalizedWeight"} {
			out[path+" row "+field] = row[field]
		}
		out[path+" vector"] = row["queueCapacityVectorInfo"]
		for _, field := range []string{"effectiveMinResource", "effectiveMaxResource"} {
			var values []any
			for _, r := range row[field].(map[string]any)["resourceInformations"].(map[string]any)["resourceInformation"].([]any) {
				values = append(values, r.(map[string]any)["value"])
			}
			out[path+" "+field] = values
		}
		if below, ok := q["queues"].(map[string]any); ok {
			for _, c := range below["queue"].([]any) {
				look(c.(map[string]any), path)
			}
		}
	}
	look(doc.Scheduler.Info, "")
	return out
}

// Queues that mix percentages, weights and amounts have the sizes of a real ResourceManager without legacy mode, to
// the unit, with no node and with one; both reject the same trees.
func TestMixedQueuesMatchHadoop(t *testing.T) {
	conf := hadoop.Conf{
		"yarn.scheduler.configuration.store.class":          "memory",
		"yarn.scheduler.capacity.legacy-queue-mode.enabled": "false",
		"yarn.resource-types":                               "gpu",
	}
	real, our := hadoop.StartRM(t, hadoop.RM{Conf: conf}), Start(t, Options{Conf: conf, Volatile: true})
	first := map[string]bool{}
	for key := range hadoop.Queues() {
		if rest, ok := strings.CutPrefix(key, "yarn.scheduler.capacity.root."); ok {
			first[rest] = true
		}
	}
	sides := []*side{
		{t: t, web: real.Web, has: first, at: []string{"default", "other"}},
		{t: t, web: our.Web, has: first, at: []string{"default", "other"}},
	}
	compare := func(when string, trees []string) {
		t.Helper()
		for _, tree := range trees {
			taken, ours := sides[0].set(tree), sides[1].set(tree)
			if taken != ours {
				t.Fatalf("%s, %s: a real ResourceManager takes it: %v, ours: %v", when, tree, taken, ours)
			}
			want, got := sides[0].shares(), sides[1].shares()
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if !reflect.DeepEqual(got[key], want[key]) {
					t.Errorf("%s, %s\n%s is %v, a real ResourceManager's %v", when, tree, key, got[key], want[key])
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(18, 2))
	drawn := make([]string, 16)
	for i := range drawn {
		drawn[i] = drawVectors(r)
	}
	compare("with no node", append(drawn[:1:1], vectorTrees[0], vectorTrees[6], vectorTrees[11]))
	for i, rm := range []hadoop.Addresses{real.Addresses, our.Addresses} {
		dir := t.TempDir()
		rm.Conf().With(hadoop.Conf{
			"fs.defaultFS": "file:///", "creel.nm.simulate.memory-mb": "10007", "creel.nm.simulate.vcores": "13",
		}).Write(t, filepath.Join(dir, "conf"))
		nm := process.Start(t, process.Command{Name: "creel-nm", Dir: dir, Args: []string{
			Binary(t), "nm", "--conf", filepath.Join(dir, "conf"), "--simulate", "1", "--ready-file", filepath.Join(dir, "ready"),
		}})
		nm.Await(t, "its node", func() bool {
			if _, err := os.Stat(filepath.Join(dir, "ready")); err != nil {
				return false
			}
			_, body := sides[i].call("GET", "metrics", nil)
			return bytes.Contains(body, []byte(`"totalMB":10007`))
		})
	}
	compare("with a node", append(drawn, vectorTrees...))
}
