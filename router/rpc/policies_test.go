// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// failing is a store that does not write the policy of one queue.
type failing struct {
	*memory.Store
	queue creel.QueuePath
}

func (f failing) PutPolicy(ctx context.Context, w statestore.PolicyWrite) (subcluster.Policy, error) {
	if w.Queue == f.queue {
		return subcluster.Policy{}, errors.New("the store is away")
	}
	return f.Store.PutPolicy(ctx, w)
}

// If the store fails in the middle, the error lists the policies removed before.
func TestPartialFailureReportsCompletedSteps(t *testing.T) {
	s := memory.New(memory.NewState("test", nil), time.Now)
	for _, q := range []creel.QueuePath{"root.a", "root.b", "root.c"} {
		if _, err := s.PutPolicy(t.Context(), statestore.PolicyWrite{Queue: q, Document: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	h := &AdminHandler{operator: operator.New(operator.Config{Store: failing{s, "root.c"}})}
	_, err := h.DeleteFederationPoliciesByQueues(t.Context(),
		&yarnpb.DeleteFederationQueuePoliciesRequestProto{Queues: []string{"a", "b", "c"}})
	if err == nil || !strings.Contains(err.Error(), "the store is away; removed before it: root.a, root.b") {
		t.Errorf("%v", err)
	}
}
