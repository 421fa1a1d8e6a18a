// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkHeldList measures a list of applications in three members that confirm their parts by a tag, as creel's
// ResourceManagers do. It reports the processor time of a list, with the members' and the client's, when members send
// their parts, when the router joins the held parts, and when it holds the joined list. It also reports the bytes that
// the router then holds for each byte of the list.
func BenchmarkHeldList(b *testing.B) {
	for _, total := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(total), func(b *testing.B) {
			var answers []http.HandlerFunc
			for m := range 3 {
				doc := []byte(benchDocuments(m, total)["/apps"])
				answers = append(answers, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("ETag", `"1"`)
					if r.Header.Get("If-None-Match") == `"1"` {
						w.WriteHeader(http.StatusNotModified)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Content-Length", strconv.Itoa(len(doc)))
					w.Write(doc)
				})
			}
			web, _ := fedBy(b, answers...)
			list := func(query string) (ms float64, size int64) {
				began := processorTime(b)
				res, err := http.Get(web.URL + "/ws/v1/cluster/apps?user.name=ann" + query)
				if err != nil {
					b.Fatal(err)
				}
				size, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err != nil || size < int64(1000*total) {
					b.Fatal(size, err)
				}
				return (processorTime(b) - began).Seconds() * 1000, size
			}
			list("&n=0") // connections
			time.Sleep(3 * time.Second)
			var sent, joined, held, kept []float64
			for n := 1; b.Loop(); n++ { // another query is another list
				before := liveBytes()
				query := fmt.Sprint("&n=", n)
				first, size := list(query)
				second, _ := list(query)
				sent, joined = append(sent, first), append(joined, second)
				for range 5 {
					again, _ := list(query)
					held = append(held, again)
				}
				kept = append(kept, float64(liveBytes()-before)/float64(size))
				time.Sleep(2500 * time.Millisecond) // it is dropped
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(medianOf(sent), "sent-ms")
			b.ReportMetric(medianOf(joined), "joined-ms")
			b.ReportMetric(medianOf(held), "held-ms")
			b.ReportMetric(medianOf(kept), "held-bytes/byte")
		})
	}
}

func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
