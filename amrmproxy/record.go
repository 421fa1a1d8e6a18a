// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"encoding/json"
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Record is the state that must outlive a proxy: the members with the application's AMs, and the tokens for calls to
// them. Since it has tokens, it is sealed in the store.
type Record struct {
	Attempt creel.AttemptID
	Home    creel.SubclusterID
	Queue   creel.QueuePath
	User    string
	Type    string // by home's report; "" while unknown

	// The AM's registration and home's answer. A new proxy answers the AM's repeated registration from these, since
	// home would refuse a second one. Until the AM has sent its first heartbeat, the answer includes the containers
	// of earlier attempts at home.
	Register *yarnpb.RegisterApplicationMasterRequestProto
	Answer   *yarnpb.RegisterApplicationMasterResponseProto

	// Terms are home's for distributed scheduling, without the answer to the registration. nil: home places
	// opportunistic containers itself. A UAM receives other terms when it registers again.
	Terms *yarnpb.RegisterDistributedSchedulingAMResponseProto
	Turn  int64 // of the proxy among those that place containers; each has ids of its own

	UAMs   []UAM // by member
	Ending bool  // the AM has finished or died; only the end of UAMs is left

	// Completions that the AM may not have received, and that no member will repeat since their UAM has ended.
	Completions []*yarnpb.ContainerStatusProto
}

// mostKept bounds the containers and tokens of earlier attempts in Record.Answer. Beyond it the record has none. Then
// a proxy that starts before the AM has received them reports none.
const mostKept = 1000

// mostCompletions bounds Record.Completions: a store accepts records of up to 1 MB.
const mostCompletions = 5000

// keepCompletions returns completions for the record, without text for people.
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

// UAM is the unmanaged AM in one member. Without a token it is planned or being launched, and can only be launched
// again or dropped.
type UAM struct {
	Member  creel.SubclusterID
	OwnID   creel.ApplicationID // zero: the application's id
	Attempt creel.AttemptID
	Token   *yarnpb.TokenProto
	// Inherited: the UAM was launched for an earlier attempt of the application, whose containers there have not been
	// reported to the AM yet.
	Inherited bool
}

// Members returns the members with the application's AM or UAMs, home first.
func (r *Record) Members() []creel.SubclusterID {
	m := []creel.SubclusterID{r.Home}
	for _, t := range r.UAMs {
		m = append(m, t.Member)
	}
	return m
}

// recordJSON is the stored form. Messages are stored as wire bytes, so that fields unknown to this version survive.
type recordJSON struct {
	Version  int                `json:"version"`
	Attempt  creel.AttemptID    `json:"attempt"`
	Home     creel.SubclusterID `json:"home"`
	Queue    creel.QueuePath    `json:"queue"`
	User     string             `json:"user"`
	Type     string             `json:"type,omitempty"`
	Register []byte             `json:"register,omitempty"`
	Answer   []byte             `json:"answer,omitempty"`
	Terms    []byte             `json:"terms,omitempty"`
	Turn     int64              `json:"turn,omitempty"`
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

// MarshalBinary returns the stored form, unencrypted: the caller seals it.
func (r *Record) MarshalBinary() ([]byte, error) {
	j := recordJSON{
		Version: 1,
		Attempt: r.Attempt,
		Home:    r.Home,
		Queue:   r.Queue,
		User:    r.User,
		Type:    r.Type,
		Ending:  r.Ending,
		Turn:    r.Turn,
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
	if r.Terms != nil {
		if j.Terms, err = r.Terms.MarshalVT(); err != nil {
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
	out := Record{
		Attempt: j.Attempt, Home: j.Home, Queue: j.Queue, User: j.User, Type: j.Type, Ending: j.Ending, Turn: j.Turn,
	}
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
	if j.Terms != nil {
		out.Terms = &yarnpb.RegisterDistributedSchedulingAMResponseProto{}
		if err := out.Terms.UnmarshalVT(j.Terms); err != nil {
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
