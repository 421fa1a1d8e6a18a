// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/yarnpb"
)

// passesOn has an answer read as Passed and written again, which must be the same answer, and
// its decoded fields must be those that the whole decoder reads.
func passesOn(t interface{ Fatalf(string, ...any) }, wire []byte) {
	want := new(yarnpb.AllocateResponseProto)
	if err := want.UnmarshalVT(wire); err != nil {
		t.Fatalf("the whole decoder: %v", err)
	}
	kept := bytes.Clone(wire)
	m := new(yarnpb.ForwardedAllocate)
	if err := m.UnmarshalVT(kept); err != nil {
		t.Fatalf("Passed: %v", err)
	}
	clear(kept)
	written, err := m.MarshalVT()
	if err != nil {
		t.Fatalf("writing: %v", err)
	}
	got := new(yarnpb.AllocateResponseProto)
	if err := got.UnmarshalVT(written); err != nil || !proto.Equal(got, want) {
		t.Fatalf("passed on\n%v\nwant\n%v (%v)", got, want, err)
	}
	for i, c := range m.AllocatedContainers {
		w := want.AllocatedContainers[i]
		if !proto.Equal(c.Id, w.Id) || !proto.Equal(c.NodeId, w.NodeId) || !proto.Equal(c.Priority, w.Priority) ||
			c.GetExecutionType() != w.GetExecutionType() ||
			c.GetAllocationRequestId() != w.GetAllocationRequestId() || c.GetVersion() != w.GetVersion() {
			t.Fatalf("container %d is read as\n%v\nwant\n%v", i, c, w)
		}
	}
	for i, s := range m.CompletedContainerStatuses {
		w := want.CompletedContainerStatuses[i]
		if !proto.Equal(s.ContainerId, w.ContainerId) || s.GetState() != w.GetState() ||
			s.GetExitStatus() != w.GetExitStatus() || s.GetExecutionType() != w.GetExecutionType() {
			t.Fatalf("status %d is read as\n%v\nwant\n%v", i, s, w)
		}
	}
}

// encodedFields draws fields of a container, of its status or of the answer in any order, with some duplicates, some
// unknown fields, or none at all.
func encodedFields(t *rapid.T, label string, of [][]byte) (b []byte) {
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(of)), 0, 2*len(of)).Draw(t, label) {
		if i < len(of) {
			b = append(b, of[i]...)
			continue
		}
		unknown := protowire.Number(rapid.IntRange(900, 905).Draw(t, label+" unknown"))
		b = protowire.AppendTag(b, unknown, protowire.BytesType)
		b = protowire.AppendBytes(b, rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, label+" bytes"))
	}
	return b
}

// fieldsOf cuts a message that has each of its fields apart.
func fieldsOf(t testing.TB, m vt) (fields [][]byte) {
	t.Helper()
	fill(m.ProtoReflect(), rand.New(rand.NewPCG(1, 2)), 3)
	b, err := m.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		_, _, _, n := yarnpb.Cut(b)
		fields, b = append(fields, b[:n]), b[n:]
	}
	return fields
}

// An AM receives a ResourceManager's complete answer, in any field order and with fields of a later Hadoop.
func TestAPassedAnswerIsTheAnswer(t *testing.T) {
	container := fieldsOf(t, new(yarnpb.ContainerProto))
	status := fieldsOf(t, new(yarnpb.ContainerStatusProto))
	answer := fieldsOf(t, new(yarnpb.AllocateResponseProto))
	propertytest.Check(t, func(t *rapid.T) {
		var wire []byte
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			switch rapid.IntRange(0, 2).Draw(t, "part") {
			case 0:
				wire = protowire.AppendTag(wire, 3, protowire.BytesType)
				wire = protowire.AppendBytes(wire, encodedFields(t, "container", container))
			case 1:
				wire = protowire.AppendTag(wire, 4, protowire.BytesType)
				wire = protowire.AppendBytes(wire, encodedFields(t, "status", status))
			default:
				wire = append(wire, encodedFields(t, "answer", answer)...)
			}
		}
		passesOn(t, wire)
	})
}

func TestForwardedAnswerTakesFewAllocations(t *testing.T) {
	wire, err := granted(t).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	passesOn(t, wire)
	m := new(yarnpb.ForwardedAllocate)
	if err := m.UnmarshalVT(wire); err != nil {
		t.Fatal(err)
	}
	if c := m.AllocatedContainers[0]; c.ContainerToken != nil || c.Resource != nil {
		t.Errorf("what only the AM reads was decoded: %v", c)
	}
	if n := testing.AllocsPerRun(20, func() { _ = new(yarnpb.ForwardedAllocate).UnmarshalVT(wire) }); n > 40 {
		t.Errorf("%v allocations", n)
	}
	for len(wire) <= 64<<10 {
		wire = append(wire, wire...)
	}
	passesOn(t, wire)
}

// FuzzPassed checks that an answer that both codecs can read is forwarded unchanged, and that a broken one is
// rejected or forwarded, never with a panic.
func FuzzPassed(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, r := range recordings(f, "am") {
		if r.name == "AllocateResponseProto" {
			f.Add(r.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		vt, stock := new(yarnpb.AllocateResponseProto), new(yarnpb.AllocateResponseProto)
		if vt.UnmarshalVT(b) != nil || proto.Unmarshal(b, stock) != nil {
			_ = new(yarnpb.ForwardedAllocate).UnmarshalVT(b)
			return
		}
		if _, err := vt.MarshalVT(); err != nil {
			return // a required field is absent
		}
		passesOn(t, b)
	})
}

// BenchmarkPassed reads an answer of ten containers and ten ends and writes it for the AM,
// whole and as the proxy does.
func BenchmarkPassed(b *testing.B) {
	m := granted(b)
	for _, c := range m.AllocatedContainers {
		m.CompletedContainerStatuses = append(m.CompletedContainerStatuses, &yarnpb.ContainerStatusProto{
			ContainerId: c.Id, State: yarnpb.ContainerStateProto_C_COMPLETE.Enum(), ExitStatus: proto.Int32(-105),
			Diagnostics: proto.String("Container released by application"), Capability: c.Resource,
		})
	}
	wire, err := m.MarshalVT()
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, len(wire))
	type answer interface {
		vt
		MarshalToSizedBufferVT([]byte) (int, error)
	}
	for _, way := range []struct {
		name string
		make func() answer
	}{
		{"whole", func() answer { return new(yarnpb.AllocateResponseProto) }},
		{"passed", func() answer { return new(yarnpb.ForwardedAllocate) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := way.make()
				if err := m.UnmarshalVT(wire); err != nil {
					b.Fatal(err)
				}
				if _, err := m.MarshalToSizedBufferVT(buf[:m.SizeVT()]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
