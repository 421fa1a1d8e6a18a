// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Bounds that an administrator sets: what both say to those who pass them.
func TestSettingsDoWhatTheyDoWithHadoop(t *testing.T) {
	d := startDuo(t, &configuration{}, "", nil, hadoop.Conf{
		"yarn.resourcemanager.application.max-tags":        "2",
		"yarn.resourcemanager.application.max-tag.length":  "20",
		"yarn.resourcemanager.nodemanager.minimum.version": "3.4.0",
		"yarn.resourcemanager.am.max-attempts":             "1",
		"yarn.resourcemanager.am.global.max-attempts":      "3",
		"yarn.webapp.enable-rest-app-submissions":          "false",
	})
	var said [2][]string
	for i, s := range []*configured{d.theirs, d.ours} {
		say := func(format string, a ...any) { said[i] = append(said[i], fmt.Sprintf(format, a...)) }
		for _, path := range []string{"apps/new-application", "apps"} {
			code, body := s.call(http.MethodPost, path, map[string]any{})
			say("%s: %d %s", path, code, body)
		}
		for host, version := range map[string]string{"127.0.0.2": "3.4.0", "127.0.0.3": "3.3.6", "127.0.0.4": "3.4.0-SNAPSHOT",
			"127.0.0.5": "10.0"} {
			n := &node{id: creel.NodeID{Host: host, Port: 1}}
			r := must(s.tracker(host).RegisterNodeManager(t.Context(), &pb.RegisterNodeManagerRequestProto{
				NodeId: pb.FromNodeID(n.id), HttpPort: proto.Int32(2), NmVersion: &version,
				Resource: pb.FromResource(creel.NewResource(8192, 8)), NodeStatus: s.status(n),
			}))(t)
			say("%s: %v %s", version, r.GetNodeAction(), r.GetDiagnosticsMessage())
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
		slices.Sort(said[i])
		if len(said[i]) != 10 {
			t.Errorf("%s said %d things", s.name, len(said[i]))
		}
	}
	if !slices.Equal(said[0], said[1]) {
		t.Errorf("a real ResourceManager says\n%s\nours\n%s", strings.Join(said[0], "\n"), strings.Join(said[1], "\n"))
	}
	t.Log(strings.Join(said[1], "\n"))
}
