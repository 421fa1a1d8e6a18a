// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

//go:embed testdata/configurations.txt
var configurationLines string

//go:embed testdata/configurations-known.txt
var configurationsKnownLines string

// A configuration is a block of testdata/configurations.txt: queues that both
// ResourceManagers are given while they run.
type configuration struct {
	name, pair string
	labelled   bool              // on a cluster that has labels
	keys       map[string]string // below yarn.scheduler.capacity.
	file       []string          // lines of FairScheduler's file
	conf       hadoop.Conf       // configuration at the start of both
	submits    []submission
}

// A submission is an application that a user submits; without any, two users submit to each leaf. One that asks for
// containers has an unmanaged AM, which asks for them at once.
type submission struct {
	user, queue, label string
	tags               []string
	mb, vcores         int64
	containers         int32
	priority           int32
}

const capacity = "yarn.scheduler.capacity."

// The pairs of ResourceManagers, each started once, with the settings that cannot change at run time.
var pairs = map[string]hadoop.Conf{
	"dominant": {capacity + "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"},
	"memory":   {capacity + "resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"},
	"vectors": {
		capacity + "resource-calculator":       "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
		capacity + "legacy-queue-mode.enabled": "false",
		"yarn.resource-types":                  "gpu",
	},
	"preempting": {
		"yarn.resourcemanager.scheduler.monitor.enable":                                   "true",
		"yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.enabled": "true",
		"yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval":            "3600000",
		capacity + "resource-calculator":                                                  "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
	},
}

func configurations(t *testing.T, text string) (out []*configuration) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "["); ok {
			name, rest, _ := strings.Cut(rest, "]")
			words := strings.Fields(rest)
			if len(words) == 0 || pairs[words[0]] == nil && words[0] != "fair" {
				t.Fatalf("no such ResourceManagers: %s", line)
			}
			out = append(out, &configuration{
				name: name, pair: words[0], labelled: slices.Contains(words, "labelled"),
				keys: map[string]string{}, conf: hadoop.Conf{},
			})
			continue
		}
		c := out[len(out)-1]
		if line[0] == '<' {
			c.file = append(c.file, line)
			continue
		}
		key, value, ok := strings.Cut(line, " = ")
		switch {
		case !ok:
			t.Fatalf("not understood: %s", line)
		case key == "submit":
			s := submission{mb: 512, vcores: 1}
			for i, word := range strings.Fields(value) {
				switch name, v, _ := strings.Cut(word, "="); {
				case i == 0:
					s.user = word
				case i == 1:
					s.queue = word
				case name == "mb":
					fmt.Sscan(v, &s.mb)
				case name == "vcores":
					fmt.Sscan(v, &s.vcores)
				case name == "containers":
					fmt.Sscan(v, &s.containers)
				case name == "priority":
					fmt.Sscan(v, &s.priority)
				case name == "label":
					s.label = v
				case name == "tags":
					s.tags = strings.Split(v, ",")
				default:
					t.Fatalf("not understood: %s", line)
				}
			}
			c.submits = append(c.submits, s)
		case strings.HasPrefix(key, "yarn."):
			c.conf[key] = value
		default:
			c.keys[key] = value
		}
	}
	for i, c := range out {
		c.rename(fmt.Sprint(i + 1))
	}
	return out
}

// rename gives the queues unique names: a real ResourceManager keeps stale state of an earlier queue with the same
// name.
func (c *configuration) rename(suffix string) {
	all, _ := c.queues()
	path := func(text string) string {
		for _, q := range slices.Backward(all) { // those below before those above
			if rest, ok := strings.CutPrefix(text, q); ok && (rest == "" || rest[0] == '.') {
				return "root" + strings.ReplaceAll(q[len("root"):], ".", suffix+".")[len(suffix):] + suffix + rest
			}
		}
		return text
	}
	keys := map[string]string{}
	for key, value := range c.keys {
		switch {
		case strings.HasSuffix(key, ".queues"):
			value = strings.ReplaceAll(value, ",", suffix+",") + suffix
		case key == "queue-mappings":
			var list []string
			for m := range strings.SplitSeq(value, ",") {
				i := strings.LastIndexByte(m, ':')
				list = append(list, m[:i+1]+path(m[i+1:]))
			}
			value = strings.Join(list, ",")
		case key == "workflow-priority-mappings":
			var list []string
			for m := range strings.SplitSeq(value, ",") {
				parts := strings.Split(m, ":")
				parts[1] = path(parts[1])
				list = append(list, strings.Join(parts, ":"))
			}
			value = strings.Join(list, ",")
		}
		keys[path(key)] = value
	}
	c.keys = keys
	for i := range c.submits {
		c.submits[i].queue = path(c.submits[i].queue)
	}
}

// queues are those that the configuration lists, by path; leaves those without queues
// of their own.
func (c *configuration) queues() (all, leaves []string) {
	var look func(path string)
	look = func(path string) {
		list := c.keys[path+".queues"]
		if path != "root" {
			all = append(all, path)
			if list == "" {
				leaves = append(leaves, path)
			}
		}
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" {
				look(path + "." + name)
			}
		}
	}
	look("root")
	return all, leaves
}

// A configuredSystem is one of a pair, with its last configuration.
type configuredSystem struct {
	*system
	now *configuration
	ids map[string]string // of the applications of this moment, by name
}

func (s *configuredSystem) call(method, path string, body any) (int, string) {
	s.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.Web+"/ws/v1/cluster/"+path, bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(out)
}

// update sets keys; those without a value go.
func (s *configuredSystem) update(keys map[string]string) (int, string) {
	s.t.Helper()
	type entry struct {
		Key   string `json:"key"`
		Value string `json:"value,omitempty"`
	}
	var list []entry
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		list = append(list, entry{capacity + key, keys[key]})
	}
	return s.call("PUT", "scheduler-conf", map[string]any{"global-updates": map[string]any{"entry": list}})
}

// give stops the queues that are there, so that they may go, and puts others in force.
func (s *configuredSystem) give(c *configuration) (int, string) {
	s.t.Helper()
	stop, next := map[string]string{}, map[string]string{}
	all, _ := s.now.queues()
	for _, q := range all {
		stop[q+".state"], next[q+".state"] = "STOPPED", ""
	}
	if code, body := s.update(stop); code != http.StatusOK {
		s.t.Fatalf("%s: stopping the queues of %s: %d %s", s.name, s.now.name, code, body)
	}
	for key := range s.now.keys {
		next[key] = ""
	}
	// With Hadoop a stopped queue stays stopped until its state is configured differently.
	all, _ = c.queues()
	for _, q := range all {
		next[q+".state"] = "RUNNING"
	}
	maps.Copy(next, c.keys)
	code, body := s.update(next)
	// Hadoop's scheduler learns of the end of applications a little later.
	for until := time.Now().Add(process.Guard); strings.Contains(body, "not yet in stopped") && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
		code, body = s.update(next)
	}
	if code == http.StatusOK {
		s.now = c
	}
	return code, body
}

// addSized registers a node.
func (s *configuredSystem) addSized(host string, mb int64, vcores int64) {
	s.t.Helper()
	n := &node{id: creel.NodeID{Host: host, Port: 1}}
	must(s.tracker(host).RegisterNodeManager(s.t.Context(), &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(n.id), HttpPort: proto.Int32(2), NmVersion: proto.String("3.4.2"),
		Resource: pb.FromResource(creel.NewResource(mb, vcores)), NodeStatus: s.status(n),
		PhysicalResource: pb.FromResource(creel.NewResource(2*mb, 2*vcores)),
	}))(s.t)
	s.nodes = append(s.nodes, n)
}

// run submits the configuration's submissions in order, each when the one before it was accepted or rejected; AMs are
// started on a node without a listener.
func (s *configuredSystem) run(c *configuration) {
	s.t.Helper()
	list := c.submits
	if list == nil {
		_, leaves := c.queues()
		for _, q := range leaves {
			for _, user := range []string{"alice", "alice", "bob"} {
				list = append(list, submission{user: user, queue: q, mb: 512, vcores: 1})
			}
		}
	}
	s.ids, s.apps = map[string]string{}, map[string]creel.ApplicationID{}
	for i, x := range list {
		name := fmt.Sprintf("app%d", i)
		id := must(s.as(x.user).GetNewApplication(s.t.Context(), &pb.GetNewApplicationRequestProto{}))(s.t).GetApplicationId()
		of := func(n int32) *pb.ResourceRequestProto {
			r := ask(0, "*", x.mb, n, true)
			r.Capability = pb.FromResource(creel.NewResource(x.mb, x.vcores))
			if x.label != "" {
				r.NodeLabelExpression = &x.label
			}
			return r
		}
		context := &pb.ApplicationSubmissionContextProto{
			ApplicationId: id, ApplicationName: &name, Queue: &x.queue, ApplicationType: proto.String("TEST"),
			AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{"sleep 1000"}},
			Priority:        pb.FromPriority(x.priority), MaxAppAttempts: proto.Int32(1),
			ApplicationTags: x.tags,
		}
		if x.containers > 0 {
			context.UnmanagedAm, context.Resource = proto.Bool(true), pb.FromResource(creel.NewResource(256, 1))
		} else {
			context.AmContainerResourceRequest = []*pb.ResourceRequestProto{of(1)}
		}
		_, err := s.as(x.user).SubmitApplication(s.t.Context(), &pb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: context,
		})
		s.ids[pb.ToApplicationID(id).String()] = name
		if err != nil {
			continue // refused: the other refuses it too, or the documents differ
		}
		s.apps[x.user+" "+name] = pb.ToApplicationID(id)
		s.until(name+" is taken", func() bool {
			state := s.report(x.user, pb.ToApplicationID(id)).GetYarnApplicationState()
			return state >= pb.YarnApplicationStateProto_ACCEPTED
		})
		if x.containers > 0 {
			s.askFor(x.user, pb.ToApplicationID(id), of(x.containers))
		}
	}
}

// askFor plays an unmanaged AM: it asks until its containers are there, or no more come.
func (s *configuredSystem) askFor(user string, id creel.ApplicationID, asks ...*pb.ResourceRequestProto) {
	s.t.Helper()
	am := s.amClient(user, id, "amhost", "http://127.0.0.1:9/ui")
	response, still, got := int32(0), 0, int32(0)
	wanted := asks[0].GetNumContainers()
	s.until("no more containers come to "+id.String(), func() bool {
		r := must(am.Allocate(s.t.Context(), &pb.AllocateRequestProto{ResponseId: &response, Ask: asks}))(s.t)
		response, asks = r.GetResponseId(), nil
		if n := int32(len(r.GetAllocatedContainers())); n > 0 {
			got, still = got+n, 0
		}
		if still++; got < wanted {
			time.Sleep(10 * time.Millisecond) // Hadoop places by threads of its own
		}
		return got == wanted || still > 20
	})
}

// end kills all.
func (s *configuredSystem) end() {
	s.t.Helper()
	for who, id := range s.apps {
		user, _, _ := strings.Cut(who, " ")
		s.until(id.String()+" is dead", func() bool {
			return must(s.as(user).ForceKillApplication(s.t.Context(), &pb.KillApplicationRequestProto{
				ApplicationId: pb.FromApplicationID(id),
			}))(s.t).GetIsKillCompleted()
		})
	}
	s.apps = map[string]creel.ApplicationID{}
}

// documents are requested from both in each state.
var documents = []request{
	{name: "scheduler", method: "GET", path: "/ws/v1/cluster/scheduler"},
	{name: "metrics", method: "GET", path: "/ws/v1/cluster/metrics"},
	{name: "nodes", method: "GET", path: "/ws/v1/cluster/nodes"},
	{name: "apps", method: "GET", path: "/ws/v1/cluster/apps?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"},
	{name: "info", method: "GET", path: "/ws/v1/cluster/info"},
}

// duo is a pair of ResourceManagers that are given the same.
type duo struct {
	t            *testing.T
	theirs, ours *configuredSystem
	file         string // of known
	known        []*rule
	fields       int
}

// compare requests every document from both until they are equal, or until pending events must have been processed.
func (d *duo) compare(where string) {
	d.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for _, q := range documents {
		for _, accept := range []string{"application/json", "application/xml"} {
			name := where + "." + q.name
			if strings.HasSuffix(accept, "xml") {
				name += ":xml"
			}
			for {
				theirs, ours := d.theirs.answer(d.t, q, accept), d.ours.answer(d.t, q, accept)
				if len(differences(d.known, name, theirs, ours)) > 0 && time.Now().Before(deadline) {
					time.Sleep(50 * time.Millisecond)
					d.theirs.heartbeats()
					d.ours.heartbeats()
					continue
				}
				compare(d.t, name, d.file, d.known, "Hadoop", theirs, ours)
				d.fields += len(theirs)
				break
			}
		}
	}
}

// Many kinds of queues are loaded by a running real ResourceManager and by creel's. Their reports are compared with
// no node, with nodes, and with running and waiting applications.
func TestDocumentsOfManyConfigurations(t *testing.T) {
	all := configurations(t, configurationLines)
	known := rules(t, configurationsKnownLines)
	fields := 0
	for _, pair := range slices.Sorted(maps.Keys(pairs)) {
		t.Run(pair, func(t *testing.T) {
			d := startCapacity(t, pair, known)
			var plain, labelled []*configuration
			for _, c := range all {
				switch {
				case c.pair != pair:
				case c.labelled:
					labelled = append(labelled, c)
				default:
					plain = append(plain, c)
				}
			}
			for _, c := range plain {
				if d.give(c) {
					d.compare(c.name + ".none")
				}
			}
			d.both(func(s *configuredSystem) { s.addSized("127.0.0.2", 16384, 16) })
			d.await("a node", 1)
			for _, c := range plain {
				d.play(c)
			}
			if len(labelled) > 0 {
				d.both(func(s *configuredSystem) {
					s.call("POST", "add-node-labels", map[string]any{"nodeLabelInfo": []map[string]any{
						{"name": "x", "exclusivity": true}, {"name": "y", "exclusivity": false},
					}})
					for host, label := range map[string]string{"127.0.0.3": "x", "127.0.0.4": "y"} {
						s.addSized(host, 8192, 8)
						s.call("POST", "nodes/"+host+":1/replace-labels?labels="+label, map[string]any{})
					}
				})
				d.await("nodes with labels", 3)
				for _, c := range labelled {
					d.play(c)
				}
			}
			fields += d.fields
		})
	}
	unused(t, "testdata/configurations-known.txt", known)
	t.Logf("%d configurations, %d fields compared, %d rules", len(all), fields, len(known))
}

func startCapacity(t *testing.T, pair string, known []*rule) *duo {
	t.Helper()
	first := &configuration{name: "the kit's", keys: map[string]string{}}
	for key, value := range hadoop.Queues() {
		if rest, ok := strings.CutPrefix(key, capacity); ok && rest != "resource-calculator" {
			first.keys[rest] = value
		}
	}
	return startDuo(t, first, "testdata/configurations-known.txt", known, hadoop.Conf{
		"yarn.scheduler.configuration.store.class": "memory", "yarn.node-labels.enabled": "true",
	}.With(pairs[pair]))
}

// startDuo starts both with one configuration.
func startDuo(t *testing.T, first *configuration, file string, known []*rule, conf hadoop.Conf) *duo {
	t.Helper()
	conf = conf.With(patient)
	theirRM := hadoop.StartRM(t, hadoop.RM{Conf: conf})
	ourRM := rm.Start(t, rm.Options{Volatile: true, Conf: conf})
	d := &duo{t: t, file: file, known: known}
	d.theirs = &configuredSystem{system: newSystem(t, "Hadoop", theirRM.Process, theirRM.Addresses), now: first}
	d.ours = &configuredSystem{system: newSystem(t, "creel", ourRM.Process, ourRM.Addresses), now: first}
	d.both(func(s *configuredSystem) {
		s.same = func(text string) string {
			for id, name := range s.ids {
				text = strings.ReplaceAll(text, strings.TrimPrefix(id, "application_"), name)
			}
			_, port, _ := strings.Cut(s.Web, ":")
			// A real ResourceManager without nodes writes invalid JSON.
			return strings.NewReplacer("localhost:"+port, "WEB", s.Web, "WEB", ":NaN", `:"NaN"`).Replace(text)
		}
	})
	return d
}

func (d *duo) both(do func(s *configuredSystem)) { do(d.theirs); do(d.ours) }

// give reports whether both took it.
func (d *duo) give(c *configuration) bool {
	d.t.Helper()
	a, why := d.theirs.give(c)
	b, reason := d.ours.give(c)
	if a != b || a != http.StatusOK {
		d.t.Errorf("%s: a real ResourceManager answers %d %s\nours %d %s", c.name, a, why, b, reason)
	}
	return a == http.StatusOK && b == http.StatusOK
}

// await waits until both have so many nodes.
func (d *duo) await(what string, nodes int) {
	d.t.Helper()
	d.both(func(s *configuredSystem) {
		s.until(what, func() bool {
			_, body := s.call("GET", "metrics", nil)
			return strings.Contains(body, fmt.Sprintf(`"activeNodes":%d,`, nodes))
		})
	})
}

// play compares a configuration on nodes, before and while applications run and wait.
func (d *duo) play(c *configuration) {
	d.t.Helper()
	if !d.give(c) {
		return
	}
	d.playGiven(c)
}

func (d *duo) playGiven(c *configuration) {
	d.t.Helper()
	d.compare(c.name + ".nodes")
	d.both(func(s *configuredSystem) { s.run(c) })
	d.compare(c.name + ".apps")
	d.both((*configuredSystem).end)
}
