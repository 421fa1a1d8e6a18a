// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// Keys of the machine's records in the journal. Nothing depends on their order.
const (
	keyApp     = "app/"      // app/<application>
	keyAttempt = "attempt/"  // attempt/<application>/<number>
	keyDisown  = "disowned/" // disowned/<application>: claim number
	keyLabels  = "labels"
	keyHosts   = "attributes" // of hosts
)

// Tx is a transaction of the journal.
type Tx interface {
	Put(key string, value []byte)
	Delete(key string)
	Len() int
}

// Records converts between the machine's saves and the journal. The zero value is ready.
type Records struct {
	last map[creel.ApplicationID]int32 // number of the last recorded attempt

	apps     []rm.AppRecord // the records read so far
	index    map[creel.ApplicationID]int
	attempts []rm.AttemptRecord
	disowned []rm.DisownedClaim
	labels   rm.Labels
	hosts    []rm.HostAttributes
}

// save adds an action's record to a transaction. It returns the number of the save; 0 for an action that saves
// nothing, or whose save has no waiter.
func (r *Records) save(tx Tx, action rm.Action) (seq uint64, err error) {
	switch a := action.(type) {
	case rm.SaveApp:
		return r.saveApp(tx, a)
	case rm.SaveAttempt:
		value, err := json.Marshal(attemptToValue(a.Record))
		if err != nil {
			return 0, fmt.Errorf("resource manager: saving %s: %w", a.Record.ID, err)
		}
		r.saw(a.Record.ID)
		tx.Put(AttemptKey(a.Record.ID), value)
		return a.Seq, nil
	case rm.SaveDisowned:
		key := keyDisown + a.Disowned.App.String()
		if a.Deleted {
			tx.Delete(key)
			return 0, nil
		}
		tx.Put(key, strconv.AppendInt(nil, a.Disowned.Claim, 10))
		return a.Seq, nil
	case rm.SaveLabels:
		value, err := json.Marshal(labelsToValue(&a.Labels))
		if err != nil {
			return 0, fmt.Errorf("resource manager: saving the node labels: %w", err)
		}
		tx.Put(keyLabels, value)
		return a.Seq, nil
	case rm.SaveAttributes:
		value, err := json.Marshal(attributesToValue(a.Hosts))
		if err != nil {
			return 0, fmt.Errorf("resource manager: saving the node attributes: %w", err)
		}
		tx.Put(keyHosts, value)
		return a.Seq, nil
	}
	return 0, nil
}

func (r *Records) saveApp(tx Tx, a rm.SaveApp) (seq uint64, err error) {
	id := a.Record.Submission.ID
	if a.Deleted {
		tx.Delete(AppKey(id))
		for n := int32(1); n <= r.last[id]; n++ {
			tx.Delete(AttemptKey(creel.AttemptID{Application: id, Attempt: n}))
		}
		delete(r.last, id)
		return 0, nil
	}
	value, err := encodeApp(a.Record)
	if err != nil {
		return 0, fmt.Errorf("resource manager: saving %s: %w", id, err)
	}
	tx.Put(AppKey(id), value)
	return a.Seq, nil
}

// PutApp writes the record of an application with its attempts, outside of a machine's turns.
func PutApp(tx Tx, r *rm.AppRecord) error {
	value, err := encodeApp(*r)
	if err != nil {
		return fmt.Errorf("resource manager: saving %s: %w", r.Submission.ID, err)
	}
	tx.Put(AppKey(r.Submission.ID), value)
	return nil
}

func (r *Records) saw(id creel.AttemptID) {
	if r.last == nil {
		r.last = map[creel.ApplicationID]int32{}
	}
	r.last[id.Application] = max(r.last[id.Application], id.Attempt)
}

// Read parses one entry of the journal, in any order; known is false for keys of other packages.
func (r *Records) Read(key string, value []byte) (known bool, err error) {
	switch {
	case strings.HasPrefix(key, keyApp):
		var a rm.AppRecord
		if a, err = decodeApp(value); err == nil {
			if r.index == nil {
				r.index = map[creel.ApplicationID]int{}
			}
			r.index[a.Submission.ID] = len(r.apps)
			r.apps = append(r.apps, a)
		}
	case strings.HasPrefix(key, keyAttempt):
		var v attemptValue
		if err = json.Unmarshal(value, &v); err == nil {
			r.attempts = append(r.attempts, v.record())
		}
	case strings.HasPrefix(key, keyDisown):
		var d rm.DisownedClaim
		if d.App, err = creel.ParseApplicationID(strings.TrimPrefix(key, keyDisown)); err == nil {
			d.Claim, err = strconv.ParseInt(string(value), 10, 64)
		}
		r.disowned = append(r.disowned, d)
	case key == keyLabels:
		var v labelsValue
		if err = json.Unmarshal(value, &v); err == nil {
			r.labels = v.labels()
		}
	case key == keyHosts:
		var v []hostAttributesValue
		if err = json.Unmarshal(value, &v); err == nil {
			r.hosts = attributesOf(v)
		}
	default:
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return true, err
}

// Recovered returns the records in the form that a machine recovers: applications with their attempts, in the order
// of their ids.
func (r *Records) Recovered() *rm.Recover {
	for _, a := range r.attempts {
		if i, ok := r.index[a.ID.Application]; ok {
			r.saw(a.ID)
			r.apps[i].Attempts = putAttempt(r.apps[i].Attempts, a)
		}
	}
	out := &rm.Recover{Apps: r.apps, Disowned: r.disowned, Labels: r.labels, Attributes: r.hosts}
	r.apps, r.index, r.attempts, r.disowned = nil, nil, nil, nil
	r.labels, r.hosts = rm.Labels{}, nil
	slices.SortFunc(out.Apps, func(a, b rm.AppRecord) int { return a.Submission.ID.Compare(b.Submission.ID) })
	slices.SortFunc(out.Disowned, func(a, b rm.DisownedClaim) int { return a.App.Compare(b.App) })
	return out
}

// putAttempt replaces the attempt with the same number, or inserts it in order.
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

// appValue is an application in the journal: this struct as JSON, followed by the submission message as received, so
// that unknown fields survive.
type appValue struct {
	User        string         `json:"user"`
	RealUser    string         `json:"realUser,omitempty"`
	Caller      []byte         `json:"caller,omitempty"`
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
	Held        int64          `json:"held,omitempty"` // number of the claim
	HeldWhy     string         `json:"heldWhy,omitempty"`
	Released    int64          `json:"released,omitempty"`
	Moved       bool           `json:"moved,omitempty"`
	Usage       usageValue     `json:"usage,omitzero"`
	Attempts    []attemptValue `json:"attempts,omitempty"`
	Signals     []signalValue  `json:"signals,omitempty"`
}

type signalValue struct {
	Container creel.ContainerID `json:"container"`
	Command   int32             `json:"command"`
}

// usageValue has rm.Usage's fields.
type usageValue struct {
	OverTime     creel.Resource `json:"overTime,omitzero"`
	Lost         creel.Resource `json:"lost,omitzero"`
	LostOverTime creel.Resource `json:"lostOverTime,omitzero"`
	Containers   int32          `json:"containers,omitempty"`
	AMs          int32          `json:"ams,omitempty"`
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
		RealUser:    r.Submission.RealUser,
		Caller:      r.Submission.Caller,
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
		Held:        r.Hold.Claim,
		HeldWhy:     r.Hold.Why,
		Released:    r.Released,
		Moved:       r.Moved,
		Usage:       usageValue(r.Usage),
	}
	for _, a := range r.Attempts {
		v.Attempts = append(v.Attempts, attemptToValue(a))
	}
	for _, s := range r.Signals {
		v.Signals = append(v.Signals, signalValue(s))
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

// decodeApp reads the encoding of encodeApp.
func decodeApp(b []byte) (rm.AppRecord, error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return rm.AppRecord{}, errors.New("the record is truncated")
	}
	var v appValue
	if err := json.Unmarshal(b[w:w+int(n)], &v); err != nil {
		return rm.AppRecord{}, err
	}
	c := new(pb.ApplicationSubmissionContextProto)
	if err := c.UnmarshalVT(b[w+int(n):]); err != nil {
		return rm.AppRecord{}, err
	}
	s, err := codec.Submission(c, v.User, v.Groups, codec.NoTagLimits)
	if err != nil {
		return rm.AppRecord{}, err
	}
	s.RealUser, s.Caller = v.RealUser, v.Caller
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
		Hold:        rm.Hold{Claim: v.Held, Why: v.HeldWhy},
		Released:    v.Released,
		Moved:       v.Moved,
		Usage:       rm.Usage(v.Usage),
	}
	for _, a := range v.Attempts {
		r.Attempts = append(r.Attempts, a.record())
	}
	for _, s := range v.Signals {
		r.Signals = append(r.Signals, rm.Signal(s))
	}
	return r, nil
}

// AppKey and AttemptKey name the records of an application and of an attempt.
func AppKey(id creel.ApplicationID) string { return keyApp + id.String() }

// AttemptKey is AppKey for an attempt.
func AttemptKey(id creel.AttemptID) string {
	return keyAttempt + id.Application.String() + "/" + strconv.Itoa(int(id.Attempt))
}

// AppOf returns the application whose record, or the record of whose attempt, has a key.
func AppOf(key string) (id creel.ApplicationID, found bool) {
	name, isApp := strings.CutPrefix(key, keyApp)
	if !isApp {
		var isAttempt bool
		if name, isAttempt = strings.CutPrefix(key, keyAttempt); !isAttempt {
			return id, false
		}
		name, _, _ = strings.Cut(name, "/")
	}
	id, err := creel.ParseApplicationID(name)
	return id, err == nil
}

// ReadApp returns the record of an application with all attempts, nil if there is none.
func ReadApp(id creel.ApplicationID, get func(key string) (value string, found bool)) (*rm.AppRecord, error) {
	value, found := get(AppKey(id))
	if !found {
		return nil, nil
	}
	var r Records
	if _, err := r.Read(AppKey(id), []byte(value)); err != nil {
		return nil, err
	}
	stored := int32(0) // number of the last attempt in the application's record
	if list := r.apps[0].Attempts; len(list) > 0 {
		stored = list[len(list)-1].ID.Attempt
	}
	for n := int32(1); ; n++ {
		key := AttemptKey(creel.AttemptID{Application: id, Attempt: n})
		value, found := get(key)
		if !found && n > stored {
			return &r.Recovered().Apps[0], nil
		}
		if !found {
			continue
		}
		if _, err := r.Read(key, []byte(value)); err != nil {
			return nil, err
		}
	}
}

// IsOf reports whether a key names a record of an application or of one of its attempts.
func IsOf(key string, app creel.ApplicationID) bool {
	id := app.String()
	return key == keyApp+id || key == keyDisown+id || strings.HasPrefix(key, keyAttempt+id+"/")
}
