// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/server"
)

// Every method of the protocols is documented with its route, and calls documented as going home or everywhere do so.
func TestEveryMethodIsDocumented(t *testing.T) {
	changed := map[string]bool{}
	for verb := range changes {
		changed[client.Changes[verb].Method] = true
	}
	for protocol, service := range map[string]hrpc.Service{"RPC": Service(new(server.Server), nil), "RPC admin": AdminService(nil, nil, nil)} {
		documented := map[string]router.Route{}
		for _, d := range router.Documents {
			if d.Protocol != protocol {
				continue
			}
			documented[d.Name] = d.Route
			if _, ok := service.Methods[d.Name]; !ok {
				t.Errorf("%s: no method %s", protocol, d.Name)
			}
			_, forwarded := forwards[d.Name]
			if home := forwarded || d.Name == reportMethod; home != (d.Route == router.AtHome) {
				t.Errorf("%s %s is documented as %s", protocol, d.Name, d.Route)
			}
			if ok := changed[d.Name]; ok != (d.Route == router.AtHomeAll) {
				t.Errorf("%s %s is documented as %s", protocol, d.Name, d.Route)
			}
			if _, ok := broadcasts[d.Name]; ok != (d.Route == router.Everywhere) {
				t.Errorf("%s %s is documented as %s", protocol, d.Name, d.Route)
			}
		}
		for name := range service.Methods {
			if _, ok := documented[name]; !ok {
				t.Errorf("%s %s is not documented", protocol, name)
			}
		}
	}
}

// The rules of a message are about its fields, all of them.
func TestMergedFieldsHaveRules(t *testing.T) {
	for _, typ := range router.Types {
		if !strings.HasSuffix(typ.Name, "Proto") {
			continue
		}
		found, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("creel.yarn." + typ.Name))
		if err != nil {
			t.Errorf("%s: %v", typ.Name, err)
			continue
		}
		fields := found.Descriptor().Fields()
		for i := range fields.Len() {
			if name := string(
				fields.Get(i).Name(),
			); !slices.ContainsFunc(
				typ.Fields,
				func(f router.Field) bool { return f.Name == name },
			) {
				t.Errorf("no rule for %s.%s", typ.Name, name)
			}
		}
		for _, f := range typ.Fields {
			if fields.ByName(protoreflect.Name(f.Name)) == nil {
				t.Errorf("%s has no field %s", typ.Name, f.Name)
			}
		}
	}
}
