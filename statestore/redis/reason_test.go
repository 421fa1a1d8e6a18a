// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/creelrm/creel/statestore/redis"
)

func TestLateAnswerHidesNoReason(t *testing.T) {
	missing := fmt.Errorf("%w: 0 of 1 within 200ms", redis.ErrNoReplicas)
	late := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}
	for _, c := range []struct{ last, err, want error }{
		{nil, late, late},
		{nil, missing, missing},
		{missing, late, missing},
		{missing, refused, refused},
		{late, missing, missing},
		{refused, late, late},
		{alert, late, alert},
		{late, alert, alert},
		{alert, refused, refused},
	} {
		if got := redis.ReasonAfter(c.last, c.err); got != c.want {
			t.Errorf("%v, then %v: reported %v, want %v", c.last, c.err, got, c.want)
		}
	}
}
