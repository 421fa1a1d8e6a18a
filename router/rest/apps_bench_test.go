// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"testing"
	"time"
)

// BenchmarkPageOfApplications measures pages of 100,000 applications in a hundred members: a user's first one and
// those after it, all of which come from data shared by all viewers. It reports the time to the first byte and the
// size of a page of 50.
func BenchmarkPageOfApplications(b *testing.B) {
	const members, each = 100, 1000
	var answers []http.HandlerFunc
	for m := range members {
		var doc bytes.Buffer
		doc.WriteString(`{"at":"x-1","whole":true,"apps":[`)
		for i := range each {
			if i > 0 {
				doc.WriteByte(',')
			}
			state := [...]string{"RUNNING", "ACCEPTED", "FINISHED", "FINISHED", "FINISHED"}[i%5]
			fmt.Fprintf(&doc, `{"id":"application_%d_%04d","name":"report of the day %d","user":"user%d",`+
				`"queue":"root.team%d","type":"MAPREDUCE","state":%q,"outcome":"UNDEFINED","started":%d,`+
				`"containers":3,"memory_mb":4096,"vcores":3,"priority":0,"tags":["team:etl","env:prod"],"viewers":"user1,ops admins"}`,
				m+1, i, i, i%30, i%20, state, 1_700_000_000_000+i)
		}
		doc.WriteString(`]}`)
		answers = append(answers, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("since") == "" {
				w.Write(doc.Bytes())
				return
			}
			// Since a second ago one has changed.
			fmt.Fprintf(w, `{"at":"x-1","whole":false,"apps":[{"id":"application_%d_0000","name":"n","user":"user1",`+
				`"queue":"root.team1","type":"MAPREDUCE","state":"RUNNING","outcome":"UNDEFINED","started":%d,`+
				`"containers":%d,"memory_mb":1,"vcores":1,"priority":0,"viewers":"*"}]}`,
				m+1, 1_700_000_000_000, time.Now().Nanosecond()%1000)
		})
	}
	web, warm := fedBy(b, answers...)
	warm()
	var first, later []float64
	size := 0
	page := func() float64 {
		began := time.Now()
		var byte1 time.Time
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(b.Context(), &httptrace.ClientTrace{
			GotFirstResponseByte: func() { byte1 = time.Now() },
		}), http.MethodGet, web.URL+"/api/v1/apps?limit=50&user.name=u"+fmt.Sprint(len(first), "-", len(later)%21/20), nil)
		if err != nil {
			b.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(res.Status, err)
		}
		size = len(body)
		return byte1.Sub(began).Seconds() * 1000
	}
	for b.Loop() {
		cold := page()
		for range 20 {
			later = append(later, page())
			time.Sleep(100 * time.Millisecond)
		}
		first = append(first, cold)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(first), "first-ms")
	b.ReportMetric(medianOf(later), "later-ms")
	b.ReportMetric(float64(size), "bytes")
}

func medianOf(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }
