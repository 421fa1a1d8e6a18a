// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// question is a call that reads, in the played state of a system.
type question struct {
	name string
	ask  func(ctx context.Context, s *system) (proto.Message, error)
}

// of is a question for a method of the client protocol, asked as alice.
func of[Q, A proto.Message](
	name string,
	method func(yarnrpc.ApplicationClientProtocolClient, context.Context, Q) (A, error),
	request func(s *system) Q,
) question {
	return question{name, func(ctx context.Context, s *system) (proto.Message, error) {
		return method(s.as("alice"), ctx, request(s))
	}}
}

// questions are all methods of ApplicationClientProtocol that read and change nothing,
// about each application of the played state and one that there is not.
func questions() []question {
	type client = yarnrpc.ApplicationClientProtocolClient
	is := func(what string) *string { return &what }
	list := []question{
		of("metrics", client.GetClusterMetrics, func(*system) *pb.GetClusterMetricsRequestProto { return &pb.GetClusterMetricsRequestProto{} }),
		of("nodes", client.GetClusterNodes, func(*system) *pb.GetClusterNodesRequestProto { return &pb.GetClusterNodesRequestProto{} }),
		of("applications", client.GetApplications, func(*system) *pb.GetApplicationsRequestProto { return &pb.GetApplicationsRequestProto{} }),
		of("acls", client.GetQueueUserAcls, func(*system) *pb.GetQueueUserAclsInfoRequestProto { return &pb.GetQueueUserAclsInfoRequestProto{} }),
		of("node-labels", client.GetNodeToLabels, func(*system) *pb.GetNodesToLabelsRequestProto { return &pb.GetNodesToLabelsRequestProto{} }),
		of("label-nodes", client.GetLabelsToNodes, func(*system) *pb.GetLabelsToNodesRequestProto { return &pb.GetLabelsToNodesRequestProto{} }),
		of("labels", client.GetClusterNodeLabels, func(*system) *pb.GetClusterNodeLabelsRequestProto { return &pb.GetClusterNodeLabelsRequestProto{} }),
		of("types", client.GetResourceTypeInfo, func(*system) *pb.GetAllResourceTypeInfoRequestProto { return &pb.GetAllResourceTypeInfoRequestProto{} }),
		of("attributes", client.GetClusterNodeAttributes, func(*system) *pb.GetClusterNodeAttributesRequestProto {
			return &pb.GetClusterNodeAttributesRequestProto{}
		}),
		of("attribute-nodes", client.GetAttributesToNodes, func(*system) *pb.GetAttributesToNodesRequestProto { return &pb.GetAttributesToNodesRequestProto{} }),
		of("node-attributes", client.GetNodesToAttributes, func(*system) *pb.GetNodesToAttributesRequestProto { return &pb.GetNodesToAttributesRequestProto{} }),
	}
	for _, queue := range []string{"root", "default", "root.other", "nope"} {
		list = append(list, of("queue-"+queue, client.GetQueueInfo, func(*system) *pb.GetQueueInfoRequestProto {
			return &pb.GetQueueInfoRequestProto{
				QueueName: is(queue), IncludeApplications: proto.Bool(true),
				IncludeChildQueues: proto.Bool(true), Recursive: proto.Bool(true),
			}
		}))
	}
	for _, app := range []string{"running", "starting", "finished", "killed", "waiting", "none"} {
		id := func(s *system) *pb.ApplicationIdProto { return pb.FromApplicationID(s.appOr(app)) }
		attempt := func(s *system) *pb.ApplicationAttemptIdProto {
			return pb.FromAttemptID(creel.AttemptID{Application: s.appOr(app), Attempt: 1})
		}
		list = append(list,
			of("report-"+app, client.GetApplicationReport, func(s *system) *pb.GetApplicationReportRequestProto {
				return &pb.GetApplicationReportRequestProto{ApplicationId: id(s)}
			}),
			of("attempts-"+app, client.GetApplicationAttempts, func(s *system) *pb.GetApplicationAttemptsRequestProto {
				return &pb.GetApplicationAttemptsRequestProto{ApplicationId: id(s)}
			}),
			of("attempt-"+app, client.GetApplicationAttemptReport, func(s *system) *pb.GetApplicationAttemptReportRequestProto {
				return &pb.GetApplicationAttemptReportRequestProto{ApplicationAttemptId: attempt(s)}
			}),
			of("containers-"+app, client.GetContainers, func(s *system) *pb.GetContainersRequestProto {
				return &pb.GetContainersRequestProto{ApplicationAttemptId: attempt(s)}
			}),
		)
	}
	return list
}

// appOr is an application of the played state, or one that nobody has.
func (s *system) appOr(name string) creel.ApplicationID {
	if id, ok := s.apps[name]; ok {
		return id
	}
	return creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
}

// compareRPC asks both every question.
func compareRPC(t *testing.T, theirs, ours *system, file string, known []*rule) {
	t.Helper()
	for _, q := range questions() {
		compare(t, "rpc-"+q.name, file, known, theirs.name, theirs.reply(t, q), ours.reply(t, q))
	}
}

// reply gives an answer, or the error, as facts.
func (s *system) reply(t *testing.T, q question) facts {
	t.Helper()
	f := facts{}
	m, err := q.ask(t.Context(), s)
	var remote *hrpc.RemoteError
	switch {
	case errors.As(err, &remote):
		f["ERROR"], f["SAYS"] = remote.Class, s.same(strings.SplitN(remote.Message, "\n", 2)[0])
	case err != nil:
		t.Fatalf("%s: %s: %v", s.name, q.name, err)
	default:
		f.walk("", s.messageValue(m.ProtoReflect()))
	}
	return f
}

// messageValue reads a message as a document is read. Ids are text, as users see them.
func (s *system) messageValue(m protoreflect.Message) any {
	switch id := m.Interface().(type) {
	case *pb.ApplicationIdProto:
		return s.same(pb.ToApplicationID(id).String())
	case *pb.ApplicationAttemptIdProto:
		return s.same(pb.ToAttemptID(id).String())
	case *pb.ContainerIdProto:
		return s.same(pb.ToContainerID(id).String())
	case *pb.NodeIdProto:
		return pb.ToNodeID(id).String()
	}
	out := object{}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		if !m.Has(f) {
			continue
		}
		v := m.Get(f)
		if !f.IsList() {
			out = append(out, field{string(f.Name()), s.fieldValue(f, v)})
			continue
		}
		list := []any{}
		for j := range v.List().Len() {
			list = append(list, s.fieldValue(f, v.List().Get(j)))
		}
		out = append(out, field{string(f.Name()), list})
	}
	return out
}

func (s *system) fieldValue(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return s.messageValue(v.Message())
	case protoreflect.StringKind:
		return s.same(v.String())
	case protoreflect.BytesKind:
		return "bytes" // tokens: signed anew each time
	}
	return v.Interface()
}
