// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkLists measures the complete requests of `creel node list` and `creel queue list` to a router: 10,000 nodes
// and 100 queues in each of a hundred members. A first list asks all members; later ones within the time that viewers
// share it ask none. Goal: under a second.
func BenchmarkLists(b *testing.B) {
	var answers []http.HandlerFunc
	for m := range 100 {
		var nodes []string
		for i := range 100 {
			nodes = append(nodes, fmt.Sprintf(benchNode, i%40, m*100+i))
		}
		docs := benchDocuments(m, 0)
		docs["/nodes"] = `{"nodes":{"node":[` + strings.Join(nodes, ",") + `]}}`
		answers = append(answers, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, docs[strings.TrimPrefix(r.URL.Path, "/ws/v1/cluster")])
		})
	}
	for list, path := range map[string]string{"nodes": "/api/v1/nodes", "queues": "/api/v1/scheduler"} {
		b.Run(list, func(b *testing.B) {
			web, _ := fedBy(b, answers...)
			var first, later []float64
			for b.Loop() {
				first = append(first, whole(b, web.URL+path))
				for range 3 {
					later = append(later, whole(b, web.URL+path))
				}
				time.Sleep(5 * time.Second) // without viewers the next one is a first one again
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(medianOf(first), "first-ms")
			b.ReportMetric(medianOf(later), "later-ms")
		})
	}
}

// whole reads a list by its pages, and returns the milliseconds that took.
func whole(b *testing.B, path string) float64 {
	b.Helper()
	began := time.Now()
	rows := 0
	for cursor := ""; ; {
		res, err := http.Get(path + "?limit=1000&user.name=ann&cursor=" + url.QueryEscape(cursor))
		if err != nil {
			b.Fatal(err)
		}
		var doc struct {
			Nodes     []json.RawMessage
			Next      string
			Scheduler json.RawMessage
		}
		err = json.NewDecoder(res.Body).Decode(&doc)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(res.Status, err)
		}
		rows += len(doc.Nodes)
		if cursor = doc.Next; cursor != "" {
			continue
		}
		if rows != 10_000 && len(doc.Scheduler) < 100_000 {
			b.Fatalf("%d nodes, %d bytes of queues", rows, len(doc.Scheduler))
		}
		return time.Since(began).Seconds() * 1000
	}
}

// BenchmarkLongList measures a list of 10,000 applications in three members that answer from stored bytes. For
// comparison it measures one member's own part, and moving the whole list once from a process to a client: in turns,
// elapsed time. Goal: twice the member's own.
func BenchmarkLongList(b *testing.B) {
	const total = 10_000
	var answers []http.HandlerFunc
	for m := range 3 {
		doc := []byte(benchDocuments(m, total)["/apps"])
		answers = append(answers, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(doc)))
			w.Write(doc)
		})
	}
	web, _ := fedBy(b, answers...)
	kept := []byte(benchDocuments(0, 3*total)["/apps"]) // as long as the whole list
	moved := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(kept)))
		w.Write(kept)
	}
	ways := map[string]string{"router": web.URL}
	for name, h := range map[string]http.HandlerFunc{"member": answers[0], "moved": moved} {
		s := httptest.NewServer(h)
		b.Cleanup(s.Close)
		ways[name] = s.URL
	}
	took := map[string][]float64{}
	for b.Loop() {
		for name, at := range ways {
			began := time.Now()
			res, err := http.Get(at + "/ws/v1/cluster/apps?user.name=ann")
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if err != nil || n < 1_000_000 {
				b.Fatal(n, err)
			}
			took[name] = append(took[name], time.Since(began).Seconds()*1000)
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, ms := range took {
		b.ReportMetric(medianOf(ms), name+"-ms")
	}
}
