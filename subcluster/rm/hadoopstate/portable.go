// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// clientKey is the alias of the key of clients' tokens in an attempt's credentials.
const clientKey = "YARN_CLIENT_TOKEN_MASTER_KEY"

// Hadoop's states and creel's. A record of something that has not ended has no state.
var (
	appStates = map[pb.RMAppStateProto]creel.ApplicationState{
		pb.RMAppStateProto_RMAPP_FINISHED: creel.AppFinished,
		pb.RMAppStateProto_RMAPP_FAILED:   creel.AppFailed,
		pb.RMAppStateProto_RMAPP_KILLED:   creel.AppKilled,
	}
	attemptStates = map[pb.RMAppAttemptStateProto]creel.AttemptState{
		pb.RMAppAttemptStateProto_RMATTEMPT_FINISHED: creel.AttemptFinished,
		pb.RMAppAttemptStateProto_RMATTEMPT_FAILED:   creel.AttemptFailed,
		pb.RMAppAttemptStateProto_RMATTEMPT_KILLED:   creel.AttemptKilled,
	}
	attemptOf = map[creel.ApplicationState]creel.AttemptState{
		creel.AppFinished: creel.AttemptFinished,
		creel.AppFailed:   creel.AttemptFailed,
		creel.AppKilled:   creel.AttemptKilled,
	}
)

// Portable converts the state for creel's ResourceManager.
func (s *State) Portable() (*server.Portable, error) {
	p := &server.Portable{
		Epoch:      s.Epoch,
		AMRM:       s.AMRM,
		Delegation: token.DelegationState{Keys: s.Keys, Tokens: s.Tokens, Sequence: s.Sequence},
		ClientKeys: map[creel.AttemptID][]byte{},
	}
	if s.AMRM.Current.IsZero() && len(s.Apps) > 0 {
		return nil, fmt.Errorf("%s is empty: the tokens of running AMs cannot be checked", amrmName)
	}
	for i := range s.Apps {
		a := &s.Apps[i]
		r, err := a.record()
		if err == nil {
			err = a.clientKeys(&r, p.ClientKeys)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.ID, err)
		}
		p.Apps = append(p.Apps, r)
		if started := time.UnixMilli(a.ID.ClusterTimestamp); started.After(p.Started) {
			p.Started = started
		}
	}
	return p, nil
}

// record converts an application.
func (a *App) record() (r rm.AppRecord, err error) {
	d, c := a.Data, a.Data.ApplicationSubmissionContext
	ended := creel.AppNew
	if d.ApplicationState != nil {
		state, known := appStates[d.GetApplicationState()]
		if !known {
			return r, fmt.Errorf("%s is no state of a stored application", d.GetApplicationState())
		}
		ended = state
	}
	if ended.Ended() {
		complete(c)
	}
	if r.Submission, err = codec.Submission(c, d.GetUser(), nil, codec.NoTagLimits); err != nil {
		return r, err
	}
	r.Submission.RealUser, r.Submission.Caller = d.GetRealUser(), d.CallerContext
	r.State = ended
	r.Submitted, r.Started = codec.Time(d.GetSubmitTime()), codec.Time(d.GetLaunchTime())
	r.Finished = codec.Time(d.GetFinishTime())
	r.Queue = creel.QueuePath(r.Submission.Queue)
	r.Diagnostics = text(d.Diagnostics)
	for _, t := range d.ApplicationTimeouts {
		if t.GetApplicationTimeoutType() == pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME {
			r.Lifetime = codec.Time(t.GetTimeout())
		}
	}
	for i, t := range a.Attempts {
		k, err := attemptRecord(t)
		if err != nil {
			return r, err
		}
		switch last := i == len(a.Attempts)-1; {
		case k.State.Ended():
		case ended.Ended():
			k.State = attemptOf[ended]
		case !last:
			k.State, k.ExitStatus = creel.AttemptFailed, creel.ExitAborted
		}
		r.Attempts = append(r.Attempts, k)
		r.Usage.OverTime = r.Usage.OverTime.Add(
			overTime(t.GetMemorySeconds(), t.GetVcoreSeconds(), t.ApplicationResourceUsageMap))
		r.Usage.LostOverTime = r.Usage.LostOverTime.Add(
			overTime(t.GetPreemptedMemorySeconds(), t.GetPreemptedVcoreSeconds(), t.PreemptedResourceUsageMap))
	}
	r.Final = a.final(ended)
	return r, nil
}

// complete adds the parts that Hadoop removes from the submission of an application that has ended.
func complete(c *pb.ApplicationSubmissionContextProto) {
	if c.AmContainerSpec == nil {
		c.AmContainerSpec = new(pb.ContainerLaunchContextProto)
	}
	if c.Resource == nil && len(c.AmContainerResourceRequest) == 0 {
		c.Resource = pb.FromResource(creel.Resource{})
	}
}

// final is the final status of an application, as Hadoop's ResourceManager infers it: the status of its last attempt,
// or one that follows from its state.
func (a *App) final(state creel.ApplicationState) creel.FinalStatus {
	n := len(a.Attempts)
	switch {
	case !state.Ended():
		return creel.FinalUndefined
	case n > 0 && a.Attempts[n-1].FinalApplicationStatus != nil:
		return creel.FinalStatus(a.Attempts[n-1].GetFinalApplicationStatus())
	case state == creel.AppKilled:
		return creel.FinalKilled
	}
	return creel.FinalFailed
}

// text is an optional text without its default.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func attemptRecord(t *pb.ApplicationAttemptStateDataProto) (k rm.AttemptRecord, err error) {
	k = rm.AttemptRecord{
		ID:          pb.ToAttemptID(t.AttemptId),
		Started:     codec.Time(t.GetStartTime()),
		State:       creel.AttemptNew,
		Final:       creel.FinalStatus(t.GetFinalApplicationStatus()),
		Diagnostics: text(t.Diagnostics),
		TrackingURL: t.GetFinalTrackingUrl(),
		ExitStatus:  t.GetAmContainerExitStatus(),
		Finished:    codec.Time(t.GetFinishTime()),
	}
	if c := t.MasterContainer; c != nil {
		k.AM, k.Node = pb.ToContainerID(c.Id), pb.ToNodeID(c.NodeId)
	}
	if t.AppAttemptState != nil {
		state, known := attemptStates[t.GetAppAttemptState()]
		if !known {
			return k, fmt.Errorf("%s is no state of a stored attempt", t.GetAppAttemptState())
		}
		k.State = state
	}
	return k, nil
}

// overTime converts Hadoop's use in seconds to creel's in milliseconds.
func overTime(memory, vcores int64, others []*pb.StringLongMapProto) creel.Resource {
	r := creel.Resource{}
	for _, o := range others {
		r = r.With(o.GetKey(), o.GetValue()*1000)
	}
	r.MemoryMB, r.VCores = memory*1000, vcores*1000
	return r
}

// clientKeys adds the keys of clients' tokens for the running AM.
func (a *App) clientKeys(r *rm.AppRecord, keys map[creel.AttemptID][]byte) error {
	for i, t := range a.Attempts {
		if r.State.Ended() || r.Attempts[i].State.Ended() || len(t.AppAttemptTokens) == 0 {
			continue
		}
		c, err := token.ParseCredentials(t.AppAttemptTokens)
		if err != nil {
			return fmt.Errorf("credentials of attempt %d: %w", t.GetAttemptId().GetAttemptId(), err)
		}
		for _, s := range c.Secrets {
			if s.Alias == clientKey {
				keys[r.Attempts[i].ID] = s.Value
			}
		}
	}
	return nil
}

// FromPortable converts the state of creel's ResourceManager.
func FromPortable(p *server.Portable) *State {
	s := &State{
		Epoch: p.Epoch, AMRM: p.AMRM,
		Keys: p.Delegation.Keys, Tokens: p.Delegation.Tokens, Sequence: p.Delegation.Sequence,
	}
	for i := range p.Apps {
		s.Apps = append(s.Apps, appOf(&p.Apps[i], p.ClientKeys))
	}
	return s
}

func appOf(r *rm.AppRecord, keys map[creel.AttemptID][]byte) App {
	c := contextOf(r)
	d := &pb.ApplicationStateDataProto{
		SubmitTime:                   millis(r.Submitted),
		ApplicationSubmissionContext: c,
		User:                         &r.Submission.User,
		StartTime:                    millis(r.Submitted),
		Diagnostics:                  &r.Diagnostics,
		FinishTime:                   millis(r.Finished),
		LaunchTime:                   millis(r.Started),
		CallerContext:                r.Submission.Caller,
	}
	if r.Submission.RealUser != "" {
		d.RealUser = &r.Submission.RealUser
	}
	for state, own := range appStates {
		if own == r.State {
			d.ApplicationState = &state
		}
	}
	if !r.Lifetime.IsZero() {
		kind := pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME
		d.ApplicationTimeouts = []*pb.ApplicationTimeoutMapProto{
			{ApplicationTimeoutType: &kind, Timeout: millis(r.Lifetime)},
		}
	}
	a := App{ID: r.Submission.ID, Data: d}
	for i := range r.Attempts {
		a.Attempts = append(a.Attempts, attemptOfRecord(&r.Attempts[i], &r.Submission, keys))
	}
	if n := len(a.Attempts); n > 0 {
		t := a.Attempts[n-1]
		if r.State.Ended() {
			t.FinalApplicationStatus = new(pb.FinalApplicationStatusProto(r.Final))
		}
		t.MemorySeconds, t.VcoreSeconds, t.ApplicationResourceUsageMap = seconds(r.Usage.OverTime)
		t.PreemptedMemorySeconds, t.PreemptedVcoreSeconds, t.PreemptedResourceUsageMap = seconds(r.Usage.LostOverTime)
	}
	return a
}

func millis(t time.Time) *int64 {
	ms := codec.Millis(t)
	return &ms
}

// contextOf returns the submission with the present queue and priority: the original message, so that unknown fields
// survive.
func contextOf(r *rm.AppRecord) *pb.ApplicationSubmissionContextProto {
	c := codec.ContextOf(r.Submission.Context)
	queue := string(r.Queue)
	same := queue == c.GetQueue() || c.GetQueue() != "" && strings.HasSuffix(queue, "."+c.GetQueue())
	if same && (!r.Submission.HasPriority || c.GetPriority().GetPriority() == r.Submission.Priority) {
		return c
	}
	c = proto.Clone(c).(*pb.ApplicationSubmissionContextProto)
	if !same {
		c.Queue = &queue
	}
	c.Priority = pb.FromPriority(r.Submission.Priority)
	return c
}

func attemptOfRecord(
	k *rm.AttemptRecord, s *rm.Submission, keys map[creel.AttemptID][]byte,
) *pb.ApplicationAttemptStateDataProto {
	t := &pb.ApplicationAttemptStateDataProto{
		AttemptId:             pb.FromAttemptID(k.ID),
		FinalTrackingUrl:      &k.TrackingURL,
		Diagnostics:           &k.Diagnostics,
		StartTime:             millis(k.Started),
		AmContainerExitStatus: &k.ExitStatus,
		FinishTime:            millis(k.Finished),
	}
	if k.AM != (creel.ContainerID{}) {
		t.MasterContainer = &pb.ContainerProto{
			Id: pb.FromContainerID(k.AM), NodeId: pb.FromNodeID(k.Node),
			Resource: pb.FromResource(s.AM.Resource), Priority: pb.FromPriority(0),
		}
	}
	for state, own := range attemptStates {
		if own == k.State {
			t.AppAttemptState = &state
		}
	}
	// Hadoop's ResourceManager takes a missing status from the state.
	if k.State.Ended() && k.Final != creel.FinalUndefined {
		t.FinalApplicationStatus = new(pb.FinalApplicationStatusProto(k.Final))
	}
	if key := keys[k.ID]; key != nil {
		t.AppAttemptTokens = token.Credentials{Secrets: []token.Secret{{Alias: clientKey, Value: key}}}.Append(nil)
	}
	return t
}

// seconds is the inverse of overTime.
func seconds(r creel.Resource) (memory, vcores *int64, others []*pb.StringLongMapProto) {
	memory, vcores = new(r.MemoryMB/1000), new(r.VCores/1000)
	entry := func(name string, value int64) {
		others = append(others, &pb.StringLongMapProto{Key: &name, Value: &value})
	}
	entry(creel.MemoryName, *memory)
	entry(creel.VCoresName, *vcores)
	for _, o := range r.Others {
		entry(o.Name, o.Value/1000)
	}
	return memory, vcores, others
}
