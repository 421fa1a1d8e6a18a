// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/member/membertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// The leader checks the reports of real ResourceManagers on the invariants: nothing is broken until the test lets a
// member exceed its part, and removes another member's.
func TestLeaderFindsBrokenInvariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		var log bytes.Buffer
		l := &Leader{
			Name: "a", Store: f.Store, Every: time.Second, Lease: 3 * time.Second, Terms: membertest.Quick,
			Audit: Audit{Every: 2 * time.Second, Within: time.Minute}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.Running.Go(func() {
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer cancel()
		seconds := func(n int) {
			for range n {
				for _, x := range f.Members {
					x.Report(t, f.Store)
				}
				time.Sleep(time.Second)
			}
			synctest.Wait()
		}
		count := func(i invariants.Invariant) (out rebalancer.InvariantCount) {
			for _, x := range l.Audited().Invariants {
				if x.Name == string(i) {
					return x
				}
			}
			t.Fatalf("%s is not among what was judged", i)
			return out
		}
		f.Members[0].Want(t, 5)
		f.Members[1].Want(t, 2)
		seconds(20)
		for _, i := range []invariants.Invariant{
			invariants.GlobalMaximum, invariants.MemberLoss, invariants.ParentConsistency, invariants.TrueHeadroom,
			invariants.Stability, invariants.Rounding, invariants.NoStarvation, invariants.Guarantee,
			invariants.RebalancerLoss,
		} {
			if c := count(i); c.Checked == 0 {
				t.Errorf("%s was not judged", i)
			}
		}
		for _, i := range l.Audited().Invariants {
			if i.Broken > 0 {
				t.Errorf("%s is broken: %+v", i.Name, l.Audited().Breaches)
			}
		}

		// A machine exceeds its part, after its keeper stopped.
		f.Members[0].Stop()
		synctest.Wait()
		f.Members[0].Mu.Lock()
		f.Members[0].Machine.SetQueueCap(time.Now(), rm.QueueCap{
			Queue: "root.default", Cap: creel.NewResource(40<<10, 40), Until: time.Now().Add(time.Hour), Version: 1 << 40,
		})
		f.Members[0].Mu.Unlock()
		f.Members[0].Want(t, 20)
		seconds(10)
		if c := count(invariants.GlobalMaximum); c.Broken == 0 {
			t.Error("that more is used than the maximum is not found")
		}
		if !strings.Contains(log.String(), "invariant=global_maximum of=root.default") ||
			!strings.Contains(log.String(), "above the federation's <memory:8192") {
			t.Errorf("the log does not tell it in numbers: %s", log.String())
		}

		// The test removes a member's part from the record.
		before := count(invariants.MemberLoss).Broken
		f.Members[1].Stop()
		synctest.Wait()
		set, err := f.Store.Documents(t.Context(), rebalancer.EscrowClass)
		if err != nil {
			t.Fatal(err)
		}
		var record escrow.Record
		if err := json.Unmarshal(set.Documents[0].Data, &record); err != nil {
			t.Fatal(err)
		}
		record.Holders = record.Holders[:1]
		data, err := json.Marshal(&record)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Store.PutDocument(t.Context(), statestore.DocumentWrite{
			Class: rebalancer.EscrowClass, Name: "root.default", Expect: set.Documents[0].Version, Data: data,
		}); err != nil {
			t.Fatal(err)
		}
		seconds(3)
		if c := count(invariants.MemberLoss); c.Broken == before {
			t.Error("that a part was taken from a member is not found")
		}
		control, err := f.Store.Documents(t.Context(), rebalancer.ControlClass)
		if err != nil {
			t.Fatal(err)
		}
		var told rebalancer.AuditReport
		d, _ := control.Find(rebalancer.AuditName)
		if err := json.Unmarshal(d.Data, &told); err != nil || len(told.Breaches) < 2 || told.Leader != "a" {
			t.Errorf("what the store has for people: %+v (%v)", told, err)
		}
	})
}
