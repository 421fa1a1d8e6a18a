// SPDX-License-Identifier: Apache-2.0

package server

import (
	"reflect"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// mapLog is a state in memory.
type mapLog struct {
	state.Log
	entries map[string][]byte
}

func (l *mapLog) Each(f func(key string, value []byte) error) error {
	for key, value := range l.entries {
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (l *mapLog) Close() error { return nil }

var imported = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// portable is the state of another implementation with a running application.
func portable(t *testing.T) *Portable {
	t.Helper()
	app := creel.ApplicationID{ClusterTimestamp: imported.UnixMilli(), ID: 7}
	s, err := codec.Submission(&pb.ApplicationSubmissionContextProto{
		ApplicationId: pb.FromApplicationID(app), Queue: new("default"),
		AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: pb.FromResource(creel.NewResource(512, 1)),
	}, "ann", nil, codec.NoTagLimits)
	if err != nil {
		t.Fatal(err)
	}
	attempt := creel.AttemptID{Application: app, Attempt: 1}
	return &Portable{
		Epoch: 5, Started: imported,
		Apps: []rm.AppRecord{{
			Submission: s, Submitted: imported.Add(time.Second), Queue: "default", State: creel.AppNew,
			Attempts: []rm.AttemptRecord{{
				ID: attempt, AM: creel.ContainerID{Attempt: attempt, ID: 4<<40 | 1}, State: creel.AttemptNew,
				Node: creel.NodeID{Host: "n1", Port: 1},
			}},
		}},
		AMRM: token.KeyState{
			Current: token.Key{ID: 11, Secret: []byte("current")}, Next: token.Key{ID: 12, Secret: []byte("next")},
		},
		Delegation: token.DelegationState{
			Keys:     []token.DelegationKey{{Key: token.Key{ID: 3, Secret: []byte("key")}, Expires: imported.Add(1e6 * time.Hour)}},
			Sequence: 9,
			Tokens: []token.DelegationRecord{{Expires: imported.Add(1e5 * time.Hour), Delegation: token.Delegation{
				Owner: "ann", Renewer: "yarn", Issued: imported, Max: imported.Add(1e6 * time.Hour), Sequence: 9, KeyID: 3,
			}}},
		},
		ClientKeys: map[creel.AttemptID][]byte{attempt: []byte("client")},
	}
}

// importedServer is a server on an imported state.
func importedServer(t *testing.T, p *Portable, first int64) *Server {
	t.Helper()
	entries, err := p.Entries(first)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		ClusterID: "test", Machine: rm.Defaults(), Epoch: first, Secure: &Secure{},
		State: func() (state.Log, error) { return &mapLog{entries: entries}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestImportedStateContinues(t *testing.T) {
	p := portable(t)
	attempt := p.Apps[0].Attempts[0].ID
	s := importedServer(t, p, 2)
	if s.secrets.epoch != 5 {
		t.Errorf("the epoch is %d, want 5", s.secrets.epoch)
	}
	// AMs' tokens under both keys are accepted, and the current key remains for as long as AMs may be silent.
	if until := s.secrets.amrm.Deadline(); until.Before(s.start.Add(s.cfg.Machine.AMExpiry)) {
		t.Errorf("the keys of AMs change at %v, the start was at %v", until, s.start)
	}
	for _, key := range []token.Key{p.AMRM.Current, p.AMRM.Next} {
		held := token.NewMac(key).AMRM(attempt)
		password, _, err := s.CheckAMRM(held.Identifier)
		if err != nil || string(password) != string(held.Password) {
			t.Errorf("a token under key %d: %v", key.ID, err)
		}
	}
	issued := token.NewMac(p.Delegation.Keys[0].Key).Delegation(p.Delegation.Tokens[0].Delegation)
	password, who, err := s.CheckDelegation(issued.Identifier)
	if err != nil || who.User != "ann" || string(password) != string(issued.Password) {
		t.Errorf("a delegation token: %v", err)
	}
	if key := (Clients{s}).Key(attempt); string(key) != "client" {
		t.Errorf("the AM's key of clients' tokens is %q", key)
	}
	if s.secrets.nm.Current().Key().IsZero() || s.secrets.container.Current().Key().IsZero() {
		t.Error("the nodes have no keys")
	}
	if _, known := s.owner.Machine.App(attempt.Application); !known {
		t.Error("the application is unknown")
	}
	if s.FirstStart() || !s.Started().After(imported) {
		t.Error("it is a first start")
	}
}

// A server that started on an imported state saves what it imported.
func TestImportedStateIsExported(t *testing.T) {
	p := portable(t)
	p.ClientKeys[p.Apps[0].Attempts[0].ID] = []byte("client")
	entries, err := p.Entries(2)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadPortable(&mapLog{entries: entries}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if back.Epoch != p.Epoch || !reflect.DeepEqual(back.AMRM, p.AMRM) || !reflect.DeepEqual(back.ClientKeys, p.ClientKeys) ||
		len(back.Apps) != 1 || back.Apps[0].Submission.ID != p.Apps[0].Submission.ID || len(back.Omitted) != 0 {
		t.Errorf("exported %+v", back)
	}
	if d := back.Delegation; d.Sequence != 9 || len(d.Tokens) != 1 || len(d.Keys) != 1 || !d.Tokens[0].Is(p.Delegation.Tokens[0].Delegation) {
		t.Errorf("the tokens are %+v", d)
	}

	s := importedServer(t, p, 2)
	started := &mapLog{entries: entries}
	tx := map[string][]byte{}
	if err := state.EachOp(s.durability.tx.Bytes(), func(o state.Op) { tx[string(o.Key)] = o.Value }); err != nil {
		t.Fatal(err)
	}
	for key, value := range tx {
		started.entries[key] = value
	}
	again, err := ReadPortable(started, 2)
	if err != nil || again.Epoch != p.Epoch+1 || !reflect.DeepEqual(again.ClientKeys, p.ClientKeys) ||
		!reflect.DeepEqual(again.AMRM.Current, p.AMRM.Current) {
		t.Errorf("after a start: %v, %+v", err, again)
	}

	started.entries[keyDrain+"h1"] = []byte(`{"host":"h1"}`)
	if more, err := ReadPortable(started, 2); err != nil || len(more.Omitted) != 1 {
		t.Errorf("a drained host: %v", err)
	}
	if _, err := ReadPortable(&mapLog{}, 2); err == nil {
		t.Error("an empty state was exported")
	}
}
