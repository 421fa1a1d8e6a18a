// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/nm/queue"
	"google.golang.org/protobuf/proto"
)

var rewrite = flag.Bool("rewrite", false, "write what the machine does into the scenarios")

// A scenario is a list of events, one a line, each followed by the machine's actions, indented. Lines that begin with
// # are comments.
//
//	node [queue=N] [resources] [pause] [adaptive] [patience=MS] [lends] [estimates]    a new node; with a patience, ordered by
//	       work; one that lends has thresholds of 0.75 and 0.9
//	measure C=MB:MILLICORES ...                 a look at the use of containers
//	register [rm=N] [key=N] [shutdown] [total=MB]      answer to a registration
//	start C [rm=N] [key=N] [expired] [retry=N] [interval=MS] [window=MS] [mb=N] [cores=N] [opp] [work=MS]
//	run C [...]                                 start, localized and, if it is launched, launched
//	localized C [text]   launched C   exited C CODE   stop C   resize C VERSION MB [opp]
//	paused C [text]   resumed C
//	heartbeat                                   print the next heartbeat
//	answer [resync|shutdown] [ack=C,..] [kill=C,..] [end=A,..] [signal=C] [key=N] [interval=MS]
//	       [resize=C:V:MB[:opp|:guar]] [limit=N] [wait-limit=MS] [total=MB]
//	wait MS   disconnect   status C   keys C KEY
//
// C is like 1.2: second container of application 1.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("the machine does otherwise; run with -rewrite and read the difference. It does:\n%s", got)
			}
		})
	}
}

func play(t *testing.T, text string) string {
	s := &stage{t: t, n: New(configOf(queue.Config{})), now: time.UnixMilli(1_000_000)}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue
		}
		fmt.Fprintln(&s.out, line)
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			s.line(f)
		}
	}
	return s.out.String()
}

func configOf(q queue.Config) Config {
	id, total := creel.NodeID{Host: "n1", Port: 1}, creel.NewResource(8192, 8)
	return Config{ID: id, HTTPPort: 2, Total: total, Version: "creel", Queue: q}
}

type stage struct {
	t   *testing.T
	n   *Node
	now time.Time
	out strings.Builder
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(&s.out, "  "+format+"\n", args...) }

func id(s string) creel.ContainerID {
	app, seq, _ := strings.Cut(s, ".")
	a, _ := strconv.Atoi(app)
	c, _ := strconv.Atoi(seq)
	return creel.NewContainerID(
		creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: int32(a)}, Attempt: 1},
		0,
		int64(c),
	)
}

func short(c creel.ContainerID) string {
	return fmt.Sprintf("%d.%d", c.Attempt.Application.ID, c.Sequence())
}

func ids(s string) (out []*pb.ContainerIdProto) {
	for c := range strings.SplitSeq(s, ",") {
		if c != "" {
			out = append(out, pb.FromContainerID(id(c)))
		}
	}
	return out
}

func num(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func (s *stage) line(f []string) {
	opt := map[string]string{}
	for _, word := range f[1:] {
		k, v, _ := strings.Cut(word, "=")
		opt[k] = v
	}
	key := func() *pb.MasterKeyProto {
		if opt["key"] == "" {
			return nil
		}
		return &pb.MasterKeyProto{KeyId: proto.Int32(int32(num(opt["key"]))), Bytes: []byte(opt["key"])}
	}
	has := func(word string) bool { _, ok := opt[word]; return ok }
	switch f[0] {
	case "node":
		q := queue.Config{
			Length: int(num(opt["queue"])), Pause: has("pause"), Adaptive: has("adaptive"), ByWork: has("patience"),
			Patience:  time.Duration(num(opt["patience"])) * time.Millisecond,
			Estimates: has("estimates"),
		}
		if has("resources") {
			q.Policy = queue.ByResources
		}
		c := configOf(q)
		if has("lends") {
			c.Overallocation = overallocate.Config{
				Alloc: overallocate.Shares{Memory: 0.75, CPU: 0.75}, Preempt: overallocate.Shares{Memory: 0.9, CPU: 0.9},
				Looks: 1,
			}
		}
		s.n = New(c)
	case "measure":
		var e Measured
		for _, word := range f[1:] {
			c, use, _ := strings.Cut(word, "=")
			mb, milli, _ := strings.Cut(use, ":")
			e.Uses = append(e.Uses, Use{id(c), overallocate.Amount{MemoryMB: num(mb), MilliCores: num(milli)}})
		}
		s.step(e)
	case "register":
		rm := int64(5)
		if has("rm") {
			rm = num(opt["rm"])
		}
		a := &pb.RegisterNodeManagerResponseProto{
			RmIdentifier:            &rm,
			ContainerTokenMasterKey: key(),
			NmTokenMasterKey:        key(),
		}
		if has("shutdown") {
			a.NodeAction, a.DiagnosticsMessage = pb.NodeActionProto_SHUTDOWN.Enum(), proto.String("not wanted")
		}
		if has("total") {
			a.Resource = pb.FromResource(creel.NewResource(num(opt["total"]), 8))
		}
		r := s.n.Registration(s.now)
		s.say(
			"Registration of %s: %d containers, %d applications",
			pb.ToNodeID(r.GetNodeId()),
			len(r.GetContainerStatuses()),
			len(r.GetRunningApplications()),
		)
		s.step(Registered{a})
	case "start", "run":
		e := Start{
			Container: Container{ID: id(f[1]), Resource: creel.NewResource(1024, 1), Execution: 1},
			RM:        5,
			Expires:   s.now.Add(time.Minute),
			Launch:    &pb.ContainerLaunchContextProto{},
		}
		if has("rm") {
			e.RM = num(opt["rm"])
		}
		if has("mb") {
			e.Container.Resource.MemoryMB = num(opt["mb"])
		}
		if has("work") {
			e.Launch.Environment = []*pb.StringStringMapProto{{Key: new(EnvWork), Value: new(opt["work"])}}
		}
		if has("cores") {
			e.Container.Resource.VCores = num(opt["cores"])
		}
		if has("opp") {
			e.Container.Execution = creel.Opportunistic
		}
		if has("expired") {
			e.Expires = s.now.Add(-time.Second)
		}
		e.NMKey = int32(num(opt["key"]))
		if has("retry") {
			e.Launch.ContainerRetryContext = &pb.ContainerRetryContextProto{
				RetryPolicy: pb.ContainerRetryPolicyProto_RETRY_ON_ALL_ERRORS.Enum(),
				MaxRetries:  proto.Int32(int32(num(opt["retry"]))),
				RetryInterval: proto.Int32(
					int32(num(opt["interval"])),
				),
				FailuresValidityInterval: proto.Int64(num(opt["window"])),
			}
		}
		s.step(e)
		if f[0] == "run" {
			s.step(Localized{ID: e.Container.ID})
			if c := s.n.containers[e.Container.ID]; c.hasProcess() {
				s.step(Launched{ID: c.ID})
			}
		}
	case "localized":
		s.step(Localized{ID: id(f[1]), Failure: strings.Join(f[2:], " ")})
	case "launched":
		s.step(Launched{ID: id(f[1])})
	case "exited":
		s.step(Exited{ID: id(f[1]), Code: int32(num(f[2]))})
	case "stop":
		s.step(Stop{ID: id(f[1])})
	case "resize":
		u := Update{ID: id(f[1]), Version: int32(num(f[2])), Resource: creel.NewResource(num(f[3]), 1), Execution: 1}
		if has("opp") {
			u.Execution = creel.Opportunistic
		}
		s.step(u)
	case "paused":
		s.step(Suspended{ID: id(f[1]), Failure: strings.Join(f[2:], " ")})
	case "resumed":
		s.step(Resumed{ID: id(f[1])})
	case "heartbeat":
		b := s.n.Heartbeat(s.now)
		s.say(
			"Heartbeat response=%d key=%d used=%d MiB",
			b.GetNodeStatus().GetResponseId(),
			b.GetLastKnownNmTokenMasterKey().GetKeyId(),
			b.GetNodeStatus().GetNodeUtilization().GetPmem(),
		)
		for _, c := range b.GetNodeStatus().GetIncreasedContainers() {
			s.say("  increased: %s to %d MiB", short(pb.ToContainerID(c.GetId())), c.GetResource().GetMemory())
		}
		if o := b.GetNodeStatus().GetOpportunisticContainersStatus(); o != nil {
			s.say(
				"  opportunistic: %d running with %d GB, %d cores; %d queued; queue length %d of %d",
				o.GetRunningOpportContainers(),
				o.GetOpportMemoryUsed(),
				o.GetOpportCoresUsed(),
				o.GetQueuedOpportContainers(),
				o.GetWaitQueueLength(),
				o.GetOpportQueueCapacity(),
			)
			if o.EstimatedQueueWaitTime != nil {
				s.say("  estimated wait: %d ms", o.GetEstimatedQueueWaitTime())
			}
		}
		for _, c := range b.GetNodeStatus().GetContainersStatuses() {
			s.say("  %s", show(c))
		}
	case "answer":
		a := &pb.NodeHeartbeatResponseProto{
			ResponseId:              proto.Int32(s.n.response + 1),
			ContainerTokenMasterKey: key(),
			NmTokenMasterKey:        key(),
			ContainersToBeRemovedFromNm: ids(
				opt["ack"],
			),
			ContainersToCleanup:   ids(opt["kill"]),
			NextHeartBeatInterval: proto.Int64(num(opt["interval"])),
		}
		if has("resync") {
			a.NodeAction = pb.NodeActionProto_RESYNC.Enum()
		}
		if has("shutdown") {
			a.NodeAction, a.DiagnosticsMessage = pb.NodeActionProto_SHUTDOWN.Enum(), proto.String("decommissioned")
		}
		for _, c := range ids(opt["signal"]) {
			a.ContainersToSignal = append(
				a.ContainersToSignal,
				&pb.SignalContainerRequestProto{
					ContainerId: c,
					Command:     pb.SignalContainerCommandProto_OUTPUT_THREAD_DUMP.Enum(),
				},
			)
		}
		if v := strings.Split(opt["resize"], ":"); len(v) >= 3 {
			c := &pb.ContainerProto{
				Id:       pb.FromContainerID(id(v[0])),
				Version:  proto.Int32(int32(num(v[1]))),
				Resource: pb.FromResource(creel.NewResource(num(v[2]), 1)),
			}
			if len(v) == 4 {
				types := map[string]pb.ExecutionTypeProto{
					"opp": pb.ExecutionTypeProto_OPPORTUNISTIC, "guar": pb.ExecutionTypeProto_GUARANTEED,
				}
				c.ExecutionType = types[v[3]].Enum()
			}
			a.ContainersToUpdate = append(a.ContainersToUpdate, c)
		}
		if has("limit") || has("wait-limit") {
			a.ContainerQueuingLimit = &pb.ContainerQueuingLimitProto{
				MaxQueueLength:       proto.Int32(-1),
				MaxQueueWaitTimeInMs: proto.Int32(int32(num(opt["wait-limit"]))),
			}
			if has("limit") {
				a.ContainerQueuingLimit.MaxQueueLength = proto.Int32(int32(num(opt["limit"])))
			}
		}
		if has("total") {
			a.Resource = pb.FromResource(creel.NewResource(num(opt["total"]), 8))
		}
		if has("end") {
			for app := range strings.SplitSeq(opt["end"], ",") {
				a.ApplicationsToCleanup = append(
					a.ApplicationsToCleanup,
					pb.FromApplicationID(id(app).Attempt.Application),
				)
			}
		}
		s.step(Answered{a})
		s.say("next heartbeat in %v", s.n.Interval())
	case "wait":
		s.now = s.now.Add(time.Duration(num(f[1])) * time.Millisecond)
		s.step(Tick{})
	case "disconnect":
		s.step(Disconnected{})
	case "status":
		st, err := s.n.Status(id(f[1]))
		if err != nil {
			s.say("refused: %v", err)
			return
		}
		s.say("%s", show(st))
	case "keys":
		s.say(
			"container key %v, NM key %v",
			s.n.ContainerKey(int32(num(f[2]))) != nil,
			s.n.NMKey(id(f[1]).Attempt, int32(num(f[2]))) != nil,
		)
	default:
		s.t.Fatalf("unknown line %q", f)
	}
}

func show(c *pb.ContainerStatusProto) string {
	kind := ""
	if c.GetExecutionType() == pb.ExecutionTypeProto_OPPORTUNISTIC {
		kind = " opportunistic"
	}
	return strings.TrimRight(
		fmt.Sprintf(
			"%s %v %v exit=%d %dMB%s %s",
			short(pb.ToContainerID(c.GetContainerId())),
			c.GetState(),
			c.GetContainerSubState(),
			c.GetExitStatus(),
			c.GetCapability().GetMemory(),
			kind,
			strings.ReplaceAll(c.GetDiagnostics(), "\n", " "),
		),
		" ",
	)
}

func (s *stage) step(e Event) {
	actions, err := s.n.Step(s.now, e)
	if err != nil {
		s.say("refused: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	for _, a := range actions {
		switch a := a.(type) {
		case Localize:
			s.say("Localize %s", short(a.Container.ID))
		case Launch:
			s.say("Launch %s", short(a.Container.ID))
		case Kill:
			s.say("Kill %s signal %d", short(a.ID), a.Signal)
		case Pause:
			s.say("Pause %s", short(a.ID))
		case Resume:
			s.say("Resume %s", short(a.ID))
		case Cleanup:
			s.say("Cleanup %s", short(a.ID))
		case SignalContainer:
			s.say("Signal %s %v", short(a.ID), a.Command)
		case AppEnded:
			s.say("AppEnded %d", a.ID.ID)
		case Halt:
			s.say("Halt: %s", a.Reason)
		default:
			s.say("%T", a)
		}
	}
	if d := s.n.NextDeadline(); !d.IsZero() {
		s.say("deadline in %v", d.Sub(s.now))
	}
}
