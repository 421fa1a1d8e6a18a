// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/creelrm/creel/statestore"
)

// Each event is a node. The parent has the last id, and digests of the keys of the last EventKeys events.

// eventLog is the node of all events.
type eventLog struct {
	Last string   `json:"last"` // id
	Keys []string `json:"keys"` // oldest first
}

// eventNode is the name of an event's node: names sort as the ids do.
func eventNode(id string) (string, bool) {
	ms, n, ok := statestore.ParseEventID(id)
	return fmt.Sprintf("%015d-%010d", ms, n), ok
}

// eventID is the id of an event's node.
func eventID(node string) string {
	ms, n, _ := statestore.ParseEventID(node)
	return fmt.Sprintf("%d-%d", ms, n)
}

func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawStdEncoding.EncodeToString(sum[:12])
}

// AppendEvent implements statestore.Events.
func (s *Store) AppendEvent(ctx context.Context, e statestore.Event) error {
	if _, err := statestore.EncodeEvent(e); err != nil {
		return err
	}
	return s.change(ctx, false, func(t *txn) error { return t.append(e) })
}

// record appends the event of the context.
func (t *txn) record() error {
	if e, ok := statestore.RecordingOf(t.ctx); ok {
		return t.append(e)
	}
	return nil
}

// spare is the number of events beyond MaxEvents at which the oldest are deleted.
const spare = 100

func (t *txn) append(e statestore.Event) error {
	data, err := statestore.EncodeEvent(e)
	if err != nil {
		return err
	}
	parent := t.store.paths.events
	n, err := t.get(parent)
	if err != nil {
		return err
	}
	var log eventLog
	if len(n.data) > 0 && json.Unmarshal(n.data, &log) != nil {
		return statestore.Unreadable("the list of events", fmt.Errorf("%.80q", n.data))
	}
	key := digest(e.Key)
	if slices.Contains(log.Keys, key) {
		return nil
	}
	ms, next := t.now.UnixMilli(), int64(0)
	if last, number, ok := statestore.ParseEventID(log.Last); ok && last >= ms {
		ms, next = last, number+1
	}
	log.Last = fmt.Sprintf("%d-%d", ms, next)
	log.Keys = append(log.Keys, key)
	log.Keys = log.Keys[max(0, len(log.Keys)-statestore.EventKeys):]
	name, _ := eventNode(log.Last)
	if _, err := t.get(parent + "/" + name); err != nil {
		return err
	}
	t.put(parent, jsonOf(log))
	t.put(parent+"/"+name, data)
	if n.stat.Children < statestore.MaxEvents+spare {
		return nil
	}
	names, err := t.children(parent)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, old := range names[:max(0, len(names)-statestore.MaxEvents)] {
		if _, err := t.get(parent + "/" + old); err != nil {
			return err
		}
		t.remove(parent + "/" + old)
	}
	return nil
}

// Events implements statestore.Events.
func (s *Store) Events(ctx context.Context, after string, limit int) (out []statestore.Event, err error) {
	if err := cmp.Or(statestore.CheckCursor(after), statestore.CheckLimit(limit)); err != nil {
		return nil, err
	}
	err = s.look(ctx, func(t *txn) error {
		out = nil
		names, err := t.children(s.paths.events)
		if err != nil {
			return err
		}
		slices.Sort(names)
		names = names[max(0, len(names)-statestore.MaxEvents):]
		oldest := statestore.EventCursor(t.now.Add(-statestore.EventsFor))
		if statestore.CompareEventIDs(after, oldest) > 0 {
			oldest = after
		}
		names = slices.DeleteFunc(names, func(n string) bool {
			return statestore.CompareEventIDs(eventID(n), oldest) <= 0
		})
		names = names[:min(limit, len(names))]
		found := make([]*statestore.Event, len(names))
		err = each(len(names), func(i int) error {
			n, err := t.apart().get(s.paths.events + "/" + names[i])
			if err != nil || !n.is {
				return err
			}
			e, err := statestore.ParseEvent(eventID(names[i]), n.data)
			found[i] = &e
			return err
		})
		for _, e := range found {
			if e != nil {
				out = append(out, *e)
			}
		}
		return err
	})
	return out, err
}
