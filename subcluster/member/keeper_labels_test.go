// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/member/membertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// A maximum on nodes of a label and one on the others have separate records: a queue's use under one does not count
// under the other, in any member.
func TestLabelMaximumHasItsOwnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 12*1024, membertest.Quick)
		defer f.Close()
		for _, x := range f.Members {
			x.Mu.Lock()
			n := creel.NodeID{Host: string(x.ID) + "-gpu", Port: 1}
			err := x.Machine.AddLabels(time.Now(), []rm.Label{{Name: "gpu", Exclusive: true}})
			if err == nil {
				_, err = x.Machine.RegisterNode(time.Now(), &rm.RegisterNode{ID: n, Resource: creel.NewResource(65536, 64)})
			}
			if err == nil {
				err = x.Machine.ReplaceLabels(time.Now(), []rm.NodeLabels{{Node: n, Labels: []string{"gpu"}}}, false)
			}
			x.Mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
		}
		set, err := f.Store.Documents(t.Context(), rebalancer.TreeClass)
		if err != nil {
			t.Fatal(err)
		}
		was, _ := set.Find(rebalancer.TreeName)
		_, err = f.Store.PutDocument(t.Context(), statestore.DocumentWrite{
			Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: was.Version,
			Data: []byte(`{"queues":[{"queue":"root.default","maximum":{"memory":12288},
				"labels":{"gpu":{"maximum":{"memory":6144}}}}]}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		f.Pass(time.Second, 12)
		on := func(x *membertest.Member, label string) int64 {
			x.Mu.Lock()
			defer x.Mu.Unlock()
			uses, _, _ := x.Machine.QueueUse("root.default", label)
			return uses.MemoryMB / 1024
		}
		one, two := f.Members[0], f.Members[1]
		one.Allocate(t, rm.AllocateRequest{Asks: []rm.Ask{{
			Priority: 2, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 40,
			Label: rm.LabelExpression{Text: "gpu", Given: true},
		}}})
		f.Pass(2*time.Second, 12)
		if gpu, other := on(one, "gpu"), on(one, ""); gpu != 6 || other != 0 {
			t.Fatalf("it uses %d GiB of 6 with the label, and %d without, where it wants none", gpu, other)
		}
		two.Want(t, 40)
		f.Pass(2*time.Second, 12)
		if gpu, other := on(two, "gpu"), on(two, ""); gpu != 0 || other != 12 {
			t.Fatalf("it uses %d GiB on nodes of the label, and %d of 12 on the others", gpu, other)
		}
	})
}
