// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Every field of an answer has a rule, and every field of a request a destination. A field that a later Hadoop adds
// fails here until it has one.
var answerRules = map[protoreflect.Name]string{
	"a_m_command":                       "home",
	"response_id":                       "ours",
	"allocated_containers":              "join",
	"completed_container_statuses":      "join",
	"limit":                             "sum",
	"updated_nodes":                     "join",
	"num_cluster_nodes":                 "sum",
	"preempt":                           "join",
	"nm_tokens":                         "join",
	"am_rm_token":                       "home",
	"application_priority":              "home",
	"collector_info":                    "home",
	"update_errors":                     "join",
	"updated_containers":                "join",
	"containers_from_previous_attempts": "join",
	"rejected_scheduling_requests":      "join",
	"enhanced_headroom":                 "sum",
}

func TestEveryFieldOfAnAnswerHasARule(t *testing.T) {
	fields := (&yarnpb.AllocateResponseProto{}).ProtoReflect().Descriptor().Fields()
	if fields.Len() != len(answerRules) {
		t.Errorf("%d fields, %d rules", fields.Len(), len(answerRules))
	}
	for i := range fields.Len() {
		f := fields.Get(i)
		rule, ok := answerRules[f.Name()]
		if !ok {
			t.Errorf("field %s has no merge rule", f.Name())
			continue
		}
		// One answer of each side with only this field set, in both orders.
		for _, homeFirst := range []bool{true, false} {
			home, other := &yarnpb.AllocateResponseProto{}, &yarnpb.AllocateResponseProto{}
			fill(home, f)
			fill(other, f)
			out := &yarnpb.AllocateResponseProto{}
			if homeFirst {
				out = absorb(absorb(out, home, true), other, false)
			} else {
				out = absorb(absorb(out, other, false), home, true)
			}
			got := out.ProtoReflect()
			switch rule {
			case "join":
				n := 1
				if f.IsList() {
					n = got.Get(f).List().Len()
				} else if p := out.Preempt; p != nil {
					n = len(p.StrictContract.Container)
				}
				if n != 2 {
					t.Errorf("%s: %d of 2 left (home first: %v)", f.Name(), n, homeFirst)
				}
			case "home":
				// If only the other member sends something, none of it is passed on.
				only := absorb(&yarnpb.AllocateResponseProto{}, home, true)
				if !only.ProtoReflect().Has(f) || !got.Has(f) {
					t.Errorf("%s: the home's was lost", f.Name())
				}
				alone := &yarnpb.AllocateResponseProto{}
				fill(alone, f)
				if absorb(&yarnpb.AllocateResponseProto{}, alone, false).ProtoReflect().Has(f) {
					t.Errorf("%s: a UAM's was told", f.Name())
				}
			}
		}
	}
}

func fill(m *yarnpb.AllocateResponseProto, f protoreflect.FieldDescriptor) {
	r := m.ProtoReflect()
	switch {
	case f.Name() == "preempt":
		m.Preempt = &yarnpb.PreemptionMessageProto{
			StrictContract: &yarnpb.StrictPreemptionContractProto{Container: []*yarnpb.PreemptionContainerProto{{}}},
		}
	case f.IsList():
		l := r.Mutable(f).List()
		l.Append(l.NewElement())
	case f.Kind() == protoreflect.MessageKind:
		r.Mutable(f)
	case f.Kind() == protoreflect.EnumKind:
		r.Set(f, protoreflect.ValueOfEnum(1))
	default:
		r.Set(f, protoreflect.ValueOfInt32(1))
	}
}

func TestHeadroomIsSummedTypeByType(t *testing.T) {
	info := func(name, units string, v int64) *yarnpb.ResourceInformationProto {
		return &yarnpb.ResourceInformationProto{
			Key:   proto.String(name),
			Units: proto.String(units),
			Value: proto.Int64(v),
		}
	}
	a := &link{state: linkUp, report: report{limit: &yarnpb.ResourceProto{
		Memory:       proto.Int64(1024),
		VirtualCores: proto.Int32(3),
		ResourceValueMap: []*yarnpb.ResourceInformationProto{
			info("memory-mb", "Mi", 1024),
			info("yarn.io/gpu", "", 1),
		},
	}, nodes: proto.Int32(5)}}
	b := &link{state: linkUp, report: report{limit: &yarnpb.ResourceProto{
		Memory:       proto.Int64(2048),
		VirtualCores: proto.Int32(1),
		ResourceValueMap: []*yarnpb.ResourceInformationProto{
			info("memory-mb", "Gi", 2),
			info("yarn.io/fpga", "", 7),
		},
	}, nodes: proto.Int32(6),
		enhanced: &yarnpb.EnhancedHeadroomProto{TotalPendingCount: proto.Int32(4)}}}
	gone := &link{state: linkUp, standing: standing{closed: true}, report: report{limit: gigabytes(100), nodes: proto.Int32(100)}}
	out := &yarnpb.AllocateResponseProto{}
	total(out, []*link{a, b, gone})
	want := &yarnpb.ResourceProto{
		Memory:       proto.Int64(3072),
		VirtualCores: proto.Int32(4),
		ResourceValueMap: []*yarnpb.ResourceInformationProto{
			info("memory-mb", "Mi", 3072),
			info("yarn.io/gpu", "", 1),
			info("yarn.io/fpga", "", 7),
		},
	}
	if !proto.Equal(out.Limit, want) || out.GetNumClusterNodes() != 11 ||
		out.EnhancedHeadroom.GetTotalPendingCount() != 4 {
		t.Errorf("got %v", out)
	}
	if a.limit.GetMemory() != 1024 || a.limit.ResourceValueMap[0].GetValue() != 1024 {
		t.Errorf("the member's own number was changed: %v", a.limit)
	}
}

// The sum of the members' numbers may exceed the protocol's range.
func TestTotalsAreClampedToProtocolRange(t *testing.T) {
	var members []*link
	for range 2 {
		members = append(members, &link{state: linkUp, report: report{
			nodes:    proto.Int32(math.MaxInt32),
			limit:    &yarnpb.ResourceProto{Memory: proto.Int64(math.MaxInt64), VirtualCores: proto.Int32(math.MinInt32)},
			enhanced: &yarnpb.EnhancedHeadroomProto{TotalPendingCount: proto.Int32(math.MaxInt32), TotalActiveCores: proto.Int32(math.MinInt32)},
		}})
	}
	out := &yarnpb.AllocateResponseProto{}
	total(out, members)
	if h := out.EnhancedHeadroom; out.GetNumClusterNodes() != math.MaxInt32 || h.GetTotalPendingCount() != math.MaxInt32 ||
		h.GetTotalActiveCores() != math.MinInt32 {
		t.Errorf("%d nodes, %v", out.GetNumClusterNodes(), h)
	}
	if l := out.Limit; l.GetMemory() != math.MaxInt64 || l.GetVirtualCores() != math.MinInt32 {
		t.Errorf("headroom %v", l)
	}
}

func TestRecordsSurviveTheirStoredForm(t *testing.T) {
	r := Record{
		Attempt:  creel.AttemptID{Application: app, Attempt: 3},
		Home:     "sc-a",
		Queue:    "root.a",
		User:     "ann",
		Ending:   true,
		Register: &yarnpb.RegisterApplicationMasterRequestProto{Host: proto.String("h")},
		Answer:   &yarnpb.RegisterApplicationMasterResponseProto{Queue: proto.String("root.a")},
		UAMs: []UAM{
			{Member: "sc-b"},
			{
				Member:  "sc-c",
				Attempt: creel.AttemptID{Application: app, Attempt: 1},
				Token: &yarnpb.TokenProto{
					Identifier: []byte{1},
					Password:   []byte{2},
					Kind:       proto.String("k"),
					Service:    proto.String(""),
				},
			},
		},
	}
	r.Answer.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, 1})
	b, err := r.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var back Record
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if back.Attempt != r.Attempt || back.Home != r.Home || !back.Ending || len(back.UAMs) != 2 ||
		back.UAMs[1].Attempt != r.UAMs[1].Attempt ||
		!proto.Equal(back.Answer, r.Answer) ||
		!proto.Equal(back.Register, r.Register) ||
		!proto.Equal(back.UAMs[1].Token, r.UAMs[1].Token) {
		t.Errorf("%+v came back as %+v", r, back)
	}
	for _, bad := range []string{"", "{", `{"version":2}`, `{"version":1,"twins":[{"attempt":"x"}]}`, `{"version":1,"answer":"/w=="}`} {
		if err := back.UnmarshalBinary([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
