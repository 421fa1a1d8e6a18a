// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/pair"
)

// pairDefines are the settings of rm1 of a pair.
var pairDefines = []string{
	"yarn.resourcemanager.ha.enabled=true", "yarn.resourcemanager.ha.rm-ids=rm1,rm2", "yarn.resourcemanager.ha.id=rm1",
	"yarn.resourcemanager.hostname.rm1=127.0.0.1", "yarn.resourcemanager.hostname.rm2=127.0.0.2",
	"yarn.resourcemanager.hostname.rm3=127.0.0.3",
	"yarn.resourcemanager.cluster-id=c1", "creel.rm.state.url=redis://127.0.0.1:1",
	"creel.store.url=memory",
}

func TestIncompletePairNamesTheMissingKey(t *testing.T) {
	for change, reason := range map[string]string{
		"":                                     "",
		"yarn.resourcemanager.ha.rm-ids=rm1":   "names 1",
		"yarn.resourcemanager.ha.rm-ids=rm1,b": "yarn.resourcemanager.hostname.b",
		"yarn.resourcemanager.ha.rm-ids=a.b,c": "a dot",
		"yarn.resourcemanager.ha.id=rm3":       "rm3",
		"yarn.resourcemanager.ha.id=":          "of 2 of the", // both are loopback addresses
		"creel.rm.state.url=":                  "creel.rm.state.url",
	} {
		defines := slices.Clone(pairDefines)
		if change != "" {
			defines = append(defines, change)
		}
		refused, got := incompletePair(minimal(t, defines...))
		if refused != (reason != "") || !strings.Contains(got, reason) {
			t.Errorf("%s: %t %q", change, refused, got)
		}
	}
}

// Without yarn.resourcemanager.ha.id, the id is the one whose address is of this host. 198.51.100.1 is no host's.
func TestPairFindsItsIDByAddress(t *testing.T) {
	alone := append(slices.Clone(pairDefines), "yarn.resourcemanager.ha.id=", "yarn.resourcemanager.hostname.rm1=198.51.100.1")
	s := minimal(t, append(slices.Clone(alone), "yarn.resourcemanager.hostname.rm2=localhost")...)
	if refused, why := incompletePair(s); refused || pairID(s) != "rm2" {
		t.Errorf("the id is %q, refused: %t %s", pairID(s), refused, why)
	}
	if at := listenAt(s, "yarn.resourcemanager.admin.address"); at != "localhost:8033" {
		t.Errorf("it listens at %s", at)
	}
	s = minimal(t, append(alone, "yarn.resourcemanager.hostname.rm2=198.51.100.2")...)
	if refused, why := incompletePair(s); !refused || !strings.Contains(why, "of 0 of the") {
		t.Errorf("without an address of this host: %t %s", refused, why)
	}
}

// Each of a pair listens at the addresses of its id, and knows the web port of the other.
func TestPairListensAtItsOwnAddresses(t *testing.T) {
	c, err := RMSettings(minimal(t, append(slices.Clone(pairDefines), "yarn.resourcemanager.ha.id=rm2",
		"yarn.resourcemanager.admin.address.rm2=127.0.0.3:1", "creel.rm.ha.lease=7s")...), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Ports.Client != "127.0.0.2:8032" || c.Ports.Admin != "127.0.0.3:1" || c.Web != "127.0.0.2:8088" {
		t.Errorf("it listens at %+v, %s", c.Ports, c.Web)
	}
	if p := c.Pair; p.ID != "rm2" || p.Webs["rm1"] != "127.0.0.1:8088" || p.Pair.Lease != 7*time.Second || !p.Pair.Automatic {
		t.Errorf("the pair is %+v", p)
	}
	if _, err := NewRM(c); err == nil {
		t.Error("one of a pair was assembled alone")
	}
	cert, key, _ := certificate(t, time.Now().Add(time.Hour))
	c, err = RMSettings(minimal(t, append(slices.Clone(pairDefines), "yarn.resourcemanager.ha.id=rm2",
		httpPolicy+"=HTTPS_ONLY", pemCertificate+"="+cert, pemKey+"="+key, rmWebTLSAddress+".rm1=one.test:1")...), nil)
	if err != nil || c.Web != "127.0.0.2:8090" || c.Pair.Webs["rm1"] != "one.test:1" || c.WebServer.TLS == nil {
		t.Errorf("with TLS it listens at %s, and the others are %v: %v", c.Web, c.Pair.Webs, err)
	}
}

// Three of a "pair" in one process: the first becomes active, ends, and the second continues, then the third. A standby
// redirects clients to the active one. As a member of a federation all are one.
func TestPairTakesOver(t *testing.T) {
	t.Run("http", func(t *testing.T) { pairTakesOver(t, "http") })
	t.Run("https", func(t *testing.T) {
		cert, key, _ := certificate(t, time.Now().Add(time.Hour))
		pairTakesOver(t, "https", httpPolicy+"=HTTPS_ONLY", pemCertificate+"="+cert, pemKey+"="+key,
			rmWebTLSAddress+".rm2=127.0.0.1:1", rmWebTLSAddress+".rm3=127.0.0.1:1")
	})
}

func pairTakesOver(t *testing.T, scheme string, more ...string) {
	redis := redistest.Start(t)
	store := statestore.Store(memory.New(memory.NewState("test", nil), time.Now))
	const any = "127.0.0.1:0"
	start := func(id string) (*RMPair, *daemon.Running) {
		s := minimal(t, append(append(slices.Clone(pairDefines), "yarn.resourcemanager.ha.id="+id,
			"yarn.resourcemanager.ha.rm-ids=rm1,rm2,rm3", "creel.rm.state.url="+redis.URL(),
			"creel.subcluster.id=sc-1"), more...)...)
		conf := func() (RMConfig, error) {
			c, err := RMSettings(s, store)
			p := &c.Ports
			p.Client, p.Scheduler, p.Tracker, p.Admin, c.Web = any, any, any, any, any
			return c, err
		}
		c, err := conf()
		if err != nil {
			t.Fatal(err)
		}
		c.Pair.Fresh = conf
		p, err := NewRMPair(c)
		if err != nil {
			t.Fatal(err)
		}
		r := p.Start()
		t.Cleanup(func() {
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
		})
		return p, r
	}
	until := func(p *RMPair, role pair.Role) {
		t.Helper()
		for p.Driver.Status().Role != role {
			if t.Context().Err() != nil {
				t.Fatalf("its role is %v", p.Driver.Status().Role)
			}
			time.Sleep(time.Millisecond)
		}
	}
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the test is not about the certificate
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	get := func(p *RMPair, path string) int {
		t.Helper()
		r, err := client.Get(scheme + "://" + p.Address("web") + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if to := r.Header.Get("Location"); to != "" && !strings.HasPrefix(to, scheme+"://") {
			t.Errorf("%s is redirected to %s", path, to)
		}
		return r.StatusCode
	}
	// registered waits until the member's record has the web address of one of the pair.
	registered := func(p *RMPair) {
		t.Helper()
		end := time.Now().Add(15 * time.Second)
		for at := ""; at != p.Address("web"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the member is at %s, not at %s", at, p.Address("web"))
			}
			records, err := store.Records(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records.Members {
				at = r.Member.Addresses.Web
				if got := r.Member.Addresses.Scheme(); got != scheme {
					t.Errorf("the record's scheme is %s", got)
				}
			}
		}
	}
	first, running := start("rm1")
	until(first, pair.Active)
	registered(first)
	second, _ := start("rm2")
	for _, c := range []struct {
		path            string
		active, standby int
	}{
		{"/ws/v1/cluster/metrics", 200, 307},
		{"/ws/v1/cluster/info", 200, 200},
		{"/isActive", 200, 405},
		{"/conf", 200, 200},
		{"/metrics", 200, 200},
	} {
		if a, s := get(first, c.path), get(second, c.path); a != c.active || s != c.standby {
			t.Errorf("%s: %d at the active one and %d at the standby", c.path, a, s)
		}
	}
	for _, p := range []*RMPair{first, second} {
		r, err := client.Get(scheme + "://" + p.Address("web") + "/ws/v1/cluster/info")
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(r.Body); !strings.Contains(string(b), `"rmStateStoreName":"Redis"`) {
			t.Errorf("the state is not in Redis: %s", b)
		}
		r.Body.Close()
	}
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	until(second, pair.Active)
	registered(second)
	if got := get(second, "/ws/v1/cluster/metrics"); got != 200 {
		t.Errorf("after the takeover: %d", got)
	}
	// A third one takes over from the second, which the order excludes for a lease.
	third, _ := start("rm3")
	until(third, pair.Standby)
	if err := second.Driver.StandBy(context.Background()); err != nil {
		t.Fatal(err)
	}
	until(third, pair.Active)
	registered(third)
	if got, standby := get(third, "/ws/v1/cluster/metrics"), get(second, "/ws/v1/cluster/metrics"); got != 200 || standby != 307 {
		t.Errorf("after the second takeover: %d at the active one and %d at the standby", got, standby)
	}
}
