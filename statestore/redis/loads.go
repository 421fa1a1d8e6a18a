// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// This is a proxy's periodic read of loads (ADR 22). BenchmarkWatchers measures its cost with 5,000 proxies.
//
// A heartbeat that changes a load appends the change to logs: its head to one log, and the rows of each leaf name to a
// separate log. A reader fetches the new part of each log, in the same round trip as its check.
//
// Logs have generations. A generation ends after a minute, or when it has twice as many load changes as there are
// members. The previous generation is retained for readers that have not finished it. A reader that is further behind
// asks for the members whose loads have changed, and reads those loads.

// cutLoad is a partially read load. It is immutable.
type cutLoad struct {
	epoch string
	head  string
	rows  []string // by queue of the set; "" for no rows
}

// with returns the load with new rows of a queue.
func (l cutLoad) with(queue int, rows string, queues int) cutLoad {
	next := make([]string, queues)
	copy(next, l.rows)
	next[queue] = rows
	return cutLoad{l.epoch, l.head, next}
}

// text returns the load's encoded form.
func (l cutLoad) text() string {
	texts := []string{l.head}
	for _, rows := range l.rows {
		if rows != "" {
			texts = append(texts, rows)
		}
	}
	return subcluster.JoinParts(texts)
}

// logPlace is a reader's position: the count of load changes it has read, and its offsets in the logs.
type logPlace struct {
	count      int64
	generation string  // of the logs; "" if no logs are read
	at         []int64 // bytes read of the log of heads, then of the logs of rows by queue; empty: read from the start
}

// parsePlace reads a log place from the reply of the records script.
func parsePlace(text string) logPlace {
	count, generation, _ := strings.Cut(text, " ")
	return logPlace{count: num(count), generation: generation}
}

// String returns the place as an argument of that script.
func (p logPlace) String() string {
	return strings.TrimSuffix(strconv.FormatInt(p.count, 10)+" "+p.generation, " ")
}

// isNext reports whether the logs of b follow those of p.
func (p logPlace) isNext(b logPlace) bool { return num(b.generation) == num(p.generation)+1 }

// logEntry is an entry of a log: the report of a member in an epoch. An empty text of rows means that the rows are
// gone. An empty head means that the load must be read whole.
type logEntry struct{ id, epoch, text string }

// readLog reads the entries of a log after a count of changes. ok is false if the text is not a complete log.
// The log of heads has every change, so there it is also false if an entry is missing.
func readLog(text string, after int64, every bool) (entries []logEntry, last int64, ok bool) {
	last = after
	for text != "" {
		entry, found := strings.CutPrefix(text, "\x1e")
		if !found {
			return nil, after, false
		}
		text = ""
		if end := strings.IndexByte(entry, '\x1e'); end >= 0 {
			entry, text = entry[:end], entry[end:]
		}
		number, rest, _ := strings.Cut(entry, " ")
		count := num(number)
		if count <= after {
			continue // it was read with the whole load
		}
		if every && count != last+1 {
			return nil, after, false
		}
		last = count
		id, rest, _ := strings.Cut(rest, " ")
		epoch, part, _ := strings.Cut(rest, " ")
		entries = append(entries, logEntry{id, epoch, part})
	}
	return entries, last, true
}

// look runs the records script. If loads are wanted, it also reads the new parts of the logs: of heads, then of rows by
// queue. The logs may not continue the known state, e.g. after a report by an older creel that appends nothing to them.
// Then look runs the script once more without a place, and the returned place shows it.
func (s *Store) look(
	ctx context.Context,
	policies *policySet,
	members *memberSet,
	wanted bool,
) (is recordsReply, reported [][]logEntry, loads logPlace, err error) {
	keys := s.controls("meta", "m", "e", "b", "r", "d", "x", "v", "lv", "p", "mv", "s")
	for from := members.loads; ; from.generation = "" {
		args := []any{policies.version, policies.identity, members.changes, from.String()}
		for _, id := range members.uncounted {
			args = append(args, string(id))
		}
		// The script is sent first, so that the logs contain all changes it counts.
		calls := []*call{reading(recordsScript, keys, args...), command("GET", s.control("t"))}
		if from.generation != "" && wanted {
			calls = append(calls, s.logs(from, members.queues)...)
		}
		answers, err := s.all(ctx, calls)
		if err != nil {
			return recordsReply{}, nil, logPlace{}, err
		}
		if is, err = parseLook(answers[0], answers[1]); err != nil {
			return recordsReply{}, nil, logPlace{}, err
		}
		loads = is.place
		switch {
		case !members.inParts, from.generation == "" && !is.all: // no logs until all members have been read again
			loads.generation = ""
			return is, nil, loads, nil
		case is.all, loads.generation != from.generation && !from.isNext(loads): // the reply lists the changed loads
			return is, nil, loads, nil
		case !wanted: // the next look starts where this one did
			return is, nil, from, nil
		}
		reported, loads, err = s.readLogs(ctx, from, is.place, members.queues, answers[2:])
		if err != nil || reported != nil {
			return is, reported, loads, err
		}
	}
}

// logs returns calls that read the logs from a place on. Each call includes the last known byte: a lost log returns
// nothing.
func (s *Store) logs(from logPlace, queues []string) []*call {
	calls := make([]*call, 1+len(queues))
	for i := range calls {
		name, at := "", int64(0)
		if i > 0 {
			name = queues[i-1]
		}
		if from.at != nil {
			at = max(0, from.at[i]-1)
		}
		calls[i] = command("GETRANGE", s.control("log:"+from.generation+":"+name), at, -1)
	}
	return calls
}

// readLogs reads the replies of the logs, and the next generation's logs if the script's reply names one. It returns
// nothing if they do not continue from the place.
func (s *Store) readLogs(
	ctx context.Context,
	from, is logPlace,
	queues []string,
	answers []any,
) (reported [][]logEntry, to logPlace, err error) {
	texts := make([]string, len(answers))
	to = logPlace{count: from.count, generation: from.generation, at: make([]int64, len(answers))}
	for i, answer := range answers {
		texts[i] = str(answer)
		if from.at != nil && from.at[i] > 0 {
			if texts[i] == "" {
				return nil, logPlace{}, nil
			}
			texts[i], to.at[i] = texts[i][1:], from.at[i]
		}
		to.at[i] += int64(len(texts[i]))
	}
	if from.isNext(is) {
		to.generation, to.at = is.generation, nil
		next, err := s.all(ctx, s.logs(to, queues))
		if err != nil {
			return nil, logPlace{}, err
		}
		to.at = make([]int64, len(next))
		for i, answer := range next {
			texts[i] += str(answer)
			to.at[i] = int64(len(str(answer)))
		}
	}
	reported = make([][]logEntry, len(texts))
	for i, text := range texts {
		entries, last, ok := readLog(text, from.count, i == 0)
		if i == 0 {
			to.count = last
			ok = ok && last >= is.count
		}
		if !ok {
			return nil, logPlace{}, nil
		}
		reported[i] = entries
	}
	return reported, to, nil
}

// readLoads reads the loads that are due. It reads a load in parts if the set has parts and a current creel cut the
// member's load in this epoch, else whole. Loads may be newer than the rest of the set: then the next check returns
// them again. It builds logged loads from the known parts and the log entries.
func (s *Store) readLoads(ctx context.Context, m *memberSet, reported [][]logEntry) error {
	whole := m.due
	if m.inParts {
		if m.parts = maps.Clone(m.parts); m.parts == nil {
			m.parts = map[creel.SubclusterID]cutLoad{}
		}
		whole = m.report(reported)
		due, err := s.readParts(ctx, m)
		if err != nil {
			return err
		}
		whole = slices.Compact(slices.Sorted(slices.Values(slices.Concat(whole, due))))
	}
	if len(whole) == 0 {
		return nil
	}
	answers, err := s.all(ctx, []*call{s.getAll("l", whole)})
	if err != nil {
		return err
	}
	loads := columns(answers)
	for i, id := range whole {
		if r := m.member(id); r != nil {
			setLoad(r, loads.at(0, i))
		}
	}
	return nil
}

// report applies the logged changes, and returns the members whose loads must be read whole. It skips entries of
// members whose loads are due.
func (m *memberSet) report(reported [][]logEntry) (whole []string) {
	told := map[string]bool{} // members with an entry, and whether it was a head
	for column, entries := range reported {
		for _, e := range entries {
			r := m.member(e.id)
			if _, due := slices.BinarySearch(m.due, e.id); r == nil || due {
				continue
			}
			l := m.parts[r.ID]
			if l.epoch != e.epoch {
				l = cutLoad{epoch: e.epoch}
			}
			if column == 0 {
				l.head = e.text
			} else {
				l = l.with(column-1, e.text, len(m.queues))
			}
			told[e.id] = told[e.id] || column == 0
			m.parts[r.ID] = l
		}
	}
	for id, head := range told {
		r := m.member(id)
		switch l := m.parts[r.ID]; {
		case m.cut(r, l):
			setLoad(r, l.text())
		case head:
			whole = append(whole, id)
		}
	}
	return whole
}

// cut reports whether a partial load belongs to the member's present epoch and its process counts changes.
func (m *memberSet) cut(r *subcluster.Record, l cutLoad) bool {
	return l.head != "" && l.epoch == strconv.FormatInt(r.Epoch, 10) && !slices.Contains(m.uncounted, r.ID)
}

// readParts reads due loads in parts, and returns the members whose loads must be read whole.
func (s *Store) readParts(ctx context.Context, m *memberSet) (whole []string, err error) {
	if len(m.due) == 0 {
		return nil, nil
	}
	var calls []*call
	for _, leaf := range m.queues {
		calls = append(calls, s.getAll("q:"+leaf, m.due))
	}
	answers, err := s.all(ctx, append(calls, s.getAll("h", m.due)))
	if err != nil {
		return nil, err
	}
	parts := columns(answers)
	for i, id := range m.due {
		r := m.member(id)
		if r == nil {
			delete(m.parts, creel.SubclusterID(id))
			continue
		}
		var l cutLoad
		l.epoch, l.head, _ = strings.Cut(parts.at(len(m.queues), i), " ")
		for column := range m.queues {
			l.rows = append(l.rows, parts.at(column, i))
		}
		m.parts[r.ID] = l
		if m.cut(r, l) {
			setLoad(r, l.text())
		} else {
			whole = append(whole, id)
		}
	}
	return whole, nil
}

// getAll returns a call that reads the members' fields of a hash.
func (s *Store) getAll(name string, ids []string) *call {
	args := []any{"HMGET", s.control(name)}
	for _, id := range ids {
		args = append(args, id)
	}
	return command(args...)
}
