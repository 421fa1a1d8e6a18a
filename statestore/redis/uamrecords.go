// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

func (s *Store) uamRecordKey(app creel.ApplicationID) (n int64, key string) {
	p := ofApp(app)
	return p.n, s.applications.table.uamRecords(p)
}

// SaveUAMRecord implements statestore.UAMRecords.
func (s *Store) SaveUAMRecord(ctx context.Context, sp statestore.UAMRecord) (int64, error) {
	if err := statestore.CheckUAMRecord(&sp); err != nil {
		return 0, err
	}
	record, err := statestore.EncodeUAMRecord(sp)
	if err != nil {
		return 0, err
	}
	n, key := s.uamRecordKey(sp.Attempt.Application)
	list, err := s.writeShard(ctx, n, saveUAMRecordScript, []string{key}, sp.Attempt.Attempt, sp.Revision, record)
	if err != nil {
		return 0, err
	}
	switch list[0] {
	case "OK":
		return num(at(list, 1)), nil
	case "OTHER":
		return 0, statestore.OtherUAMRecord(sp.Attempt, num(at(list, 1)), sp.Revision)
	case "DROPPED":
		return 0, statestore.DroppedUAMRecord(sp.Attempt)
	}
	return 0, surprise(list)
}

// UAMRecord implements statestore.UAMRecords.
func (s *Store) UAMRecord(ctx context.Context, a creel.AttemptID) (statestore.UAMRecord, error) {
	n, key := s.uamRecordKey(a.Application)
	field := strconv.Itoa(int(a.Attempt))
	v, err := s.do(ctx, command("HMGET", key, field, field+"r"))
	if err != nil {
		return statestore.UAMRecord{}, err
	}
	list, _ := v.([]any)
	if at(list, 0) == nil {
		if err := s.applications.table.checkIdentity(ctx, n); err != nil {
			return statestore.UAMRecord{}, err
		}
		return statestore.UAMRecord{}, statestore.NoUAMRecord(a)
	}
	sp, err := statestore.ParseUAMRecord([]byte(str(list[0])))
	sp.Revision = num(at(list, 1))
	return sp, err
}

// UAMRecordsOf implements statestore.UAMRecords.
func (s *Store) UAMRecordsOf(ctx context.Context, app creel.ApplicationID) ([]statestore.UAMRecord, error) {
	n, key := s.uamRecordKey(app)
	v, err := s.do(ctx, command("HGETALL", key))
	if err != nil {
		return nil, err
	}
	fields := stringMap(v)
	if len(fields) == 0 {
		return nil, s.applications.table.checkIdentity(ctx, n)
	}
	var out []statestore.UAMRecord
	for f, record := range fields {
		if strings.HasSuffix(f, "r") {
			continue
		}
		sp, err := statestore.ParseUAMRecord([]byte(record))
		if err != nil {
			return nil, err
		}
		sp.Revision = num(fields[f+"r"])
		out = append(out, sp)
	}
	slices.SortFunc(out, func(a, b statestore.UAMRecord) int { return a.Attempt.Compare(b.Attempt) })
	return out, nil
}

// DropUAMRecord implements statestore.UAMRecords.
func (s *Store) DropUAMRecord(ctx context.Context, a creel.AttemptID) error {
	n, key := s.uamRecordKey(a.Application)
	_, err := s.writeShard(ctx, n, dropUAMRecordScript, []string{key}, a.Attempt,
		statestore.DroppedFor.Milliseconds())
	return err
}

// stringMap reads the reply of HGETALL in RESP2 and RESP3.
func stringMap(v any) map[string]string {
	m := map[string]string{}
	switch l := v.(type) {
	case []any:
		for i := 0; i+1 < len(l); i += 2 {
			m[str(l[i])] = str(l[i+1])
		}
	case map[any]any:
		for k, v := range l {
			m[str(k)] = str(v)
		}
	}
	return m
}
