// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// BenchmarkGoneClients measures the memory that 300 clients cost which ask for the list of 1,200 applications and reset
// their connections 100 ms later: the highest resident memory of a router, and of a ResourceManager, above that before.
// No two clients share a list. For comparison 300 clients then read theirs.
func BenchmarkGoneClients(b *testing.B) {
	const applications, members, clients = 1200, 3, 300
	f := Start(b, Options{
		NoNodes: true, Subclusters: members, Routers: 1, Conf: hadoop.Conf{
			"creel.membership.lease": "60s", "creel.router.list-timeout": "60s",
		},
	})
	one := rm.Start(b, rm.Options{Conf: hadoop.Conf{"yarn.scheduler.capacity.maximum-applications": "100000"}})
	submit := func(at hadoop.Addresses, count int) {
		mustLoad(b, "submit", "--client", at.Client, "--unmanaged", "--in-flight", "16",
			"--count", strconv.Itoa(count), "--duration", "1h", "--user", hadoop.OSUser(b))
	}
	for _, s := range f.Subclusters {
		submit(s.Addresses, applications/members)
	}
	submit(one.Addresses, applications)

	for _, asked := range []struct {
		name string
		*process.Process
		web string
	}{
		{"router", f.Routers[0].Process, f.RouterAddresses[0].Web},
		{"resourcemanager", one.Process, one.Addresses.Web},
	} {
		path := func(i int) string {
			return fmt.Sprintf("/ws/v1/cluster/apps?limit=%d&user.name=%s", 2000+i, hadoop.OSUser(b))
		}
		read := func(i int) {
			res, err := http.Get("http://" + asked.web + path(i))
			if err != nil {
				b.Error(err)
				return
			}
			defer res.Body.Close()
			if n, err := io.Copy(io.Discard, res.Body); err != nil || n < 1000*applications {
				b.Errorf("%s: a list of %d bytes, %v", res.Status, n, err)
			}
		}
		leave := func(i int) {
			c, err := net.Dial("tcp", asked.web)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n", path(i)); err != nil {
				b.Error(err)
			}
			time.Sleep(100 * time.Millisecond)                    // a reset discards a request that was not read
			if err := c.(*net.TCPConn).SetLinger(0); err != nil { // Close resets
				b.Error(err)
			}
		}
		growth := func(visit func(i int)) float64 {
			before := asked.RSS(b)
			most := before
			done := make(chan struct{})
			go func() {
				defer close(done)
				var all sync.WaitGroup
				for i := range clients {
					all.Go(func() { visit(i) })
				}
				all.Wait()
				time.Sleep(2 * time.Second) // lists that are still being made
			}()
			for {
				select {
				case <-done:
					return float64(most-before) / (1 << 20)
				case <-time.After(5 * time.Millisecond):
					most = max(most, asked.RSS(b))
				}
			}
		}
		b.Run(asked.name, func(b *testing.B) {
			var gone, served float64
			for b.Loop() { // the process keeps the memory: the first turn counts
				read(-1)
				gone = max(gone, growth(leave))
				served = max(served, growth(read))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(gone, "gone-MB")
			b.ReportMetric(served, "served-MB")
		})
	}
}
