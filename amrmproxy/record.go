// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"encoding/json"
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Record is the state that must outlive a proxy: where the application lives and the credentials to act for it there.
// It holds tokens, so a store keeps it sealed.
type Record struct {
	Attempt creel.AttemptID
	Home    creel.SubclusterID
	Queue   creel.QueuePath
	User    string
	Type    string // as home reports it; "" while it is not known

	// The AM's registration and its answer, for an AM that has to register again with a proxy that has forgotten it
	// while the home has not. Until the AM has sent its first heartbeat the answer includes the containers of earlier
	// attempts at home.
	Register *yarnpb.RegisterApplicationMasterRequestProto
	Answer   *yarnpb.RegisterApplicationMasterResponseProto

	UAMs   []UAM // by member
	Ending bool  // the AM has finished or died; UAMs are only to be ended

	// Completions that no member will repeat, since their UAM is gone, and that the AM may not have received.
	Completions []*yarnpb.ContainerStatusProto
}

// mostKept bounds the containers and tokens of earlier attempts in Record.Answer: beyond it, a proxy that starts
// before the AM has received them reports none.
const mostKept = 1000

// mostCompletions bounds Record.Completions: a store accepts records of up to 1 MB.
const mostCompletions = 5000

// keepCompletions returns the record's form of completions: without text that only people read.
func keepCompletions(of []*yarnpb.ContainerStatusProto) []*yarnpb.ContainerStatusProto {
	of = of[max(0, len(of)-mostCompletions):]
	out := make([]*yarnpb.ContainerStatusProto, len(of))
	for i, st := range of {
		out[i] = &yarnpb.ContainerStatusProto{
			ContainerId: st.ContainerId, State: st.State, ExitStatus: st.ExitStatus, ExecutionType: st.ExecutionType,
		}
	}
	return out
}

// UAM is the unmanaged AM in one member. Without a token it is intended or under
// way, and can only be launched again or dropped.
type UAM struct {
	Member  creel.SubclusterID
	OwnID   creel.ApplicationID // zero: it has the application's
	Attempt creel.AttemptID
	Token   *yarnpb.TokenProto
	// Inherited: launched for an earlier attempt of the application, whose containers there have not been reported
	// yet.
	Inherited bool
}

// Members in which the application lives, home first.
func (r *Record) Members() []creel.SubclusterID {
	m := []creel.SubclusterID{r.Home}
	for _, t := range r.UAMs {
		m = append(m, t.Member)
	}
	return m
}

// recordJSON is the stored form: messages as their wire bytes, so that fields
// unknown to this version survive.
type recordJSON struct {
	Version  int                `json:"version"`
	Attempt  creel.AttemptID    `json:"attempt"`
	Home     creel.SubclusterID `json:"home"`
	Queue    creel.QueuePath    `json:"queue"`
	User     string             `json:"user"`
	Type     string             `json:"type,omitempty"`
	Register []byte             `json:"register,omitempty"`
	Answer   []byte             `json:"answer,omitempty"`
	Ending   bool               `json:"ending,omitempty"`
	UAMs     []uamJSON          `json:"twins,omitempty"`

	Completions [][]byte `json:"completions,omitempty"`
}

type uamJSON struct {
	Member  creel.SubclusterID  `json:"member"`
	OwnID   creel.ApplicationID `json:"own_id,omitzero"`
	Attempt string              `json:"attempt,omitempty"`
	Token   []byte              `json:"token,omitempty"`

	Inherited bool `json:"inherited,omitempty"`
}

// MarshalBinary is the stored form, in the clear: the caller seals it.
func (r *Record) MarshalBinary() ([]byte, error) {
	j := recordJSON{
		Version: 1,
		Attempt: r.Attempt,
		Home:    r.Home,
		Queue:   r.Queue,
		User:    r.User,
		Type:    r.Type,
		Ending:  r.Ending,
	}
	var err error
	if r.Register != nil {
		if j.Register, err = r.Register.MarshalVT(); err != nil {
			return nil, err
		}
	}
	if r.Answer != nil {
		if j.Answer, err = r.Answer.MarshalVT(); err != nil {
			return nil, err
		}
	}
	for _, t := range r.UAMs {
		tj := uamJSON{Member: t.Member, OwnID: t.OwnID, Inherited: t.Inherited}
		if !t.Attempt.IsZero() {
			tj.Attempt = t.Attempt.String()
		}
		if t.Token != nil {
			if tj.Token, err = t.Token.MarshalVT(); err != nil {
				return nil, err
			}
		}
		j.UAMs = append(j.UAMs, tj)
	}
	for _, st := range r.Completions {
		b, err := st.MarshalVT()
		if err != nil {
			return nil, err
		}
		j.Completions = append(j.Completions, b)
	}
	return json.Marshal(j)
}

// UnmarshalBinary reads the output of MarshalBinary.
func (r *Record) UnmarshalBinary(b []byte) error {
	var j recordJSON
	bad := func(err error) error {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "unreadable UAM record",
			Why:  err.Error(),
			Try:  "check whether another secret sealed it, or a later version wrote it",
		}
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return bad(err)
	}
	if j.Version != 1 {
		return bad(fmt.Errorf("its version is %d, this program reads 1", j.Version))
	}
	out := Record{Attempt: j.Attempt, Home: j.Home, Queue: j.Queue, User: j.User, Type: j.Type, Ending: j.Ending}
	if j.Register != nil {
		out.Register = &yarnpb.RegisterApplicationMasterRequestProto{}
		if err := out.Register.UnmarshalVT(j.Register); err != nil {
			return bad(err)
		}
	}
	if j.Answer != nil {
		out.Answer = &yarnpb.RegisterApplicationMasterResponseProto{}
		if err := out.Answer.UnmarshalVT(j.Answer); err != nil {
			return bad(err)
		}
	}
	for _, tj := range j.UAMs {
		t := UAM{Member: tj.Member, OwnID: tj.OwnID, Inherited: tj.Inherited}
		if tj.Attempt != "" {
			a, err := creel.ParseAttemptID(tj.Attempt)
			if err != nil {
				return bad(err)
			}
			t.Attempt = a
		}
		if tj.Token != nil {
			t.Token = &yarnpb.TokenProto{}
			if err := t.Token.UnmarshalVT(tj.Token); err != nil {
				return bad(err)
			}
		}
		out.UAMs = append(out.UAMs, t)
	}
	for _, b := range j.Completions {
		st := &yarnpb.ContainerStatusProto{}
		if err := st.UnmarshalVT(b); err != nil {
			return bad(err)
		}
		out.Completions = append(out.Completions, st)
	}
	*r = out
	return nil
}
