// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel/statestore"
)

// keptEvent is an event in memory.
type keptEvent struct {
	ID    string          `json:"id"`
	Key   string          `json:"key"`
	Event json.RawMessage `json:"event"`
}

// AppendEvent: see Events.
func (t *State) AppendEvent(now time.Time, e statestore.Event) error {
	data, err := statestore.EncodeEvent(e)
	if err != nil {
		return err
	}
	for i := max(0, len(t.events)-statestore.EventKeys); i < len(t.events); i++ {
		if t.events[i].Key == e.Key {
			return nil
		}
	}
	ms, n := now.UnixMilli(), int64(0)
	if len(t.events) > 0 {
		if last, seq, _ := statestore.ParseEventID(t.events[len(t.events)-1].ID); last >= ms {
			ms, n = last, seq+1
		}
	}
	t.events = append(t.events, keptEvent{fmt.Sprintf("%d-%d", ms, n), e.Key, data})
	oldest := statestore.EventCursor(now.Add(-statestore.EventsFor))
	first := max(0, len(t.events)-statestore.MaxEvents)
	for first < len(t.events) && statestore.CompareEventIDs(t.events[first].ID, oldest) <= 0 {
		first++
	}
	t.events = slices.Delete(t.events, 0, first)
	return nil
}

// Events: see Events.
func (t *State) Events(after string, limit int) (out []statestore.Event, err error) {
	if err := cmp.Or(statestore.CheckCursor(after), statestore.CheckLimit(limit)); err != nil {
		return nil, err
	}
	first, _ := slices.BinarySearchFunc(t.events, after, func(k keptEvent, id string) int {
		if statestore.CompareEventIDs(k.ID, id) <= 0 && id != "" {
			return -1
		}
		return 1
	})
	for _, k := range t.events[first:min(len(t.events), first+limit)] {
		e, err := statestore.ParseEvent(k.ID, k.Event)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// AppendEvent implements Events.
func (m *Store) AppendEvent(ctx context.Context, e statestore.Event) error {
	if _, err := statestore.EncodeEvent(e); err != nil {
		return err
	}
	return m.write(ctx, func(t *State, now time.Time) error { return t.AppendEvent(now, e) })
}

// Events implements Events.
func (m *Store) Events(_ context.Context, after string, limit int) ([]statestore.Event, error) {
	return read(m, func(t *State, _ time.Time) ([]statestore.Event, error) { return t.Events(after, limit) })
}
