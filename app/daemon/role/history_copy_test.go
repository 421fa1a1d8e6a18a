// SPDX-License-Identifier: Apache-2.0

package role_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/creelrm/creel/router/history"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore"
)

// copyOfADay is a day of one queue, as a router sends it. Its use is 0.5, and unknown in every tenth minute.
func copyOfADay() []byte {
	var h history.History
	now := time.Unix(1_700_000_000, 0) // of another clock
	h.StepAt(now)
	var c history.Copy
	c.Kind, c.Name = history.Queue, "root.past"
	for i := range int(history.Coarse.Slots()) {
		v := history.Unknown()[history.Use]
		if i%10 > 0 {
			v = 0.5
		}
		c.Values[history.Coarse][history.Use] = append(c.Values[history.Coarse][history.Use], v)
	}
	head, _ := h.Head(now)
	return history.AppendCopy(history.AppendHead(nil, head), &c)
}

// known counts the minutes of the queue that a router knows.
func known(t *testing.T, web string) (n int) {
	t.Helper()
	resp, err := http.Get("http://" + web + "/api/v1/history?subject=queue/root.past&range_s=86400")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0
	}
	var doc rest.HistoryDoc
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for _, v := range doc.Use {
		if v != nil && *v == 0.5 {
			n++
		}
	}
	return n
}

// A router that restarts has the history that the other one kept meanwhile: a restart ends its own memory. That one
// restarts later, and has it from the first. A dead router and one that sends nonsense change nothing.
func TestRestartedRouterCopiesHistory(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 2})
	a, b := f.Routers[0], f.Routers[1]
	if n, err := server.MergeHistory(a.Server, time.Now(), bytes.NewReader(copyOfADay())); n != 1 || err != nil {
		t.Fatalf("%d subjects, %v", n, err)
	}
	day := known(t, a.Web)
	if day < 1290 || day > 1296 {
		t.Fatalf("%d minutes are known, of 1296", day)
	}
	nonsense := serve(t, func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncreelhs")
		c.Close()
	})
	for name, web := range map[string]string{"nonsense": nonsense, "dead": closedPort(t)} {
		d := statestore.Daemon{Kind: "router", Name: name, Host: "h", Addresses: map[string]string{"web": web}}
		if err := f.Store.KeepDaemon(t.Context(), d, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range []*routertest.Router{b, a, b} {
		r.Restart()
		f.Until("the restarted router has the day", func() bool { return known(t, r.Web) >= day-4 })
		if n := known(t, r.Web); n > day {
			t.Errorf("after %d restarts %d minutes are known, of %d", i+1, n, day)
		}
	}
}

// serve passes the connections to a loopback port to a function, and returns its address.
func serve(t *testing.T, each func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			each(c)
		}
	}()
	return l.Addr().String()
}

// closedPort returns an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
