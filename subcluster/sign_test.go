// SPDX-License-Identifier: Apache-2.0

package subcluster_test

import (
	"testing"

	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

func signer(t rapid.TB, secret string) *subcluster.Signer {
	t.Helper()
	s, err := subcluster.NewSigner([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMemberSignatureCoversRecord(t *testing.T) {
	s := signer(t, "0123456789abcdef")
	m := s.Member(subcluster.Member{
		ID: "sc-1", Epoch: 7, Addresses: subcluster.Addresses{Client: "a:1", Scheduler: "b:2"}, Version: "creel",
	})
	if !s.GoodMember(&m) || signer(t, "another secret....").GoodMember(&m) {
		t.Fatal("a signature is good under its secret and no other")
	}
	for name, change := range map[string]func(*subcluster.Member){
		"id":        func(m *subcluster.Member) { m.ID = "sc-2" },
		"epoch":     func(m *subcluster.Member) { m.Epoch = 8 },
		"address":   func(m *subcluster.Member) { m.Addresses.Client = "evil:1" },
		"scheme":    func(m *subcluster.Member) { m.Addresses.HTTPS = true },
		"lease":     func(m *subcluster.Member) { m.Lease = 1e9 },
		"version":   func(m *subcluster.Member) { m.Version = "other" },
		"load":      func(m *subcluster.Member) { m.Capability = `{"x":1}` },
		"signature": func(m *subcluster.Member) { m.Signature = "" },
		"bounds": func(m *subcluster.Member) {
			m.Addresses.Client, m.Addresses.Scheduler = "a:1b:2", ""
		},
	} {
		changed := m
		if change(&changed); s.GoodMember(&changed) {
			t.Errorf("a changed %s is good", name)
		}
	}
	m.Addresses.HTTPS = true
	secure := s.Member(m)
	if secure.Addresses.HTTPS = false; s.GoodMember(&secure) {
		t.Error("TLS can be removed from a signed record")
	}
}

func TestLoadSignatureCoversOneHeartbeat(t *testing.T) {
	s := signer(t, "0123456789abcdef")
	for _, load := range []string{`{"clusterMetrics":{"totalMB":12}}`, ` {"totalMB": 12}`, `{}`, `{ }`} {
		marked := string(s.Load("sc-1", 7, 3, []byte(load)))
		if n, ok := s.GoodLoad("sc-1", 7, marked); !ok || n != 3 {
			t.Fatalf("%s is %d, %v", marked, n, ok)
		}
		was, err := subcluster.ParseLoad([]byte(load))
		is, err2 := subcluster.ParseLoad([]byte(marked))
		if err != nil || err2 != nil || was.Metrics != is.Metrics {
			t.Errorf("%s is read as %+v, %v; it was %+v, %v", marked, is, err2, was, err)
		}
		if _, ok := s.GoodLoad("sc-2", 7, marked); ok {
			t.Error("it is good for another member")
		}
		if _, ok := s.GoodLoad("sc-1", 8, marked); ok {
			t.Error("it is good for another epoch")
		}
		if _, ok := s.GoodLoad("sc-1", 7, load); ok {
			t.Error("a load without a signature is good")
		}
		if _, ok := s.GoodLoad("sc-1", 7, `{"creelSigned":"4`+marked[len(`{"creelSigned":"3`):]); ok {
			t.Error("it is good under another number")
		}
	}
}
