// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Rollback writes the document of an older version of a queue's policy as a
// new version, if the current one is expect. creel.ErrInvalidRequest if that
// version is not kept any more.
func Rollback(
	ctx context.Context,
	p Policies,
	q creel.QueuePath,
	expect, to int64,
	author, comment string,
) (subcluster.Policy, error) {
	h, err := p.PolicyHistory(ctx, q, to+1, 1)
	if err != nil {
		return subcluster.Policy{}, err
	}
	if len(h) == 0 || h[0].Version != to {
		return subcluster.Policy{}, failf(
			creel.ErrInvalidRequest,
			"choose one of its history",
			fmt.Sprintf("policy of %q not rolled back", q),
			"version %d is not kept",
			to,
		)
	}
	if comment == "" {
		comment = fmt.Sprintf("rollback to %d", to)
	}
	return p.PutPolicy(
		ctx,
		PolicyWrite{Queue: q, Expect: expect, Document: h[0].Document, Author: author, Comment: comment},
	)
}
