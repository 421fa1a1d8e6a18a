// SPDX-License-Identifier: Apache-2.0

package yarnrpc_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// wire is a Caller that takes calls to a service in this process, messages as bytes and errors as class and text.
type wire struct{ service hrpc.Service }

func (w wire) Call(ctx context.Context, method string, request, response proto.Message) error {
	m, ok := w.service.Methods[method]
	if !ok {
		return &hrpc.RemoteError{
			Class:  hrpc.ClassNoSuchMethod,
			Detail: hrpc.DetailNoSuchMethod,
			Kind:   yarnrpc.KindOf(hrpc.ClassNoSuchMethod),
		}
	}
	b, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	in := m.NewRequest()
	if err := proto.Unmarshal(b, in); err != nil {
		return err
	}
	out, err := m.Serve(ctx, in)
	if err != nil {
		e := yarnrpc.ErrorOf(err)
		return &hrpc.RemoteError{Class: e.Class, Message: e.Message, Detail: e.Detail, Kind: yarnrpc.KindOf(e.Class)}
	}
	if out == nil {
		return nil
	}
	if b, err = proto.Marshal(out); err != nil {
		return err
	}
	return proto.Unmarshal(b, response)
}

// rm serves three methods and refuses the rest.
type rm struct {
	yarnrpc.UnimplementedApplicationClientProtocol
	fail error
}

func (r rm) GetApplicationReport(
	_ context.Context,
	req *yarnpb.GetApplicationReportRequestProto,
) (*yarnpb.GetApplicationReportResponseProto, error) {
	if r.fail != nil {
		return nil, r.fail
	}
	return &yarnpb.GetApplicationReportResponseProto{
		ApplicationReport: &yarnpb.ApplicationReportProto{
			ApplicationId: req.ApplicationId,
			User:          proto.String("alice"),
		},
	}, nil
}

func (r rm) SubmitApplication(
	context.Context,
	*yarnpb.SubmitApplicationRequestProto,
) (*yarnpb.SubmitApplicationResponseProto, error) {
	return nil, nil
}

func TestCallAndAnswer(t *testing.T) {
	c := yarnrpc.ApplicationClientProtocolClient{Caller: wire{yarnrpc.ApplicationClientProtocolService(rm{})}}
	app := creel.ApplicationID{ClusterTimestamp: 1795254163125, ID: 7}
	answer, err := c.GetApplicationReport(
		t.Context(),
		&yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := yarnpb.ToApplicationID(
		answer.GetApplicationReport().GetApplicationId(),
	); got != app ||
		answer.GetApplicationReport().GetUser() != "alice" {
		t.Fatalf("answered %v", answer)
	}
	if answer, err := c.SubmitApplication(
		t.Context(),
		&yarnpb.SubmitApplicationRequestProto{},
	); err != nil ||
		answer == nil {
		t.Fatalf("a nil answer became %v, %v, want an empty message", answer, err)
	}
	_, err = c.GetClusterMetrics(t.Context(), &yarnpb.GetClusterMetricsRequestProto{})
	var remote *hrpc.RemoteError
	if !errors.Is(err, creel.ErrNotEnabled) || !errors.As(err, &remote) ||
		remote.Class != yarnrpc.ClassFeatureNotEnabled ||
		!strings.Contains(remote.Message, "getClusterMetrics of ApplicationClientProtocol") {
		t.Fatalf("a method that is not served answered %v", err)
	}
}

// Each kind of error reaches a creel client as the same kind, or as a rejection if YARN has no class for it; and
// Hadoop's clients receive a class that makes them react correctly.
func TestKindsOverTheWire(t *testing.T) {
	const y = "org.apache.hadoop.yarn.exceptions."
	for _, c := range []struct {
		sent, got error
		class     string
	}{
		{creel.ErrApplicationNotFound, creel.ErrApplicationNotFound, y + "ApplicationNotFoundException"},
		{creel.ErrAttemptNotFound, creel.ErrAttemptNotFound, y + "ApplicationAttemptNotFoundException"},
		{creel.ErrContainerNotFound, creel.ErrContainerNotFound, y + "ContainerNotFoundException"},
		{creel.ErrNotRegistered, creel.ErrNotRegistered, y + "ApplicationMasterNotRegisteredException"},
		{creel.ErrInvalidResource, creel.ErrInvalidResource, y + "InvalidResourceRequestException"},
		{creel.ErrInvalidRequest, creel.ErrInvalidRequest, y + "YarnException"},
		{creel.ErrNotPermitted, creel.ErrNotPermitted, "org.apache.hadoop.security.AccessControlException"},
		{creel.ErrInvalidToken, creel.ErrInvalidToken, "org.apache.hadoop.security.token.SecretManager$InvalidToken"},
		{creel.ErrNotEnabled, creel.ErrNotEnabled, y + "YARNFeatureNotEnabledException"},
		{creel.ErrReadOnly, creel.ErrReadOnly, "java.lang.IllegalStateException"},
		{creel.ErrStandby, creel.ErrStandby, "org.apache.hadoop.ipc.StandbyException"},
		{creel.ErrBusy, creel.ErrBusy, "org.apache.hadoop.ipc.RetriableException"},
		{creel.ErrUnavailable, creel.ErrBusy, "org.apache.hadoop.ipc.RetriableException"},
		{creel.ErrNoSubcluster, creel.ErrBusy, "org.apache.hadoop.ipc.RetriableException"},
		{context.DeadlineExceeded, creel.ErrBusy, "org.apache.hadoop.ipc.RetriableException"},
		{creel.ErrQueueNotFound, creel.ErrInvalidRequest, y + "YarnException"},
		{creel.ErrNodeNotFound, creel.ErrInvalidRequest, y + "YarnException"},
		{creel.ErrConflict, creel.ErrInvalidRequest, y + "YarnException"},
		{creel.ErrStale, creel.ErrInvalidRequest, y + "YarnException"},
		{errors.New("a bug"), creel.ErrInvalidRequest, y + "YarnException"},
		{yarnrpc.Throw(yarnrpc.ClassInvalidMasterRequest, creel.ErrConflict), creel.ErrInvalidRequest, y + "InvalidApplicationMasterRequestException"},
		{yarnrpc.Throw("java.io.IOException", creel.ErrConflict), creel.ErrInvalidRequest, y + "YarnException"},
		{&hrpc.Error{Class: "java.io.IOException", Message: "x"}, creel.ErrInvalidRequest, y + "YarnException"},
		{hrpc.Errorf(yarnrpc.ClassInvalidAuxService, "no shuffle"), creel.ErrInvalidRequest, y + "InvalidAuxServiceException"},
		{&hrpc.RemoteError{Class: y + "ContainerNotFoundException", Detail: hrpc.DetailApplication}, creel.ErrContainerNotFound, y + "ContainerNotFoundException"},
		{&hrpc.RemoteError{Class: hrpc.ClassInvalidToken, Detail: hrpc.DetailFatalUnauthorized, Fatal: true}, creel.ErrInvalidRequest, y + "YarnException"},
		{&hrpc.RemoteError{Class: "java.io.IOException", Detail: hrpc.DetailApplication}, creel.ErrInvalidRequest, y + "YarnException"},
		{&hrpc.TransportError{Op: "dial", Err: errors.New("refused")}, creel.ErrBusy, "org.apache.hadoop.ipc.RetriableException"},
		{&hrpc.TransportError{Op: "read", Sent: true, Err: errors.New("reset")}, creel.ErrInvalidRequest, y + "YarnException"},
	} {
		told := fmt.Errorf("in the handler: %w", c.sent)
		if errors.Is(c.sent, creel.ErrApplicationNotFound) {
			told = &creel.Error{
				Kind: c.sent,
				What: "application_1_0001 is not known",
				Why:  "it ended a week ago",
				Try:  "ask the history",
			}
		}
		client := yarnrpc.ApplicationClientProtocolClient{
			Caller: wire{yarnrpc.ApplicationClientProtocolService(rm{fail: told})},
		}
		_, err := client.GetApplicationReport(t.Context(), &yarnpb.GetApplicationReportRequestProto{})
		var remote *hrpc.RemoteError
		if !errors.As(err, &remote) || remote.Class != c.class || !errors.Is(err, c.got) {
			t.Errorf("%v: answered %v with class %q, want %v with %q", c.sent, err, remote.Class, c.got, c.class)
		}
		if remote.Class == "java.io.IOException" {
			t.Errorf("%v: answered IOException", c.sent)
		}
		if remote.Message == "" {
			t.Errorf("%v: answered without a text", c.sent)
		}
	}
}

// failing is a Caller to a server that cannot be reached, or that wraps its refusals.
type failing struct{ err error }

func (f failing) Call(context.Context, string, proto.Message, proto.Message) error { return f.err }

func TestKindFromTheText(t *testing.T) {
	wrapped := &hrpc.RemoteError{
		Class:   yarnrpc.ClassYarn,
		Kind:    creel.ErrInvalidRequest,
		Message: "org.apache.hadoop.security.AccessControlException: User bob cannot perform operation MODIFY_APP on application_1_0001\n\tat org.apache...",
	}
	_, err := yarnrpc.ApplicationClientProtocolClient{
		Caller: failing{wrapped},
	}.ForceKillApplication(
		t.Context(),
		&yarnpb.KillApplicationRequestProto{},
	)
	if !errors.Is(err, creel.ErrNotPermitted) || errors.Is(err, creel.ErrInvalidRequest) {
		t.Errorf("a wrapped denial is %v", err)
	}
	plain := &hrpc.RemoteError{
		Class:   yarnrpc.ClassYarn,
		Kind:    creel.ErrInvalidRequest,
		Message: "Queue root.x: no such queue",
	}
	_, err = yarnrpc.ApplicationClientProtocolClient{
		Caller: failing{plain},
	}.GetQueueInfo(
		t.Context(),
		&yarnpb.GetQueueInfoRequestProto{},
	)
	if !errors.Is(err, creel.ErrInvalidRequest) {
		t.Errorf("a plain refusal is %v", err)
	}
	broken := &hrpc.TransportError{Op: "dial", Address: "127.0.0.1:1", Err: errors.New("refused")}
	_, err = yarnrpc.ResourceTrackerClient{
		Caller: failing{broken},
	}.NodeHeartbeat(
		t.Context(),
		&yarnpb.NodeHeartbeatRequestProto{},
	)
	var transport *hrpc.TransportError
	if !errors.Is(err, creel.ErrUnavailable) || !errors.As(err, &transport) {
		t.Errorf("a broken connection is %v", err)
	}
}

func TestSerializedErrors(t *testing.T) {
	p := yarnrpc.ToSerialized(&creel.Error{Kind: creel.ErrInvalidToken, What: "container token has expired"})
	if err := yarnrpc.FromSerialized(
		p,
	); !errors.Is(err, creel.ErrInvalidToken) ||
		!strings.Contains(err.Error(), "expired") {
		t.Errorf("came back as %v", err)
	}
	java := &yarnpb.SerializedExceptionProto{
		ClassName: proto.String(yarnrpc.ClassYarn),
		Message:   proto.String("failed"),
		Cause:     &yarnpb.SerializedExceptionProto{ClassName: proto.String(hrpc.ClassInvalidToken)},
	}
	if err := yarnrpc.FromSerialized(java); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("the cause says more: %v", err)
	}
	if err := yarnrpc.FromSerialized(nil); err != nil {
		t.Error(err)
	}
}

func TestRetryClasses(t *testing.T) {
	for method, want := range map[string]yarnrpc.Retry{"allocate": yarnrpc.RetryAtMostOnce, "registerApplicationMaster": yarnrpc.RetryAlways, "nothing": yarnrpc.RetryNever} {
		if got := yarnrpc.RetryOf(yarnrpc.ApplicationMasterProtocolName, method); got != want {
			t.Errorf("%s: %v, want %v", method, got, want)
		}
	}
	if yarnrpc.RetryOf(yarnrpc.ApplicationClientProtocolName, "updateReservation") != yarnrpc.RetryNever {
		t.Error("updateReservation may not be repeated")
	}
}

func TestInline(t *testing.T) {
	s := yarnrpc.Inline(yarnrpc.ResourceTrackerService(yarnrpc.UnimplementedResourceTracker{}), "nodeHeartbeat")
	if !s.Methods["nodeHeartbeat"].Inline || s.Methods["registerNodeManager"].Inline {
		t.Error("the wrong method is inline")
	}
	defer func() {
		if recover() == nil {
			t.Error("a method that is not there was taken")
		}
	}()
	yarnrpc.Inline(s, "nodeHeartBeat")
}

// Every protocol serves every method of its interface under its name on the wire, and a server that implements
// nothing answers each of them, through the typed client, as a feature that is off.
func TestEveryMethodOfEveryProtocol(t *testing.T) {
	counts := map[string]int{}
	for _, p := range []struct {
		service hrpc.Service
		client  func(yarnrpc.Caller) any
	}{
		{yarnrpc.ApplicationClientProtocolService(yarnrpc.UnimplementedApplicationClientProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.ApplicationClientProtocolClient{Caller: c} }},
		{yarnrpc.ApplicationMasterProtocolService(yarnrpc.UnimplementedApplicationMasterProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.ApplicationMasterProtocolClient{Caller: c} }},
		{yarnrpc.ContainerManagementProtocolService(yarnrpc.UnimplementedContainerManagementProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.ContainerManagementProtocolClient{Caller: c} }},
		{yarnrpc.ResourceTrackerService(yarnrpc.UnimplementedResourceTracker{}), func(c yarnrpc.Caller) any { return yarnrpc.ResourceTrackerClient{Caller: c} }},
		{yarnrpc.ResourceManagerAdministrationProtocolService(yarnrpc.UnimplementedResourceManagerAdministrationProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.ResourceManagerAdministrationProtocolClient{Caller: c} }},
		{yarnrpc.HAServiceProtocolService(yarnrpc.UnimplementedHAServiceProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.HAServiceProtocolClient{Caller: c} }},
		{yarnrpc.DistributedSchedulingAMProtocolService(yarnrpc.UnimplementedDistributedSchedulingAMProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.DistributedSchedulingAMProtocolClient{Caller: c} }},
		{yarnrpc.ClientSCMProtocolService(yarnrpc.UnimplementedClientSCMProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.ClientSCMProtocolClient{Caller: c} }},
		{yarnrpc.ApplicationHistoryProtocolService(yarnrpc.UnimplementedApplicationHistoryProtocol{}), func(c yarnrpc.Caller) any { return yarnrpc.ApplicationHistoryProtocolClient{Caller: c} }},
	} {
		client := reflect.ValueOf(p.client(wire{p.service}))
		for name := range p.service.Methods {
			m := client.MethodByName(strings.ToUpper(name[:1]) + name[1:])
			if !m.IsValid() {
				t.Errorf("%s: no client method for %s", p.service.Protocol, name)
				continue
			}
			out := m.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.New(m.Type().In(1).Elem())})
			err, _ := out[1].Interface().(error)
			if !errors.Is(err, creel.ErrNotEnabled) && !strings.Contains(fmt.Sprint(err), "required field") {
				t.Errorf("%s.%s: answered %v", p.service.Protocol, name, err)
			}
			counts[p.service.Protocol]++
		}
	}
	want := map[string]int{
		yarnrpc.ApplicationClientProtocolName:             35,
		yarnrpc.ApplicationMasterProtocolName:             3,
		yarnrpc.ContainerManagementProtocolName:           12,
		yarnrpc.ResourceTrackerName:                       3,
		yarnrpc.ResourceManagerAdministrationProtocolName: 22,
		yarnrpc.HAServiceProtocolName:                     5,
		yarnrpc.DistributedSchedulingAMProtocolName:       3,
		yarnrpc.ClientSCMProtocolName:                     2,
		yarnrpc.ApplicationHistoryProtocolName:            9,
	}
	if !reflect.DeepEqual(counts, want) {
		t.Errorf("methods per protocol %v, want %v", counts, want)
	}
}
