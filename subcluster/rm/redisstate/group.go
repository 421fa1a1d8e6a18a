// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"fmt"
	"strconv"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// groupArgs returns the arguments of groupScript. Of several operations on a key in the group only the last is sent.
func groupArgs(epoch string, number int64, tail int, ops []byte) ([]any, error) {
	last := map[string]int{} // operation by key
	var all []state.Op
	err := state.EachOp(ops, func(o state.Op) {
		if i, ok := last[string(o.Key)]; ok {
			all[i] = o
			return
		}
		last[string(o.Key)] = len(all)
		all = append(all, o)
	})
	if err != nil {
		return nil, err
	}
	sets := 0
	args := make([]any, 4, 4+2*len(all))
	for _, o := range all {
		if !o.Delete {
			args = append(args, o.Key, o.Value)
			sets += 2
		}
	}
	for _, o := range all {
		if o.Delete {
			args = append(args, o.Key)
		}
	}
	args[0], args[1], args[2], args[3] = epoch, number, sets, tail
	return args, nil
}

// verdict reads a script's answer to the holder of an epoch, which was acknowledged all groups up to number.
func verdict(list []any, epoch string, number int64) error {
	switch list[0] {
	case "OK":
		return nil
	case "HELD":
		if len(list) == 4 && later(list[1], epoch) {
			if text, _ := list[3].(string); text != "" {
				if at, err := strconv.ParseInt(text, 10, 64); err == nil && at < number {
					return fmt.Errorf("%w and %w: %v opened a state that lacks changes of this process",
						state.ErrFenced, state.ErrLost, list[2])
				}
			}
			return fmt.Errorf("%w: %v opened it after this one", state.ErrFenced, list[2])
		}
	}
	return fmt.Errorf("%w: Redis has restarted without its latest data, or a failover lost it (%v)", state.ErrLost, list)
}

// later reports whether an epoch follows another one.
func later(one any, epoch string) bool {
	text, _ := one.(string)
	a, errA := strconv.ParseInt(text, 10, 64)
	b, errB := strconv.ParseInt(epoch, 10, 64)
	return errA == nil && errB == nil && a > b
}
