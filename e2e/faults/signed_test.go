// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
)

// An intruder writes another address into a member's record in Redis. A router with the cluster's secret continues with
// the address that the member signed, and reports the record. A router without the secret accepts the record.
func TestAPoisonedMemberOfRedisIsNotBelieved(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := "creel.cluster.secret-file=" + file
	f := foundWith(t, server.URL(), "", []string{secret}, secret)
	careful := f.start("careful", "router",
		secret,
		"creel.store.url="+f.storeURL,
		"yarn.router.clientrm.address=127.0.0.1:0",
		"yarn.router.rmadmin.address=127.0.0.1:0",
		"yarn.router.webapp.address=127.0.0.1:0",
	)
	at := func(d *daemon) string {
		var doc struct {
			Subclusters []struct {
				ID        string
				Addresses struct{ Client string }
			}
		}
		call(t, d, http.MethodGet, "/api/v1/subclusters", nil, &doc)
		for _, s := range doc.Subclusters {
			if s.ID == "sc-1" {
				return s.Addresses.Client
			}
		}
		return ""
	}
	real := f.members[0].rm.at["client"]
	f.await("both routers see the member", func() bool { return at(careful) == real && at(f.router) == real })

	poisoned := false
	for _, key := range server.Do("KEYS", "*").([]any) {
		if record, err := server.Try("HGET", key, "sc-1"); err == nil && record != nil {
			if text := record.(string); strings.Contains(text, real) {
				server.Do("HSET", key, "sc-1", strings.ReplaceAll(text, real, "127.0.0.1:1"))
				poisoned = true
			}
		}
	}
	if !poisoned {
		t.Fatal("no record of the member in Redis")
	}
	f.await("the router without the secret believes it", func() bool { return at(f.router) == "127.0.0.1:1" })
	careful.WaitLine(t, "not signed")
	if got := at(careful); got != real {
		t.Errorf("the router with the secret goes to %q", got)
	}
	f.router = careful
	for range 6 {
		f.submitSoon(f.newID())
	}
	time.Sleep(2 * step) // the record stays, and is visible to scrapes
}
