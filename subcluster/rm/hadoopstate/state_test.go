// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

var began = time.UnixMilli(1_700_000_000_000)

func appID(n int32) creel.ApplicationID {
	return creel.ApplicationID{ClusterTimestamp: began.UnixMilli(), ID: n}
}

func attemptID(n int32) creel.AttemptID { return creel.AttemptID{Application: appID(n), Attempt: 1} }

func amOf(n int32) creel.ContainerID {
	return creel.ContainerID{Attempt: attemptID(n), ID: 3<<40 | 1}
}

// unknown is a field of a release that creel does not know.
var unknown = protowire.AppendString(protowire.AppendTag(nil, 500, protowire.BytesType), "later")

// app is an application; ended is its state, 0 if it runs.
func app(t testing.TB, n int32, ended pb.RMAppStateProto) App {
	t.Helper()
	c := &pb.ApplicationSubmissionContextProto{
		ApplicationId:   pb.FromApplicationID(appID(n)),
		ApplicationName: new("app " + strconv.Itoa(int(n))),
		Queue:           new("default"),
		Priority:        pb.FromPriority(3),
		AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{"run"}},
		Resource:        pb.FromResource(creel.NewResource(512, 1)),
	}
	b, err := c.MarshalVT()
	if err == nil {
		err = c.UnmarshalVT(append(b, unknown...))
	}
	if err != nil {
		t.Fatal(err)
	}
	a := App{ID: appID(n), Data: &pb.ApplicationStateDataProto{
		SubmitTime: new(began.UnixMilli() + 1), StartTime: new(began.UnixMilli() + 1), LaunchTime: new(began.UnixMilli() + 2),
		ApplicationSubmissionContext: c, User: new("ann"), FinishTime: new(int64(0)), Diagnostics: new(""),
		RealUser: new("oozie"), CallerContext: codec.CallerContext("CLI", []byte("signed")),
	}}
	k := &pb.ApplicationAttemptStateDataProto{
		AttemptId: pb.FromAttemptID(attemptID(n)),
		MasterContainer: &pb.ContainerProto{
			Id: pb.FromContainerID(amOf(n)), NodeId: pb.FromNodeID(creel.NodeID{Host: "n1", Port: 8041}),
		},
		StartTime:        new(began.UnixMilli() + 2),
		AppAttemptTokens: token.Credentials{Secrets: []token.Secret{{Alias: clientKey, Value: []byte("client")}}}.Append(nil),
	}
	if ended != 0 {
		a.Data.ApplicationState, a.Data.FinishTime = &ended, new(began.UnixMilli()+5000)
		state, final := pb.RMAppAttemptStateProto_RMATTEMPT_FINISHED, pb.FinalApplicationStatusProto_APP_SUCCEEDED
		k.AppAttemptState, k.FinalApplicationStatus = &state, &final
		k.FinishTime, k.AmContainerExitStatus = a.Data.FinishTime, new(int32(0))
		k.MemorySeconds, k.VcoreSeconds = new(int64(2560)), new(int64(5))
	}
	a.Attempts = append(a.Attempts, k)
	return a
}

// whole is a state with a record of each kind.
func whole(t testing.TB) *State {
	t.Helper()
	const finished = pb.RMAppStateProto_RMAPP_FINISHED
	return &State{
		Epoch:    4,
		Apps:     []App{app(t, 1, 0), app(t, 2, finished), app(t, 12345, 0)},
		AMRM:     token.KeyState{Current: token.Key{ID: -7, Secret: []byte("current")}, Next: token.Key{ID: -6, Secret: []byte("next")}},
		Keys:     []token.DelegationKey{{Key: token.Key{ID: 3, Secret: []byte("key")}, Expires: began.Add(time.Hour)}},
		Sequence: 9,
		Tokens: []token.DelegationRecord{{Expires: began.Add(time.Minute), Delegation: token.Delegation{
			Owner: "ann", Renewer: "yarn", RealUser: "oozie", Issued: began, Max: began.Add(time.Hour), Sequence: 9, KeyID: 3,
		}}},
	}
}

// written is a fake with a state.
func written(t testing.TB, s *State) *fake {
	t.Helper()
	f := newFake()
	if err := Write(t.Context(), f, "/rm", s); err != nil {
		t.Fatal(err)
	}
	return f
}

// same reports whether two states have the same records.
func same(t testing.TB, a, b *State) bool {
	t.Helper()
	x, err1 := a.records("")
	y, err2 := b.records("")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return reflect.DeepEqual(x, y)
}

func TestWrittenStateIsRead(t *testing.T) {
	s := whole(t)
	got, err := Read(t.Context(), written(t, s), "/rm")
	if err != nil {
		t.Fatal(err)
	}
	if !same(t, got, s) {
		t.Errorf("read %+v\nwant %+v", got, s)
	}
}

// move renames a node with its children.
func (f *fake) move(from, to string) {
	for p, data := range maps.Clone(f.nodes) {
		if p == from || strings.HasPrefix(p, from+"/") {
			delete(f.nodes, p)
			f.nodes[to+strings.TrimPrefix(p, from)] = data
		}
	}
}

// A cluster whose split indices were changed has applications and tokens in each hierarchy.
func TestReadFindsEachHierarchy(t *testing.T) {
	s := whole(t)
	s.Apps = nil
	for n := range int32(5) {
		s.Apps = append(s.Apps, app(t, n+1, 0))
		token := s.Tokens[0]
		token.Sequence = n + 10
		s.Tokens = append(s.Tokens, token)
	}
	f := written(t, s)
	root := "/rm" + rootName
	for n := 1; n <= splits; n++ {
		app, number := s.Apps[n].ID.String(), s.Tokens[n].Sequence
		for base, node := range map[string]struct{ from, name string }{
			root + appsSplitName: {root + appsName + "/" + app, app},
			root + tokensName: {
				root + tokensName + "/" + tokenPrefix + strconv.Itoa(int(number)), fmt.Sprintf("%s%04d", tokenPrefix, number),
			},
		} {
			parent := base + "/" + strconv.Itoa(n)
			if err := f.Make(t.Context(), parent); err != nil {
				t.Fatal(err)
			}
			cut := len(node.name) - n
			f.nodes[parent+"/"+node.name[:cut]] = nil
			f.move(node.from, parent+"/"+node.name[:cut]+"/"+node.name[cut:])
		}
	}
	got, err := Read(t.Context(), f, "/rm")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got.Tokens, func(a, b token.DelegationRecord) int { return int(a.Sequence - b.Sequence) })
	if !same(t, got, s) {
		t.Errorf("read %d applications and %d tokens", len(got.Apps), len(got.Tokens))
	}
}

// Lists that ZooKeeper could not return are split, as Hadoop's ResourceManager would with a split index.
func TestLongListsAreSplit(t *testing.T) {
	defer func(n int) { maxList = n }(maxList)
	s := whole(t)
	again := s.Tokens[0]
	again.Sequence = 123456
	s.Tokens = append(s.Tokens, again)
	maxList = 1
	f := written(t, s)
	root := "/rm" + rootName
	for _, path := range []string{
		root + appsSplitName + "/2/application_1700000000000_00/01", root + appsSplitName + "/2/application_1700000000000_123/45",
		root + tokensName + "/2/RMDelegationToken_00/09", root + tokensName + "/2/RMDelegationToken_1234/56",
	} {
		if len(f.nodes[path]) == 0 {
			t.Errorf("there is no record at %s", path)
		}
	}
	got, err := Read(t.Context(), f, "/rm")
	if maxList = 10; err != nil || !same(t, got, s) {
		t.Errorf("read %+v (%v)\nwant %+v", got, err, s)
	}
}

func TestReadFailsWhileTheStateChanges(t *testing.T) {
	f := written(t, whole(t))
	f.onGet = func(path string) {
		if strings.HasSuffix(path, amrmName) {
			f.changed["/rm"+rootName]++ // the fencing lock of a write
		}
	}
	if _, err := Read(t.Context(), f, "/rm"); !errors.Is(err, ErrChanging) {
		t.Errorf("the error is %v", err)
	}
}

func TestReadRefusesOtherVersions(t *testing.T) {
	f := written(t, whole(t))
	node := "/rm" + rootName + versionName
	for _, c := range []struct {
		data []byte
		want string
	}{
		{version(1, 1), "has version 1.1"},
		{version(2, 0), "has version 2.0"},
		{version(creels, 0), "it is creel's own"},
		{version(unfinished, 0), "did not end"},
		{nil, "has version 0.0"},
	} {
		f.nodes[node] = c.data
		if _, err := Read(t.Context(), f, "/rm"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("version %x: %v, want %q", c.data, err, c.want)
		}
	}
	delete(f.nodes, node)
	if _, err := Read(t.Context(), f, "/rm"); !errors.Is(err, ErrNoState) {
		t.Errorf("without a version: %v", err)
	}
	if _, err := Read(t.Context(), newFake(), "/rm"); !errors.Is(err, ErrNoState) {
		t.Errorf("without a root: %v", err)
	}
}

// Each damaged record stops the read, and the error names its node.
func TestDamagedRecordsAreNamed(t *testing.T) {
	whole := written(t, whole(t))
	damaged := 0
	for path, data := range whole.nodes {
		if len(data) == 0 || strings.HasSuffix(path, epochName) {
			continue
		}
		f := newFake()
		maps.Copy(f.nodes, whole.nodes)
		f.nodes[path] = bytes.Repeat([]byte{0xff}, 20)
		damaged++
		if _, err := Read(t.Context(), f, "/rm"); err == nil || !strings.Contains(err.Error(), path) &&
			!strings.HasSuffix(path, versionName) {
			t.Errorf("%s: the error is %v", path, err)
		}
	}
	if damaged < 10 {
		t.Errorf("only %d records were damaged", damaged)
	}
	f := written(t, &State{AMRM: token.KeyState{Current: token.Key{ID: 1, Secret: []byte("k")}}, Apps: []App{app(t, 1, 0)}})
	f.move("/rm"+rootName+appsName+"/"+appID(1).String(), "/rm"+rootName+appsName+"/"+appID(2).String())
	if _, err := Read(t.Context(), f, "/rm"); err == nil || !strings.Contains(err.Error(), "the record is of") {
		t.Errorf("a record under another name: %v", err)
	}
}

// A write that was cut off anywhere leaves nothing that Hadoop's ResourceManager would start on, and is repeated.
func TestCutWriteIsRepeated(t *testing.T) {
	s := whole(t)
	for left := 0; ; left++ {
		f := newFake()
		f.left = left
		err := Write(t.Context(), f, "/rm", s)
		if err == nil {
			if left < 3 {
				t.Errorf("a state was written by %d transactions", left)
			}
			return
		}
		if v, found := f.nodes["/rm"+rootName+versionName]; found && string(v) == string(version(major, minor)) {
			t.Fatalf("after %d transactions Hadoop would start on a part of the state", left)
		}
		// The repetition is cut off once more.
		f.left = 2
		_ = Write(t.Context(), f, "/rm", s)
		f.left = -1
		if err := Write(t.Context(), f, "/rm", s); err != nil {
			t.Fatalf("after %d transactions: %v", left, err)
		}
		if got, err := Read(t.Context(), f, "/rm"); err != nil || !same(t, got, s) {
			t.Fatalf("after %d transactions and a repetition: %v", left, err)
		}
	}
}

func TestWriteNeedsAnEmptyPath(t *testing.T) {
	f := written(t, whole(t))
	before := maps.Clone(f.nodes)
	if err := Write(t.Context(), f, "/rm", whole(t)); !errors.Is(err, ErrOccupied) || !reflect.DeepEqual(f.nodes, before) {
		t.Errorf("over a state: %v", err)
	}
	if err := Write(t.Context(), f, "/", whole(t)); err != nil {
		t.Errorf("at the top: %v", err)
	}
	large := whole(t)
	large.Apps[0].Data.Diagnostics = new(strings.Repeat("x", maxRecord))
	if err := Write(t.Context(), newFake(), "/rm", large); err == nil || !strings.Contains(err.Error(), appID(1).String()) {
		t.Errorf("a record that ZooKeeper refuses: %v", err)
	}
}

func TestPortableHasStatesTokensAndKeys(t *testing.T) {
	s := whole(t)
	p, err := s.Portable()
	if err != nil {
		t.Fatal(err)
	}
	running, ended := &p.Apps[0], &p.Apps[1]
	if running.State.Ended() || running.Final != creel.FinalUndefined || running.Submission.User != "ann" ||
		running.Submission.Priority != 3 || running.Queue != "default" || running.Submission.RealUser != "oozie" {
		t.Errorf("the running application is %+v", running)
	}
	if k := running.Attempts[0]; k.State.Ended() || k.AM != amOf(1) || k.Node.Host != "n1" {
		t.Errorf("the running attempt is %+v", k)
	}
	if ended.State != creel.AppFinished || ended.Final != creel.FinalSucceeded ||
		ended.Attempts[0].State != creel.AttemptFinished || ended.Usage.OverTime.MemoryMB != 2_560_000 {
		t.Errorf("the application that has ended is %+v", ended)
	}
	if string(p.ClientKeys[attemptID(1)]) != "client" || p.ClientKeys[attemptID(2)] != nil {
		t.Errorf("the keys of clients' tokens are %v", p.ClientKeys)
	}
	if p.Epoch != 4 || !p.Started.Equal(began) || len(p.Delegation.Tokens) != 1 || p.AMRM.Next.ID != -6 {
		t.Errorf("the state is %+v", p)
	}
	// Back again, with the fields that creel does not know.
	back := FromPortable(p)
	again, err := back.Portable()
	if err != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("after a way back: %v\n%+v\nwant\n%+v", err, again, p)
	}
	if d := back.Apps[0].Data; d.GetRealUser() != "oozie" || !bytes.Equal(d.CallerContext, s.Apps[0].Data.CallerContext) {
		t.Errorf("the callers are %q for ann, with %q", d.GetRealUser(), d.CallerContext)
	}
	if c := back.Apps[0].Data.ApplicationSubmissionContext; !bytes.Contains(c.ProtoReflect().GetUnknown(), unknown) {
		t.Error("an unknown field is lost")
	}
}

func TestPortableFollowsHadoopsRules(t *testing.T) {
	t.Run("an attempt ends with its application", func(t *testing.T) {
		a := app(t, 1, 0)
		a.Data.ApplicationState = pb.RMAppStateProto_RMAPP_KILLED.Enum()
		if r, err := a.record(); err != nil || r.Attempts[0].State != creel.AttemptKilled || r.Final != creel.FinalKilled {
			t.Errorf("%+v (%v)", r, err)
		}
	})
	t.Run("an earlier attempt has ended", func(t *testing.T) {
		a := app(t, 1, 0)
		second := proto.Clone(a.Attempts[0]).(*pb.ApplicationAttemptStateDataProto)
		second.AttemptId.AttemptId = new(int32(2))
		a.Attempts = append(a.Attempts, second)
		if r, err := a.record(); err != nil || r.Attempts[0].State != creel.AttemptFailed || r.Attempts[1].State.Ended() {
			t.Errorf("%+v (%v)", r, err)
		}
	})
	t.Run("an application without an attempt failed", func(t *testing.T) {
		a := app(t, 1, pb.RMAppStateProto_RMAPP_FAILED)
		a.Attempts = nil
		a.Data.ApplicationSubmissionContext.AmContainerSpec, a.Data.ApplicationSubmissionContext.Resource = nil, nil
		if r, err := a.record(); err != nil || r.Final != creel.FinalFailed {
			t.Errorf("%+v (%v)", r, err)
		}
	})
	t.Run("a lifetime is a time", func(t *testing.T) {
		a := app(t, 1, 0)
		kind := pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME
		a.Data.ApplicationTimeouts = []*pb.ApplicationTimeoutMapProto{
			{ApplicationTimeoutType: &kind, Timeout: new(began.UnixMilli())},
		}
		if r, err := a.record(); err != nil || !r.Lifetime.Equal(began) {
			t.Errorf("%v (%v)", r.Lifetime, err)
		}
	})
	t.Run("a moved application has its queue", func(t *testing.T) {
		p, err := whole(t).Portable()
		if err != nil {
			t.Fatal(err)
		}
		p.Apps[0].Queue, p.Apps[1].Queue = "root.other", "root.default"
		s := FromPortable(p)
		for i, want := range []string{"root.other", "default"} {
			if got := s.Apps[i].Data.ApplicationSubmissionContext.GetQueue(); got != want {
				t.Errorf("the queue is %q, want %q", got, want)
			}
		}
	})
	t.Run("a killed attempt has the status of its application", func(t *testing.T) {
		p, err := whole(t).Portable()
		if err != nil {
			t.Fatal(err)
		}
		r := &p.Apps[1]
		r.State, r.Final = creel.AppKilled, creel.FinalKilled
		r.Attempts[0].State, r.Attempts[0].Final = creel.AttemptKilled, creel.FinalUndefined
		got := FromPortable(p).Apps[1].Attempts[0].FinalApplicationStatus
		if got == nil || *got != pb.FinalApplicationStatusProto_APP_KILLED {
			t.Errorf("the status is %v", got)
		}
	})
	t.Run("running AMs need keys", func(t *testing.T) {
		s := whole(t)
		s.AMRM = token.KeyState{}
		if _, err := s.Portable(); err == nil || !strings.Contains(err.Error(), amrmName) {
			t.Errorf("the error is %v", err)
		}
	})
}

// FuzzRead reads states with a damaged record of each kind. What is read can be converted, or is refused, and is
// written again as it was read.
func FuzzRead(f *testing.F) {
	fuzz := propertytest.Fuzz(f)
	good := written(f, whole(f))
	paths := slices.Sorted(maps.Keys(good.nodes))
	for i, path := range paths {
		fuzz.Add(byte(i), good.nodes[path])
	}
	fuzz.Fuzz(func(t *testing.T, which byte, data []byte) {
		damaged := newFake()
		maps.Copy(damaged.nodes, good.nodes)
		damaged.nodes[paths[int(which)%len(paths)]] = data
		s, err := Read(t.Context(), damaged, "/rm")
		if err != nil {
			return
		}
		again, err := Read(t.Context(), written(t, s), "/rm")
		if err != nil || !same(t, again, s) {
			t.Fatalf("read, written and read again: %v", err)
		}
		if p, err := s.Portable(); err == nil {
			if _, err := FromPortable(p).Portable(); err != nil {
				t.Fatalf("converted, but not back: %v", err)
			}
		}
	})
}
