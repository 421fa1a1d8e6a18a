// SPDX-License-Identifier: Apache-2.0

package rpc

import (
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

// meta is what a life of the ResourceManager leaves to the next.
type meta struct {
	Lives int64 `json:"lives"` // how often it has started
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
	Master      creel.ContainerID `json:"master,omitzero"`
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
		Master:      a.Master,
		Node:        a.Node,
		Started:     millis(a.Started),
		State:       int32(a.State),
		Final:       int32(a.Final),
		Diagnostics: a.Diagnostics,
		TrackingURL: a.TrackingURL,
		ExitStatus:  a.ExitStatus,
		Finished:    millis(a.Finished),
	}
}

func (v attemptValue) record() rm.AttemptRecord {
	return rm.AttemptRecord{
		ID:          v.ID,
		Master:      v.Master,
		Node:        v.Node,
		Started:     at(v.Started),
		State:       creel.AttemptState(v.State),
		Final:       creel.FinalStatus(v.Final),
		Diagnostics: v.Diagnostics,
		TrackingURL: v.TrackingURL,
		ExitStatus:  v.ExitStatus,
		Finished:    at(v.Finished),
	}
}

// encodeApp writes an application for the journal.
func encodeApp(r rm.AppRecord) ([]byte, error) {
	v := appValue{
		User: r.Submission.User, Groups: r.Submission.Groups, Submitted: millis(r.Submitted), Queue: string(r.Queue),
		Priority: r.Submission.Priority, HasPriority: r.Submission.HasPriority,
		State: int32(r.State), Final: int32(r.Final), Diagnostics: r.Diagnostics,
		Started: millis(r.Started), Finished: millis(r.Finished), Lifetime: millis(r.Lifetime),
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
	s, err := submission(c, v.User, v.Groups)
	if err != nil {
		return rm.AppRecord{}, err
	}
	s.Priority, s.HasPriority = v.Priority, v.HasPriority
	r := rm.AppRecord{
		Submission:  s,
		Submitted:   at(v.Submitted),
		Queue:       creel.QueuePath(v.Queue),
		State:       creel.ApplicationState(v.State),
		Final:       creel.FinalStatus(v.Final),
		Diagnostics: v.Diagnostics,
		Started:     at(v.Started),
		Finished:    at(v.Finished),
		Lifetime:    at(v.Lifetime),
	}
	for _, a := range v.Attempts {
		r.Attempts = append(r.Attempts, a.record())
	}
	return r, nil
}

func attemptKey(id creel.AttemptID) string {
	return keyAttempt + id.Application.String() + "/" + strconv.Itoa(int(id.Attempt))
}

// saveApp and saveAttempt put an action's record into the running transaction.
func (d *Daemon) saveApp(a rm.SaveApp) {
	id := a.Record.Submission.ID
	if a.Deleted {
		d.save.tx.Delete(keyApp + id.String())
		for n := int32(1); n <= d.attempts[id]; n++ {
			d.save.tx.Delete(attemptKey(creel.AttemptID{Application: id, Attempt: n}))
		}
		delete(d.attempts, id)
		d.secrets.forgetApp(id)
		return
	}
	d.save.seq = max(d.save.seq, a.Seq)
	value, err := encodeApp(a.Record)
	if err != nil {
		d.fail(fmt.Errorf("resource manager: saving %s: %w", id, err))
		return
	}
	d.save.tx.Put(keyApp+id.String(), value)
}

func (d *Daemon) saveAttempt(a rm.SaveAttempt) {
	d.save.seq = max(d.save.seq, a.Seq)
	value, err := json.Marshal(attemptToValue(a.Record))
	if err != nil {
		d.fail(fmt.Errorf("resource manager: saving %s: %w", a.Record.ID, err))
		return
	}
	id := a.Record.ID
	d.attempts[id.Application] = max(d.attempts[id.Application], id.Attempt)
	d.save.tx.Put(attemptKey(id), value)
}

// saveDisowned keeps the number of the claim up to which an application is refused.
func (d *Daemon) saveDisowned(a rm.SaveDisowned) {
	key := keyDisown + a.Disowned.App.String()
	if a.Deleted {
		d.save.tx.Delete(key)
		return
	}
	d.save.seq = max(d.save.seq, a.Seq)
	d.save.tx.Put(key, strconv.AppendInt(nil, a.Disowned.Claim, 10))
}

// fail ends the daemon: it can no longer keep what it promises.
func (d *Daemon) fail(err error) {
	d.save.failed.CompareAndSwap(nil, &err)
	d.box.poke()
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

// replay reads the journal: the applications with their attempts, and how many
// lives there have been.
func (d *Daemon) replay() (k kept, err error) {
	index := map[string]int{}
	var attempts []rm.AttemptRecord
	err = d.save.journal.Each(func(key string, value []byte) error {
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
		return kept{}, fmt.Errorf("resource manager: reading the journal in %s: %w", d.cfg.Dir, err)
	}
	slices.SortFunc(k.disowned, func(a, b rm.Disowned) int { return a.App.Compare(b.App) })
	for _, a := range attempts {
		i, ok := index[a.ID.Application.String()]
		if !ok {
			continue
		}
		d.attempts[a.ID.Application] = max(d.attempts[a.ID.Application], a.ID.Attempt)
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

// settleFirst makes a transaction durable before anyone runs: for the start.
func settleFirst(commit func(done func(error))) error {
	done := make(chan error, 1)
	commit(func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		return errors.New("the journal did not answer for a minute")
	}
}
