// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Limits that an administrator sets: both report the same to callers who exceed them.
func TestSettingsBehaveAsWithHadoop(t *testing.T) {
	d := startDuo(t, &configuration{}, "", nil, hadoop.Conf{
		"yarn.resourcemanager.application.max-tags":        "2",
		"yarn.resourcemanager.application.max-tag.length":  "20",
		"yarn.resourcemanager.nodemanager.minimum.version": "3.4.0",
		"yarn.resourcemanager.am.max-attempts":             "1",
		"yarn.resourcemanager.am.global.max-attempts":      "3",
		"yarn.webapp.enable-rest-app-submissions":          "false",

		"yarn.resourcemanager.resource-tracker.nm.ip-hostname-check": "true",
		"yarn.resource-types":                        "gpu",
		"yarn.resource-types.gpu.minimum-allocation": "2",
		"yarn.scheduler.include-port-in-node-name":   "true",

		"yarn.resourcemanager.nodemanagers.heartbeat-interval-scaling-enable":  "true",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-min-ms":          "300",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-max-ms":          "1900",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-slowdown-factor": "2",

		"hadoop.http.filter.initializers":                  "org.apache.hadoop.security.HttpCrossOriginFilterInitializer",
		"hadoop.http.cross-origin.allowed-origins":         "http://one:80,regex:https://[a-z]+\\.example\\.org",
		"hadoop.http.cross-origin.max-age":                 "60",
		"yarn.resourcemanager.webapp.cross-origin.enabled": "true",
	})
	var said [2][]string
	for i, s := range []*configuredSystem{d.theirs, d.ours} {
		say := func(format string, a ...any) { said[i] = append(said[i], fmt.Sprintf(format, a...)) }
		for _, path := range []string{"apps/new-application", "apps"} {
			code, body := s.call(http.MethodPost, path, map[string]any{})
			say("%s: %d %s", path, code, body)
		}
		for host, version := range map[string]string{"127.0.0.2": "3.4.0", "127.0.0.3": "3.3.6", "127.0.0.4": "3.4.0-SNAPSHOT",
			"127.0.0.5": "10.0", "nowhere.invalid": "3.4.2"} {
			n := &node{id: creel.NodeID{Host: host, Port: 1}, cpu: map[string]float32{"127.0.0.2": 9}[host]}
			r := must(s.tracker(host).RegisterNodeManager(t.Context(), &pb.RegisterNodeManagerRequestProto{
				NodeId: pb.FromNodeID(n.id), HttpPort: proto.Int32(2), NmVersion: &version,
				Resource: pb.FromResource(creel.NewResource(8192, 8).With("gpu", 4)), NodeStatus: s.status(n),
				PhysicalResource: pb.FromResource(creel.NewResource(16384, 16)),
			}))(t)
			say("%s: %v %s", version, r.GetNodeAction(), r.GetDiagnosticsMessage())
			if r.GetNodeAction() == pb.NodeActionProto_NORMAL {
				s.nodes = append(s.nodes, n)
			}
		}
		for range 6 { // a node's measurement applies to the interval that it gets later
			s.heartbeats()
			time.Sleep(500 * time.Millisecond)
		}
		for _, n := range s.nodes {
			say("%s waits %d ms", n.id.Host, n.next)
		}
		for _, from := range []struct{ origin, method string }{
			{"http://one:80", ""}, {"http://one:81", ""}, {"https://a.example.org", "POST"}, {"https://a.example.org", "DELETE"},
			{"https://a1.example.org", ""},
		} {
			say("from %v: %v", from, s.readsFrom(from.origin, from.method))
		}
		for _, tags := range []string{"a,b", "a,b,c", strings.Repeat("x", 20), strings.Repeat("x", 21)} {
			id := must(s.as("alice").GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{}))(t).GetApplicationId()
			_, err := s.as("alice").SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
				ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
					ApplicationId: id, ApplicationName: proto.String("tagged"), Queue: proto.String("default"),
					ApplicationType: proto.String("TEST"), UnmanagedAm: proto.Bool(true),
					AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: pb.FromResource(creel.NewResource(256, 1)),
					ApplicationTags: strings.Split(tags, ","),
				},
			})
			text, _, _ := strings.Cut(fmt.Sprint(err), "\n")
			say("%s: %t %s", tags, err == nil, text[strings.LastIndex(text, ": ")+1:])
		}
		id := s.submit("alice", "least", nil)
		am := s.amClient("alice", id, "amhost", "http://127.0.0.1:9/ui")
		ask, response := []*pb.ResourceRequestProto{ask(1, "*", 256, 1, true)}, int32(0)
		s.until("a container", func() bool {
			r := must(am.Allocate(t.Context(), &pb.AllocateRequestProto{ResponseId: &response, Ask: ask}))(t)
			response, ask = r.GetResponseId(), nil
			for _, c := range r.GetAllocatedContainers() {
				say("a container of %v", pb.ToResource(c.GetResource()))
			}
			return len(r.GetAllocatedContainers()) > 0
		})
		for i, host := range []string{"127.0.0.5:1", "127.0.0.2:1"} {
			asks := only(host, int32(7+i))
			s.until("a container on "+host, func() bool {
				r := must(am.Allocate(t.Context(), &pb.AllocateRequestProto{ResponseId: &response, Ask: asks}))(t)
				response, asks = r.GetResponseId(), nil
				for _, c := range r.GetAllocatedContainers() {
					say("asked on %s alone, given on %s", host, c.GetNodeId().GetHost())
				}
				return len(r.GetAllocatedContainers()) > 0
			})
		}
		slices.Sort(said[i])
		if len(said[i]) != 21 {
			t.Errorf("%s said %d things", s.name, len(said[i]))
		}
	}
	if !slices.Equal(said[0], said[1]) {
		t.Errorf("a real ResourceManager says\n%s\nours\n%s", strings.Join(said[0], "\n"), strings.Join(said[1], "\n"))
	}
	t.Log(strings.Join(said[1], "\n"))
}

// only are the asks for one container on a node and nowhere else.
func only(node string, priority int32) []*pb.ResourceRequestProto {
	return []*pb.ResourceRequestProto{
		ask(priority, node, 256, 1, true), ask(priority, "/default-rack", 256, 1, false), ask(priority, "*", 256, 1, false),
	}
}

// readsFrom returns the CORS headers for a page of another origin that requests the cluster's description, or for its
// preflight of a method.
func (s *configuredSystem) readsFrom(origin, method string) map[string]string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.Web+"/ws/v1/cluster/info", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Origin", origin)
	if method != "" {
		req.Header.Set("Access-Control-Request-Method", method)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	out := map[string]string{"Status": res.Status}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			out[name] = res.Header.Get(name)
		}
	}
	return out
}
