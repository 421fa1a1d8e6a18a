// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fillRequired sets the fields that a message may not be without to nothing.
func fillRequired(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Cardinality() != protoreflect.Required:
		case f.Message() != nil:
			fillRequired(m.Mutable(f).Message())
		default:
			m.Set(f, f.Default())
		}
	}
}

// An administrator calls every method of every protocol with an empty request. A missing method returns YARN's
// exception, and no method claims success for a feature that is off. The list of responses is in testdata: a method
// without a line, or with another response, fails.
func TestEveryMethodAnswers(t *testing.T) {
	c := start(t, distributed())
	c.nodes(1, nil)
	_, amrm := c.launchUnmanaged("bob", nil)
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(t.Context(), &pb.RegisterApplicationMasterRequestProto{}))
	var got strings.Builder
	got.WriteString("# protocol, method: the answer to an empty request\n")
	for _, p := range []struct {
		name   string
		client any
	}{
		{"client", c.as("root")},
		{"AM", am},
		{"NodeManager for an AM", c.distributedClient(amrm)},
		{"tracker", yarnrpc.NewResourceTrackerClient(c.client, c.s.Addresses().Tracker, hrpc.Login{User: "yarn"})},
		{"admin", c.admin("root")},
		{"ha", yarnrpc.NewHAServiceProtocolClient(c.client, c.s.Addresses().Admin, hrpc.Login{User: "root"})},
	} {
		v := reflect.ValueOf(p.client)
		for i := range v.NumMethod() {
			method := v.Type().Method(i)
			f := v.Method(i)
			if f.Type().NumIn() != 2 || f.Type().NumOut() != 2 {
				continue
			}
			request := reflect.New(f.Type().In(1).Elem())
			fillRequired(request.Interface().(proto.Message).ProtoReflect())
			out := f.Call([]reflect.Value{reflect.ValueOf(context.Context(t.Context())), request})
			answer := "ok"
			if err, _ := out[1].Interface().(error); err != nil {
				answer = strings.ReplaceAll(err.Error(), "org.apache.hadoop.", "")
				answer = regexp.MustCompile(`\d{13}`).ReplaceAllString(answer, "NOW")
			}
			if strings.Contains(answer, "java.io.IOException") {
				t.Errorf(
					"%s %s answers with the class that clients take for a broken connection: %s",
					p.name,
					method.Name,
					answer,
				)
			}
			fmt.Fprintf(&got, "%s %s: %s\n", p.name, method.Name, strings.TrimSpace(strings.SplitN(answer, "\n", 2)[0]))
		}
	}
	const golden = "testdata/methods.txt"
	if os.Getenv("REWRITE") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got.String() {
		t.Errorf("answers differ from %s (REWRITE=1 writes it anew):\n%s", golden, got.String())
	}
}
