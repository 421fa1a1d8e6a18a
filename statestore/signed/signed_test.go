// SPDX-License-Identifier: Apache-2.0

package signed_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/signed"
	"github.com/creelrm/creel/subcluster"
)

// world is a store, a holder of the secret, and a reader.
type world struct {
	*testing.T
	store  *memory.Store
	signer *subcluster.Signer
	reader *signed.Reader
	log    bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	signer, err := subcluster.NewSigner([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, signer: signer, store: memory.New(memory.NewState("s", nil), time.Now)}
	w.reader = signed.New(w.store, signer, slog.New(slog.NewTextHandler(&w.log, nil)))
	return w
}

func (w *world) register(m subcluster.Member) {
	w.Helper()
	if err := w.store.Register(w.Context(), m); err != nil {
		w.Fatal(err)
	}
}

func (w *world) heartbeat(epoch int64, load []byte) {
	w.Helper()
	if err := w.store.Heartbeat(w.Context(), subcluster.Heartbeat{ID: "sc-1", Epoch: epoch, Load: load}); err != nil {
		w.Fatal(err)
	}
}

// believed is the reader's record of sc-1, nil if there is none.
func (w *world) believed(refused int64) *subcluster.Record {
	w.Helper()
	records, err := w.reader.Records(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if n := w.reader.Refused(); n != refused {
		w.Errorf("%d members refused, want %d", n, refused)
	}
	for i := range records.Members {
		if records.Members[i].ID == "sc-1" {
			return &records.Members[i]
		}
	}
	return nil
}

func member(epoch int64, client string) subcluster.Member {
	return subcluster.Member{ID: "sc-1", Epoch: epoch, Addresses: subcluster.Addresses{Client: client}}
}

const free, full = `{"clusterMetrics":{"availableMB":12}}`, `{"clusterMetrics":{"availableMB":0}}`

func TestPoisonedMemberKeepsSignedRecord(t *testing.T) {
	w := newWorld(t)
	w.register(w.signer.Member(member(7, "good:1")))
	w.heartbeat(7, w.signer.Load("sc-1", 7, 1, []byte(free)))
	if r := w.believed(0); r == nil || r.Addresses.Client != "good:1" || r.Parsed.Metrics.AvailableMB != 12 {
		t.Fatalf("a signed member is %+v", r)
	}
	poisoned := member(7, "evil:1")
	poisoned.Signature = w.signer.Member(member(7, "good:1")).Signature
	w.register(poisoned)
	if r := w.believed(1); r == nil || r.Addresses.Client != "good:1" {
		t.Fatalf("a poisoned member is %+v", r)
	}
	w.register(member(8, "evil:1"))
	if r := w.believed(1); r == nil || r.Addresses.Client != "good:1" {
		t.Fatalf("a poisoned member of a later epoch is %+v", r)
	}
	if n := strings.Count(w.log.String(), "not signed"); n != 1 || !strings.Contains(w.log.String(), "sc-1") {
		t.Errorf("it is told %d times within a minute:\n%s", n, &w.log)
	}
	w.register(w.signer.Member(member(9, "good:2")))
	if r := w.believed(0); r == nil || r.Addresses.Client != "good:2" || r.Epoch != 9 {
		t.Fatalf("its own next epoch is %+v", r)
	}
}

func TestUnsignedOrStaleLoadIsRejected(t *testing.T) {
	w := newWorld(t)
	w.register(w.signer.Member(member(7, "good:1")))
	old := w.signer.Load("sc-1", 7, 1, []byte(free))
	now := w.signer.Load("sc-1", 7, 2, []byte(full))
	w.heartbeat(7, old)
	w.believed(0)
	w.heartbeat(7, now)
	w.believed(0)
	for name, load := range map[string][]byte{"unsigned": []byte(free), "replayed": old} {
		w.heartbeat(7, load)
		if r := w.believed(1); r == nil || r.Load != string(now) || r.Parsed.Metrics.AvailableMB != 0 {
			t.Errorf("with a load that is %s: %+v", name, r)
		}
	}
}

func TestUnsignedMemberIsIgnored(t *testing.T) {
	w := newWorld(t)
	w.register(member(7, "evil:1"))
	if r := w.believed(1); r != nil {
		t.Fatalf("it is %+v", r)
	}
}
