// SPDX-License-Identifier: Apache-2.0

package role

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/memory"
)

// A router whose web port is taken does not start, and releases its other ports.
func TestRouterReleasesPortsIfOneIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := free.Addr().String()
	free.Close()
	c, err := RouterSettings(minimal(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Client, c.Admin, c.Web = client, "127.0.0.1:0", taken.Addr().String()
	store := memory.New(memory.NewState("test", ValidPolicy), time.Now)
	if _, err := NewRouter(c, store); err == nil || !strings.Contains(err.Error(), "yarn.router.webapp.address") {
		t.Fatalf("a router on a port in use: %v", err)
	}
	again, err := net.Listen("tcp", client)
	if err != nil {
		t.Fatalf("the client port is leaked: %v", err)
	}
	again.Close()
}
