// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"context"
	"fmt"
	"strconv"
)

// mirror is a copy of the entries after a group of the holder with an epoch. Within one epoch the number determines
// the entries: a holder whose groups were lost ends. Over a change of the holder only the process that opened the state
// can continue its copy, because it knows the previous epoch.
type mirror struct {
	epoch   string
	number  int64
	entries map[string]string
}

// groupsPerRead limits the groups of one changesScript.
const groupsPerRead = 100

// continued passes the copy to the holder that followed previous. Any other copy becomes useless.
func (m *mirror) continued(previous, epoch string) {
	switch {
	case m == nil:
	case m.epoch == previous:
		m.epoch = epoch
	default:
		m.epoch = ""
	}
}

// ahead returns the number of the copied groups that a state lacks. previous is the epoch of its last holder, and
// number its last group.
func (m *mirror) ahead(previous string, number int64) int64 {
	if m == nil || m.epoch != previous {
		return 0
	}
	return max(m.number-number, 0)
}

// update brings the copy up to date. current is false if it cannot be continued, and all entries must be read.
func (m *mirror) update(ctx context.Context, scripts Server, keys []string) (current bool, err error) {
	for {
		list, err := scripts.Read(ctx, changesScript, keys, m.epoch, m.number, groupsPerRead)
		if err != nil || list[0] != "OK" {
			return false, err
		}
		last, stored, err := m.apply(list)
		if err != nil {
			return false, err
		}
		if m.number == last {
			return int64(len(m.entries)) == stored, nil
		}
	}
}

// apply reads an answer of changesScript. It returns the last group, and the number of entries after it.
func (m *mirror) apply(list []any) (last, stored int64, err error) {
	reached, _ := list[1].(string)
	newest, _ := list[2].(string)
	stored, ok := list[3].(int64)
	if m.number, err = strconv.ParseInt(reached, 10, 64); err == nil {
		last, err = strconv.ParseInt(newest, 10, 64)
	}
	if err != nil || !ok {
		return 0, 0, fmt.Errorf("unexpected reply to a read of changes: %.100v", list)
	}
	for i := 4; i+1 < len(list); i += 2 {
		name, _ := list[i].(string)
		if value, ok := list[i+1].(string); ok {
			m.entries[name] = value
		} else {
			delete(m.entries, name)
		}
	}
	return last, stored, nil
}

// head returns the holder's epoch and the last group.
func head(ctx context.Context, scripts Server, keys []string) (epoch string, number int64, err error) {
	list, err := scripts.Read(ctx, changesScript, keys, "none", 0, 1)
	if err != nil {
		return "", 0, err
	}
	if len(list) != 3 {
		return "", 0, fmt.Errorf("unexpected reply to a read of the state's head: %.100v", list)
	}
	epoch, _ = list[1].(string)
	last, _ := list[2].(string)
	number, err = strconv.ParseInt(last, 10, 64)
	return epoch, number, err
}
