// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// Keys of the journal. Applications sort before their attempts' records are
// needed, and nothing depends on the order otherwise.
const (
	keyMeta    = "meta"
	keyApp     = "app/"
	keyAttempt = "attempt/" // attempt/<application>/<number>
	keySecrets = "secrets"
	keyToken   = "token/"    // token/<sequence number> of a delegation token
	keyDisown  = "disowned/" // disowned/<application>: the claim's number
)

// meta is what each start of the ResourceManager leaves to the next.
type meta struct {
	Starts int64 `json:"lives"`            // how often it has started
	Member int64 `json:"member,omitempty"` // its newest epoch as a member of a federation
}

// appValue is an application in the journal: this as JSON, and behind it the
// submission message as it came, so that fields we do not know survive.
type appValue struct {
	User        string         `json:"user"`
	Groups      []string       `json:"groups,omitempty"`
	Submitted   int64          `json:"submitted"`
	Queue       string         `json:"queue"`
	Priority    int32          `json:"priority"`
	HasPriority bool           `json:"hasPriority,omitempty"`
	State       int32          `json:"state"`
	Final       int32          `json:"final"`
	Diagnostics string         `json:"diagnostics,omitempty"`
	Started     int64          `json:"started,omitempty"`
	Finished    int64          `json:"finished,omitempty"`
	Lifetime    int64          `json:"lifetime,omitempty"`
	Attempts    []attemptValue `json:"attempts,omitempty"`
}

type attemptValue struct {
	ID          creel.AttemptID   `json:"id"`
	AM          creel.ContainerID `json:"master,omitzero"`
	Node        creel.NodeID      `json:"node,omitzero"`
	Started     int64             `json:"started,omitempty"`
	State       int32             `json:"state"`
	Final       int32             `json:"final"`
	Diagnostics string            `json:"diagnostics,omitempty"`
	TrackingURL string            `json:"trackingUrl,omitempty"`
	ExitStatus  int32             `json:"exitStatus,omitempty"`
	Finished    int64             `json:"finished,omitempty"`
}

func attemptToValue(a rm.AttemptRecord) attemptValue {
	return attemptValue{
		ID:          a.ID,
		AM:          a.AM,
		Node:        a.Node,
		Started:     codec.Millis(a.Started),
		State:       int32(a.State),
		Final:       int32(a.Final),
		Diagnostics: a.Diagnostics,
		TrackingURL: a.TrackingURL,
		ExitStatus:  a.ExitStatus,
		Finished:    codec.Millis(a.Finished),
	}
}

func (v attemptValue) record() rm.AttemptRecord {
	return rm.AttemptRecord{
		ID:          v.ID,
		AM:          v.AM,
		Node:        v.Node,
		Started:     codec.Time(v.Started),
		State:       creel.AttemptState(v.State),
		Final:       creel.FinalStatus(v.Final),
		Diagnostics: v.Diagnostics,
		TrackingURL: v.TrackingURL,
		ExitStatus:  v.ExitStatus,
		Finished:    codec.Time(v.Finished),
	}
}

// encodeApp writes an application for the journal.
func encodeApp(r rm.AppRecord) ([]byte, error) {
	v := appValue{
		User:        r.Submission.User,
		Groups:      r.Submission.Groups,
		Submitted:   codec.Millis(r.Submitted),
		Queue:       string(r.Queue),
		Priority:    r.Submission.Priority,
		HasPriority: r.Submission.HasPriority,
		State:       int32(r.State),
		Final:       int32(r.Final),
		Diagnostics: r.Diagnostics,
		Started:     codec.Millis(r.Started),
		Finished:    codec.Millis(r.Finished),
		Lifetime:    codec.Millis(r.Lifetime),
	}
	for _, a := range r.Attempts {
		v.Attempts = append(v.Attempts, attemptToValue(a))
	}
	head, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	c, _ := r.Submission.Context.(*pb.ApplicationSubmissionContextProto)
	if c == nil {
		return nil, fmt.Errorf("application %s has no submission context", r.Submission.ID)
	}
	out := binary.AppendUvarint(make([]byte, 0, len(head)+c.SizeVT()+binary.MaxVarintLen32), uint64(len(head)))
	out = append(out, head...)
	size := c.SizeVT()
	n := len(out)
	out = append(out, make([]byte, size)...)
	_, err = c.MarshalToSizedBufferVT(out[n:])
	return out, err
}

// decodeApp reads what encodeApp wrote.
func decodeApp(b []byte) (rm.AppRecord, error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return rm.AppRecord{}, errors.New("the record is shorter than it says")
	}
	var v appValue
	if err := json.Unmarshal(b[w:w+int(n)], &v); err != nil {
		return rm.AppRecord{}, err
	}
	c := new(pb.ApplicationSubmissionContextProto)
	if err := c.UnmarshalVT(b[w+int(n):]); err != nil {
		return rm.AppRecord{}, err
	}
	s, err := codec.Submission(c, v.User, v.Groups)
	if err != nil {
		return rm.AppRecord{}, err
	}
	s.Priority, s.HasPriority = v.Priority, v.HasPriority
	r := rm.AppRecord{
		Submission:  s,
		Submitted:   codec.Time(v.Submitted),
		Queue:       creel.QueuePath(v.Queue),
		State:       creel.ApplicationState(v.State),
		Final:       creel.FinalStatus(v.Final),
		Diagnostics: v.Diagnostics,
		Started:     codec.Time(v.Started),
		Finished:    codec.Time(v.Finished),
		Lifetime:    codec.Time(v.Lifetime),
	}
	for _, a := range v.Attempts {
		r.Attempts = append(r.Attempts, a.record())
	}
	return r, nil
}

func attemptKey(id creel.AttemptID) string {
	return keyAttempt + id.Application.String() + "/" + strconv.Itoa(int(id.Attempt))
}

// saveApp and saveAttempt put an action's record into this turn's transaction.
func (s *Server) saveApp(a rm.SaveApp) {
	id := a.Record.Submission.ID
	if a.Deleted {
		s.durable.tx.Delete(keyApp + id.String())
		for n := int32(1); n <= s.attempts[id]; n++ {
			s.durable.tx.Delete(attemptKey(creel.AttemptID{Application: id, Attempt: n}))
		}
		delete(s.attempts, id)
		s.secrets.forgetApp(id)
		return
	}
	s.durable.gate.Saved(a.Seq)
	value, err := encodeApp(a.Record)
	if err != nil {
		s.fail(fmt.Errorf("resource manager: saving %s: %w", id, err))
		return
	}
	s.durable.tx.Put(keyApp+id.String(), value)
}

func (s *Server) saveAttempt(a rm.SaveAttempt) {
	s.durable.gate.Saved(a.Seq)
	value, err := json.Marshal(attemptToValue(a.Record))
	if err != nil {
		s.fail(fmt.Errorf("resource manager: saving %s: %w", a.Record.ID, err))
		return
	}
	id := a.Record.ID
	s.attempts[id.Application] = max(s.attempts[id.Application], id.Attempt)
	s.durable.tx.Put(attemptKey(id), value)
}

// saveDisowned keeps the number of the claim up to which an application is refused.
func (s *Server) saveDisowned(a rm.SaveDisowned) {
	key := keyDisown + a.Disowned.App.String()
	if a.Deleted {
		s.durable.tx.Delete(key)
		return
	}
	s.durable.gate.Saved(a.Seq)
	s.durable.tx.Put(key, strconv.AppendInt(nil, a.Disowned.Claim, 10))
}

// putStart records that the ResourceManager starts, before anyone can see it.
func (s *Server) putStart(m meta) error {
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.durable.tx.Put(keyMeta, value)
	return s.putSecrets()
}

// MemberEpoch returns the epoch that this ResourceManager, or the one whose
// journal it took over, last had as a member of a federation; 0 for none. Call it
// before Run.
func (s *Server) MemberEpoch() int64 { return s.meta.Member }

// KeepMemberEpoch returns when the epoch is durable, so that the next process on
// this journal can prove whose successor it is.
func (s *Server) KeepMemberEpoch(ctx context.Context, epoch int64) error {
	_, err := Do(
		ctx,
		s,
		Caller{},
		Op[struct{}]{durable: true, Run: func(*rm.Machine, time.Time) func() (struct{}, error) {
			s.meta.Member = epoch
			value, err := json.Marshal(s.meta)
			if err != nil {
				return Failed[struct{}](err)
			}
			s.durable.tx.Put(keyMeta, value)
			return Done(struct{}{})
		}},
	)
	return err
}

// putSecrets adds the master keys to this turn's transaction.
func (s *Server) putSecrets() error {
	value, err := s.secrets.value()
	if err != nil {
		return err
	}
	s.durable.tx.Put(keySecrets, value)
	return s.tokens.putKeys(&s.durable.tx)
}

// kept is what the journal holds.
type kept struct {
	meta      meta
	apps      []rm.AppRecord
	disowned  []rm.Disowned
	secrets   []byte
	tokenKeys []byte
	tokens    [][]byte
}

// replay reads the journal: the applications with their attempts, keys and
// tokens, and how often there was a start.
func (s *Server) replay() (k kept, err error) {
	index := map[string]int{}
	var attempts []rm.AttemptRecord
	err = s.durable.journal.Each(func(key string, value []byte) error {
		switch {
		case key == keyMeta:
			return json.Unmarshal(value, &k.meta)
		case key == keySecrets:
			k.secrets = value
		case key == keyTokenKeys:
			k.tokenKeys = value
		case strings.HasPrefix(key, keyApp):
			r, err := decodeApp(value)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			index[strings.TrimPrefix(key, keyApp)] = len(k.apps)
			k.apps = append(k.apps, r)
		case strings.HasPrefix(key, keyAttempt):
			var v attemptValue
			if err := json.Unmarshal(value, &v); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			attempts = append(attempts, v.record())
		case strings.HasPrefix(key, keyDisown):
			id, err := creel.ParseApplicationID(strings.TrimPrefix(key, keyDisown))
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			claim, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			k.disowned = append(k.disowned, rm.Disowned{App: id, Claim: claim})
		case strings.HasPrefix(key, keyToken):
			k.tokens = append(k.tokens, value)
		default:
			return fmt.Errorf("key %q is not known: the journal is of a newer version", key)
		}
		return nil
	})
	if err != nil {
		return kept{}, fmt.Errorf("resource manager: reading the journal in %s: %w", s.cfg.Dir, err)
	}
	slices.SortFunc(k.disowned, func(a, b rm.Disowned) int { return a.App.Compare(b.App) })
	for _, a := range attempts {
		i, ok := index[a.ID.Application.String()]
		if !ok {
			continue
		}
		s.attempts[a.ID.Application] = max(s.attempts[a.ID.Application], a.ID.Attempt)
		k.apps[i].Attempts = putAttempt(k.apps[i].Attempts, a)
	}
	return k, nil
}

// putAttempt replaces the attempt of the same number, or puts it in its place.
func putAttempt(list []rm.AttemptRecord, a rm.AttemptRecord) []rm.AttemptRecord {
	for i := range list {
		switch {
		case list[i].ID == a.ID:
			list[i] = a
			return list
		case list[i].ID.Attempt > a.ID.Attempt:
			return append(list[:i], append([]rm.AttemptRecord{a}, list[i:]...)...)
		}
	}
	return append(list, a)
}
