// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios print into their files; then read the diff")

// A scenario is a text of blocks: a command, a line of four dashes, and the actions it leads to. Commands, with
// containers written member/number:
//
//	session home=sc-a view=sc-a:100,sc-b:50 split=broadcast [doc={...}] [where=h1:sc-b] [attempt=2] [places=sc-a,sc-b]
//	restart [attempt=2]                a new session from the last saved record
//	am register | finish
//	am allocate id=0 ask=1:*:10 ask=1:h1:4 release=sc-b/1 black=h9 update=sc-a/1 sched=3 url=x
//	am late id=1                       an allocate whose number is of a proxy before
//	rm sc-a registered [kept=1,2] | grant=1:h1:5,1:h1:6 | done=5 limit=8 nodes=3 token priority=4
//	rm sc-a registered [ends] [kept=1,2]   ends: containers end with their attempt
//	rm sc-a finished=true | err=notregistered
//	launched sc-b [type=SPARK] | launchfailed sc-b [spent] | numbered sc-b 5|err | dropped sc-b [err]
//	saved | savefailed stale
//	view sc-a:100,sc-b:lost,sc-c:hadoop,sc-d:old [store=x] [plan=sc-a:2,sc-b:4]  containers that the queue is to get
//	labelled [@gpu|@|@err]             home reported the application's label, none, or an error
//	where h1:sc-b h2:sc-a              all that is known of hosts and racks from now on
//	tick 250ms
//	ended
//
// places= names the members with whose keys the session places opportunistic containers. Such a member lists its least
// loaded nodes, with their racks and labels, in its answers: loaded=h1,h2/r1@gpu. The first placed container is sc-a/-1.
//
// A grant is priority:host:number[:opportunistic]; an ask priority:name:count[:memory][:strict][:opportunistic][:@label].
type scenario struct {
	t       testing.TB
	s       *Session
	now     time.Time
	call    uint64
	members []creel.SubclusterID
	seqs    map[creel.SubclusterID]uint64
	ids     map[creel.SubclusterID]int32
	saving  []Save
	stored  *Record
	home    creel.SubclusterID
	doc     string
	places  *where
	view    *subcluster.View
	attempt int32
	issuer  Issuer
	before  int32 // numbers of answers are shown as if they began at 1; -1 until there is one
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(b))
			if *rewrite {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(b) {
				t.Errorf("%s differs; run with -rewrite and read the diff\n%s", f, firstDifference(string(b), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\n got %s", i+1, w[i], g[i])
		}
	}
	return "one is longer"
}

// play runs a scenario and returns it with its actual outputs.
func play(t testing.TB, text string) string {
	sc := &scenario{
		t:       t,
		now:     time.Unix(1000, 0),
		seqs:    map[creel.SubclusterID]uint64{},
		ids:     map[creel.SubclusterID]int32{},
		attempt: 1,
	}
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		var head []string
		for _, line := range strings.Split(block, "\n") {
			if line == "----" {
				break
			}
			head = append(head, line)
		}
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		out.WriteString(strings.Join(head, "\n") + "\n")
		for _, line := range head {
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			got := sc.command(line)
			out.WriteString("----\n" + got)
		}
	}
	return out.String()
}

func (sc *scenario) command(line string) string {
	words := strings.Fields(line)
	switch words[0] {
	case "session":
		sc.start(words[1:])
		return ""
	case "restart":
		for _, w := range words[1:] {
			if v, ok := strings.CutPrefix(w, "attempt="); ok {
				sc.attempt = int32(sc.int(v))
			}
		}
		return sc.open(sc.stored)
	case "am":
		return sc.step(sc.am(words[1], words[2:]))
	case "rm":
		return sc.step(sc.rm(creel.SubclusterID(words[1]), words[2:]))
	case "numbered":
		e := Numbered{Member: creel.SubclusterID(words[1])}
		if words[2] == "err" {
			e.Err = creel.ErrUnavailable
		} else {
			e.ID = creel.ApplicationID{ClusterTimestamp: 9, ID: int32(sc.int(words[2]))}
		}
		return sc.step(e)
	case "launched":
		m, kind := creel.SubclusterID(words[1]), ""
		for _, w := range words[2:] {
			kind = strings.TrimPrefix(w, "type=")
		}
		return sc.step(Launched{
			Member:  m,
			Type:    kind,
			Attempt: creel.AttemptID{Application: app, Attempt: 1},
			Token: &yarnpb.TokenProto{
				Identifier: []byte(m),
				Password:   []byte("secret"),
				Kind:       proto.String("YARN_AM_RM_TOKEN"),
				Service:    proto.String(""),
			},
		})
	case "labelled":
		e := Labelled{Given: len(words) > 1, Label: strings.TrimPrefix(strings.Join(words[1:], ""), "@")}
		if e.Label == "err" {
			e = Labelled{Err: errors.New("home does not answer")}
		}
		return sc.step(e)
	case "launchfailed":
		err := creel.ErrUnavailable
		if len(words) > 2 {
			err = &creel.Error{Kind: ErrSpent, What: "the UAM in " + words[1] + " is KILLED and cannot be started again"}
		}
		return sc.step(LaunchFailed{Member: creel.SubclusterID(words[1]), Err: err})
	case "dropped":
		e := Dropped{Member: creel.SubclusterID(words[1])}
		if len(words) > 2 {
			e.Err = creel.ErrUnavailable
		}
		return sc.step(e)
	case "saved":
		if len(sc.saving) == 0 {
			return "(nothing is being saved)\n"
		}
		save := sc.saving[0]
		sc.saving = sc.saving[1:]
		sc.stored = nil
		if save.Record != nil { // through its bytes, as a store would
			b, err := save.Record.MarshalBinary()
			if err != nil {
				sc.t.Fatal(err)
			}
			sc.stored = &Record{}
			if err := sc.stored.UnmarshalBinary(b); err != nil {
				sc.t.Fatal(err)
			}
		}
		return sc.step(Saved{save.Number})
	case "savefailed":
		if len(sc.saving) == 0 {
			return "(nothing is being saved)\n"
		}
		save := sc.saving[0]
		sc.saving = sc.saving[1:]
		err := creel.ErrUnavailable
		if len(words) > 1 {
			err = creel.ErrStale
		}
		return sc.step(SaveFailed{save.Number, err})
	case "view":
		sc.see(words[1])
		for _, w := range words[2:] {
			if plan, ok := strings.CutPrefix(w, "plan="); ok {
				sc.view.Plan = sc.plan(plan)
				continue
			}
			sc.view.Store = strings.TrimPrefix(w, "store=")
		}
		return sc.step(Saw{sc.view, sc.policy(), sc.places})
	case "where":
		sc.places = &where{}
		for _, w := range words[1:] {
			sc.places.add(w)
		}
		return sc.step(Saw{sc.view, sc.policy(), sc.places})
	case "tick":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			sc.t.Fatal(err)
		}
		sc.now = sc.now.Add(d)
		return sc.step(Tick{})
	case "ended":
		return sc.step(Ended{"killed by ann"})
	case "reasons":
		var b strings.Builder
		for _, r := range sc.s.Reasons() {
			b.WriteString(r.String() + "\n")
		}
		return b.String()
	}
	sc.t.Fatalf("unknown command %q", line)
	return ""
}

// plan is one that has the queue get less than it wants, sc-a:2,sc-b:4: so many containers of 1 GB.
func (sc *scenario) plan(text string) *subcluster.Plan {
	const all = 1000
	q := subcluster.QueuePlan{Queue: "root.a", Wants: 1}
	for part := range strings.SplitSeq(text, ",") {
		id, n, _ := strings.Cut(part, ":")
		given := float64(sc.int(n)) / all
		q.Entitled += given
		q.Members = append(q.Members, subcluster.MemberPlan{Member: creel.SubclusterID(id), Given: given})
	}
	return &subcluster.Plan{Total: creel.NewResource(all*1024, all), Queues: []subcluster.QueuePlan{q}}
}

// where is Places of a scenario.
type where struct {
	at map[string][]creel.SubclusterID
}

func (p *where) Where(name string) []creel.SubclusterID { return p.at[name] }

// add takes a word as h1:sc-b.
func (p *where) add(word string) {
	name, m, _ := strings.Cut(word, ":")
	if p.at == nil {
		p.at = map[string][]creel.SubclusterID{}
	}
	p.at[name] = append(p.at[name], creel.SubclusterID(m))
}

var app = creel.ApplicationID{ClusterTimestamp: 7, ID: 1}

func (sc *scenario) int(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		sc.t.Fatal(err)
	}
	return n
}

func (sc *scenario) start(words []string) {
	sc.places = &where{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "home":
			sc.home = creel.SubclusterID(v)
		case "view":
			sc.see(v)
		case "split":
			sc.doc = fmt.Sprintf(`{"split":{"policy":%q}}`, v)
		case "doc":
			sc.doc = v
		case "where":
			sc.places.add(v)
		case "attempt":
			sc.attempt = int32(sc.int(v))
		case "places":
			sc.issuer = issuer(strings.Split(v, ","))
		default:
			sc.t.Fatalf("unknown option %q", w)
		}
	}
	if out := sc.open(nil); out != "" {
		sc.t.Fatalf("a new session acts at once: %s", out)
	}
}

// open begins a session, and returns its immediate actions.
func (sc *scenario) open(r *Record) string {
	s, err := NewSession(Options{
		Attempt: creel.AttemptID{Application: app, Attempt: sc.attempt}, Home: sc.home, User: "ann", Record: r,
		Rand: rand.New(rand.NewPCG(1, 2)), Issuer: sc.issuer,
	})
	if err != nil {
		sc.t.Fatal(err)
	}
	sc.s, sc.saving, sc.before = s, nil, -1
	return sc.step(Saw{sc.view, sc.policy(), sc.places})
}

// byHeadroom is the policy of scenarios that name none: an ask goes to every
// member with room, so that few lines show many members at work.
const byHeadroom = `{"split":{"policy":"locality","headroomAlpha":1}}`

func (sc *scenario) policy() policies.Policy {
	p, err := policies.Parse([]byte(cmp.Or(sc.doc, byHeadroom)))
	if err != nil {
		sc.t.Fatal(err)
	}
	return p
}

// see makes a view of sc-a:100,sc-b:lost; numbers are containers of 1 GB free. Behind @
// stand the labels that a member publishes, sc-a:100@gpu=20+ssd=5, or that it has none.
func (sc *scenario) see(text string) {
	var members []subcluster.Status
	for part := range strings.SplitSeq(text, ",") {
		id, what, _ := strings.Cut(part, ":")
		what, labels, publishes := strings.Cut(what, "@")
		st := subcluster.Status{State: subcluster.StateActive, Reason: "heartbeat 1s ago"}
		st.ID = creel.SubclusterID(id)
		if !slices.Contains(sc.members, st.ID) {
			sc.members = append(sc.members, st.ID)
		}
		switch what {
		case "lost":
			st.State = subcluster.StateLost
		case "draining":
			st.State = subcluster.StateDraining
		default:
			st.Load.BeginsAgain = what != "hadoop" && what != "old"
			switch what {
			case "hadoop":
				st.Version, what = "hadoop 3.4.2", "50"
			case "old":
				what = "50"
			}
			n := sc.int(what)
			st.Load.Metrics = subcluster.ClusterMetrics{
				AvailableMB:           n * 1024,
				AvailableVirtualCores: n,
				TotalMB:               1 << 30,
				TotalVirtualCores:     1 << 20,
			}
		}
		st.Load.Labels.Known = publishes
		for l := range strings.SplitSeq(labels, "+") {
			if name, n, ok := strings.Cut(l, "="); ok {
				st.Load.Labels.Put(subcluster.Partition{Label: name, Total: creel.NewResource(sc.int(n)*1024, sc.int(n))})
			}
		}
		members = append(members, st)
	}
	sc.view = subcluster.NewView(sc.now, members, nil)
}

// container makes an id: each member has its own epoch.
func (sc *scenario) container(m creel.SubclusterID, n int64) *yarnpb.ContainerIdProto {
	epoch := int64(slices.Index(sc.members, m) + 1)
	return idProto(creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, epoch, n))
}

func idProto(id creel.ContainerID) *yarnpb.ContainerIdProto {
	return &yarnpb.ContainerIdProto{Id: proto.Int64(id.ID), AppAttemptId: &yarnpb.ApplicationAttemptIdProto{
		AttemptId: proto.Int32(id.Attempt.Attempt),
		ApplicationId: &yarnpb.ApplicationIdProto{
			Id:               proto.Int32(id.Attempt.Application.ID),
			ClusterTimestamp: proto.Int64(id.Attempt.Application.ClusterTimestamp),
		},
	}}
}

func (sc *scenario) named(p *yarnpb.ContainerIdProto) string {
	id := containerID(p)
	n := id.Sequence()
	if isPlaced(id) {
		n -= 1 << 40
	}
	return fmt.Sprintf("%s/%d", sc.members[id.Epoch()-1], n)
}

// isPlaced reports whether a session placed a container.
func isPlaced(id creel.ContainerID) bool { return id.Sequence() >= 1<<39 }

// issuer makes tokens for the members of the list.
type issuer []string

func (i issuer) Issues(m creel.SubclusterID) (Signing, bool) {
	n := slices.Index(i, string(m))
	return Signing{NodeKey: 1, Epoch: int64(n + 1)}, n >= 0
}

func (i issuer) Container(m creel.SubclusterID, c *PlacedContainer) (*yarnpb.TokenProto, bool) {
	_, ok := i.Issues(m)
	return &yarnpb.TokenProto{Identifier: []byte(c.Node.Host)}, ok
}

func (i issuer) Node(m creel.SubclusterID, c *PlacedContainer) (*yarnpb.TokenProto, bool) {
	return i.Container(m, c)
}

// loaded parses a list of nodes.
func loaded(text string) (out []*yarnpb.RemoteNodeProto) {
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		word, label, _ := strings.Cut(word, "@")
		host, rack, _ := strings.Cut(word, "/")
		out = append(out, &yarnpb.RemoteNodeProto{
			NodeId:   &yarnpb.NodeIdProto{Host: &host, Port: proto.Int32(45454)},
			RackName: proto.String("/" + rack), NodePartition: &label,
		})
	}
	return out
}

func (sc *scenario) parseContainer(s string) *yarnpb.ContainerIdProto {
	m, n, _ := strings.Cut(s, "/")
	return sc.container(creel.SubclusterID(m), sc.int(n))
}

func priority(n int64) *yarnpb.PriorityProto {
	return &yarnpb.PriorityProto{Priority: proto.Int32(int32(n))}
}

func gigabytes(n int64) *yarnpb.ResourceProto {
	return &yarnpb.ResourceProto{Memory: proto.Int64(n * 1024), VirtualCores: proto.Int32(int32(n))}
}

func (sc *scenario) am(what string, words []string) Event {
	sc.call++
	e := FromAM{Call: sc.call}
	switch what {
	case "register":
		e.Register = &yarnpb.RegisterApplicationMasterRequestProto{
			Host:        proto.String("am"),
			TrackingUrl: proto.String(strings.Join(words, " ")),
		}
		return e
	case "finish":
		e.Finish = &yarnpb.FinishApplicationMasterRequestProto{
			FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
		}
		return e
	}
	a := &yarnpb.AllocateRequestProto{}
	e.Allocate = a
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "id":
			id := int32(sc.int(v))
			if id > 0 && sc.before > 0 && what != "late" {
				id += sc.before
			}
			a.ResponseId = proto.Int32(id)
		case "ask":
			p := strings.Split(v, ":")
			r := &yarnpb.ResourceRequestProto{
				Priority:      priority(sc.int(p[0])),
				ResourceName:  proto.String(p[1]),
				NumContainers: proto.Int32(int32(sc.int(p[2]))),
				Capability:    gigabytes(1),
			}
			for _, more := range p[3:] {
				if label, ok := strings.CutPrefix(more, "@"); ok {
					r.NodeLabelExpression = &label
				} else if more == "opportunistic" {
					r.ExecutionTypeRequest = &yarnpb.ExecutionTypeRequestProto{
						ExecutionType: yarnpb.ExecutionTypeProto_OPPORTUNISTIC.Enum(),
					}
				} else if more == "strict" {
					r.RelaxLocality = proto.Bool(false)
				} else {
					r.Capability = gigabytes(sc.int(more))
				}
			}
			a.Ask = append(a.Ask, r)
		case "release":
			a.Release = append(a.Release, sc.parseContainer(v))
		case "black", "white":
			if a.BlacklistRequest == nil {
				a.BlacklistRequest = &yarnpb.ResourceBlacklistRequestProto{}
			}
			if k == "black" {
				a.BlacklistRequest.BlacklistAdditions = append(a.BlacklistRequest.BlacklistAdditions, v)
			} else {
				a.BlacklistRequest.BlacklistRemovals = append(a.BlacklistRequest.BlacklistRemovals, v)
			}
		case "update":
			a.UpdateRequests = append(
				a.UpdateRequests,
				&yarnpb.UpdateContainerRequestProto{ContainerVersion: proto.Int32(0), ContainerId: sc.parseContainer(v),
					UpdateType: yarnpb.ContainerUpdateTypeProto_INCREASE_RESOURCE.Enum()},
			)
		case "sched":
			id, n, many := strings.Cut(v, ":")
			r := &yarnpb.SchedulingRequestProto{AllocationRequestId: proto.Int64(sc.int(id)), Priority: priority(9)}
			if many {
				r.ResourceSizing = &yarnpb.ResourceSizingProto{NumAllocations: proto.Int32(int32(sc.int(n)))}
			}
			a.SchedulingRequests = append(a.SchedulingRequests, r)
		case "url":
			a.TrackingUrl = proto.String(v)
		case "unknown":
			a.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, byte(sc.int(v))}) // field 127
		default:
			sc.t.Fatalf("unknown word %q", w)
		}
	}
	return e
}

var kinds = map[string]error{
	"notregistered": creel.ErrNotRegistered,
	"unavailable":   creel.ErrUnavailable,
	"noattempt":     creel.ErrAttemptNotFound,
	"invalid":       creel.ErrInvalidResource,
	"badtoken":      creel.ErrInvalidToken,
	"plain":         errors.New("connection reset"),
}

func (sc *scenario) rm(m creel.SubclusterID, words []string) Event {
	e := Answered{Member: m, Seq: sc.seqs[m]}
	allocate := func() *yarnpb.AllocateResponseProto {
		if e.Allocate == nil {
			e.Allocate = &yarnpb.AllocateResponseProto{ResponseId: proto.Int32(nextID(sc.ids[m]))}
		}
		return e.Allocate
	}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "registered":
			e.Register = &yarnpb.RegisterApplicationMasterResponseProto{
				Queue:             proto.String("root.a"),
				MaximumCapability: gigabytes(8),
			}
		case "loaded":
			if e.Register == nil {
				allocate()
				e.Loaded = loaded(v)
				continue
			}
			start := containerID(sc.container(m, -1)).ID + 1
			e.Terms = &yarnpb.RegisterDistributedSchedulingAMResponseProto{
				MaxContainerResource: gigabytes(8), MinContainerResource: gigabytes(1), ContainerIdStart: &start,
				NodesForScheduling: loaded(v),
			}
		case "ends":
			yarnpb.Encoded(e.Register, yarnpb.AppendNumber(nil, yarnpb.FieldEnds, 1))
		case "kept":
			for n := range strings.SplitSeq(v, ",") {
				e.Register.ContainersFromPreviousAttempts = append(
					e.Register.ContainersFromPreviousAttempts,
					&yarnpb.ContainerProto{Id: sc.container(m, sc.int(n))},
				)
				e.Register.NmTokensFromPreviousAttempts = append(
					e.Register.NmTokensFromPreviousAttempts,
					&yarnpb.NMTokenProto{NodeId: &yarnpb.NodeIdProto{Host: proto.String(string(m) + "-n" + n)}},
				)
			}
		case "heartbeat":
			allocate()
		case "grant":
			for g := range strings.SplitSeq(v, ",") {
				p := strings.Split(g, ":")
				c := &yarnpb.ContainerProto{
					Id:       sc.container(m, sc.int(p[2])),
					Priority: priority(sc.int(p[0])),
					NodeId:   &yarnpb.NodeIdProto{Host: proto.String(p[1]), Port: proto.Int32(45454)},
				}
				if len(p) > 3 && p[3] == "opportunistic" {
					c.ExecutionType = yarnpb.ExecutionTypeProto_OPPORTUNISTIC.Enum()
				} else if len(p) > 3 {
					c.AllocationRequestId = proto.Int64(sc.int(p[3]))
				}
				c.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, 1})
				allocate().AllocatedContainers = append(allocate().AllocatedContainers, c)
			}
		case "done":
			for n := range strings.SplitSeq(v, ",") {
				allocate().CompletedContainerStatuses = append(
					allocate().CompletedContainerStatuses,
					&yarnpb.ContainerStatusProto{ContainerId: sc.container(m, sc.int(n)), ExitStatus: proto.Int32(0)},
				)
			}
		case "back":
			for n := range strings.SplitSeq(v, ",") {
				allocate().ContainersFromPreviousAttempts = append(
					allocate().ContainersFromPreviousAttempts, &yarnpb.ContainerProto{Id: sc.container(m, sc.int(n))},
				)
			}
		case "rejected":
			allocate().RejectedSchedulingRequests = append(allocate().RejectedSchedulingRequests,
				&yarnpb.RejectedSchedulingRequestProto{
					Reason:  yarnpb.RejectionReasonProto_RRP_COULD_NOT_PLACE_ON_NODE.Enum(),
					Request: &yarnpb.SchedulingRequestProto{AllocationRequestId: proto.Int64(sc.int(v)), Priority: priority(9)},
				})
		case "limit":
			allocate().Limit = gigabytes(sc.int(v))
		case "nodes":
			allocate().NumClusterNodes = proto.Int32(int32(sc.int(v)))
		case "token":
			allocate().AmRmToken = &yarnpb.TokenProto{
				Identifier: []byte(string(m) + "-rolled"),
				Password:   []byte("p"),
				Kind:       proto.String("YARN_AM_RM_TOKEN"),
				Service:    proto.String(""),
			}
		case "priority":
			allocate().ApplicationPriority = priority(sc.int(v))
		case "nmtoken":
			allocate().NmTokens = append(
				allocate().NmTokens,
				&yarnpb.NMTokenProto{NodeId: &yarnpb.NodeIdProto{Host: proto.String(v)}},
			)
		case "unknown":
			allocate().ProtoReflect().SetUnknown([]byte{0xf8, 0x07, byte(sc.int(v))})
		case "finished":
			e.Finish = &yarnpb.FinishApplicationMasterResponseProto{IsUnregistered: proto.Bool(v == "true")}
		case "err":
			if n, ok := strings.CutPrefix(v, "expect:"); ok {
				e.Err = &creel.Error{
					Kind: creel.ErrInvalidRequest,
					What: "Invalid responseId in AllocateRequest from application attempt: a, expect responseId to be " + n + " but get 0",
				}
			} else if e.Err = kinds[v]; e.Err == nil {
				sc.t.Fatalf("unknown error %q", v)
			}
		default:
			sc.t.Fatalf("unknown word %q", w)
		}
	}
	return e
}

func (sc *scenario) step(e Event) string {
	var b strings.Builder
	for _, a := range sc.s.Step(sc.now, e) {
		b.WriteString(sc.show(a) + "\n")
	}
	return b.String()
}

func (sc *scenario) show(a Action) string {
	switch a := a.(type) {
	case Save:
		sc.saving = append(sc.saving, a)
		if a.Record == nil {
			return "Save nothing"
		}
		text := "Save"
		for _, t := range a.Record.UAMs {
			text += " uam=" + string(t.Member) + under(t.OwnID)
			if t.Token != nil {
				text += "(" + string(t.Token.Identifier) + ")"
			}
		}
		if a.Record.Answer != nil {
			text += " registered"
		}
		if a.Record.Ending {
			text += " ending"
		}
		for _, c := range a.Record.Completions {
			text += fmt.Sprintf(" done=%s(%d)", sc.named(c.ContainerId), c.GetExitStatus())
		}
		return text
	case Send:
		sc.seqs[a.Member] = a.Seq
		text := "Send " + string(a.Member)
		switch {
		case a.Register != nil:
			text += " register"
		case a.Finish != nil:
			text += " finish " + a.Finish.GetFinalApplicationStatus().String()
		default:
			sc.ids[a.Member] = a.Allocate.GetResponseId()
			text += " allocate" + sc.request(a.Allocate)
		}
		if a.Token != nil {
			text += " as=" + string(a.Token.Identifier)
		}
		if a.Distributed {
			text += " distributed"
		}
		for _, c := range a.Placed {
			text += fmt.Sprintf(" placed=%s:%s", sc.named(c.Id), c.NodeId.GetHost())
		}
		if a.Unplaced > 0 {
			text += fmt.Sprintf(" unplaced=%d", a.Unplaced)
		}
		return text
	case Reply:
		text := fmt.Sprintf("Reply %d", a.Call)
		switch {
		case a.Err != nil:
			return text + " error " + a.Err.Error()
		case a.Register != nil:
			text += " registered queue=" + a.Register.GetQueue()
			for _, c := range a.Register.ContainersFromPreviousAttempts {
				text += " kept=" + sc.named(c.Id)
			}
			for _, n := range a.Register.NmTokensFromPreviousAttempts {
				text += " nmtoken=" + n.NodeId.GetHost()
			}
			return text
		case a.Finish != nil:
			return fmt.Sprintf("%s finished=%v", text, a.Finish.GetIsUnregistered())
		}
		return text + sc.response(a.Allocate)
	case Launch:
		text := fmt.Sprintf("Launch %s %s %q in %s as %s", a.Member, a.Application, a.Name, a.Queue, a.User)
		if a.Label != nil {
			text += " @" + *a.Label
		}
		return text + under(a.OwnID)
	case NewID:
		return fmt.Sprintf("NewID %s as %s", a.Member, a.User)
	case Drop:
		return fmt.Sprintf("Drop %s %s", a.Member, a.Application) + under(a.OwnID)
	case Done:
		return "Done: " + a.Why
	}
	return fmt.Sprintf("%T", a)
}

// under names an id of a UAM's own.
func under(own creel.ApplicationID) string {
	if own.IsZero() {
		return ""
	}
	return " under " + own.String()
}

func (sc *scenario) request(a *yarnpb.AllocateRequestProto) string {
	text := fmt.Sprintf(" id=%d", a.GetResponseId())
	for _, r := range a.Ask {
		text += fmt.Sprintf(" ask=%d:%s:%d", r.Priority.GetPriority(), r.GetResourceName(), r.GetNumContainers())
		if gb := r.GetCapability().GetMemory() / 1024; gb != 1 {
			text += fmt.Sprintf(":%d", gb)
		}
		if !r.GetRelaxLocality() {
			text += ":strict"
		}
		if r.GetExecutionTypeRequest().GetExecutionType() == yarnpb.ExecutionTypeProto_OPPORTUNISTIC {
			text += ":opportunistic"
		}
		if r.NodeLabelExpression != nil {
			text += ":@" + *r.NodeLabelExpression
		}
	}
	for _, c := range a.Release {
		text += " release=" + sc.named(c)
	}
	for _, n := range a.GetBlacklistRequest().GetBlacklistAdditions() {
		text += " black=" + n
	}
	for _, n := range a.GetBlacklistRequest().GetBlacklistRemovals() {
		text += " white=" + n
	}
	for _, u := range a.UpdateRequests {
		text += " update=" + sc.named(u.ContainerId)
	}
	for _, r := range a.SchedulingRequests {
		text += fmt.Sprintf(" sched=%d", r.GetAllocationRequestId())
		if n := r.GetResourceSizing().GetNumAllocations(); n > 0 {
			text += fmt.Sprintf(":%d", n)
		}
	}
	if a.TrackingUrl != nil {
		text += " url=" + *a.TrackingUrl
	}
	if u := a.ProtoReflect().GetUnknown(); len(u) > 0 {
		text += fmt.Sprintf(" unknown=%x", []byte(u))
	}
	return text
}

func (sc *scenario) response(r *yarnpb.AllocateResponseProto) string {
	if sc.before < 0 {
		sc.before = r.GetResponseId() - 1
	}
	text := fmt.Sprintf(" id=%d", r.GetResponseId()-sc.before)
	for _, c := range r.AllocatedContainers {
		text += " granted=" + sc.named(c.Id)
		if len(c.ProtoReflect().GetUnknown()) == 0 && !isPlaced(containerID(c.Id)) {
			text += "(fields lost!)"
		}
	}
	for _, c := range r.CompletedContainerStatuses {
		text += fmt.Sprintf(" done=%s(%d)", sc.named(c.ContainerId), c.GetExitStatus())
	}
	for _, x := range r.RejectedSchedulingRequests {
		text += fmt.Sprintf(" rejected=%d", x.GetRequest().GetAllocationRequestId())
	}
	if r.Limit != nil {
		text += fmt.Sprintf(" limit=%d", r.Limit.GetMemory()/1024)
	}
	if r.NumClusterNodes != nil {
		text += fmt.Sprintf(" nodes=%d", *r.NumClusterNodes)
	}
	for _, n := range r.NmTokens {
		text += " nmtoken=" + n.NodeId.GetHost()
	}
	for _, c := range r.ContainersFromPreviousAttempts {
		text += " kept=" + sc.named(c.Id)
	}
	if r.AmRmToken != nil {
		text += " token=" + string(r.AmRmToken.Identifier)
	}
	if r.ApplicationPriority != nil {
		text += fmt.Sprintf(" priority=%d", r.ApplicationPriority.GetPriority())
	}
	if u := r.ProtoReflect().GetUnknown(); len(u) > 0 {
		text += fmt.Sprintf(" unknown=%x", []byte(u))
	}
	return text
}
