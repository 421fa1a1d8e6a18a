// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// everyMessage calls f with each message type of this package.
func everyMessage(f func(protoreflect.MessageType)) (n int) {
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if strings.HasPrefix(string(mt.Descriptor().FullName()), "creel.yarn.") {
			f(mt)
			n++
		}
		return true
	})
	return n
}

// fill sets every field of m, and of the messages below it to a depth, and adds two unknown fields to each: one with
// a small number (inside the known ones, from a later Hadoop) and one with a large one.
func fill(m protoreflect.Message, rnd *rand.Rand, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Message() != nil && depth == 0 && fd.Cardinality() != protoreflect.Required {
			continue
		}
		if !fd.IsList() {
			m.Set(fd, value(m.NewField(fd), fd, rnd, depth))
			continue
		}
		list := m.NewField(fd).List()
		for range 1 + rnd.IntN(3) {
			list.Append(value(list.NewElement(), fd, rnd, depth))
		}
		m.Set(fd, protoreflect.ValueOfList(list))
	}
	free := protowire.Number(1)
	for fields.ByNumber(free) != nil {
		free++
	}
	unknown := protowire.AppendTag(nil, free, protowire.BytesType)
	unknown = protowire.AppendBytes(unknown, []byte("later Hadoop"))
	unknown = protowire.AppendTag(unknown, 9_999, protowire.VarintType)
	unknown = protowire.AppendVarint(unknown, rnd.Uint64())
	m.SetUnknown(unknown)
}

func value(zero protoreflect.Value, fd protoreflect.FieldDescriptor, rnd *rand.Rand, depth int) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		fill(zero.Message(), rnd, max(depth-1, 0))
		return zero
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(rnd.IntN(values.Len())).Number())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rnd.IntN(2) == 0)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32([]int32{-1, 0, 1, math.MinInt32, math.MaxInt32, 300}[rnd.IntN(6)])
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64([]int64{-1, 0, 1, math.MinInt64, math.MaxInt64, 1795254163125}[rnd.IntN(6)])
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32([]uint32{0, 1, math.MaxUint32}[rnd.IntN(3)])
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64([]uint64{0, 1, math.MaxUint64}[rnd.IntN(3)])
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32([]float32{0, 0.5, -1, math.MaxFloat32}[rnd.IntN(4)])
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"", "root.default", "zürich", strings.Repeat("x", 200)}[rnd.IntN(4)])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([][]byte{{}, {0}, bytes.Repeat([]byte{0xff}, 130)}[rnd.IntN(3)])
	}
	panic("a kind no message had: " + fd.Kind().String())
}

// For every message, with every field set and with fields unknown to us at every level: both codecs write the same
// bytes, each reads the other's, and nothing is lost either way.
func TestBothCodecsAgreeOnEveryMessage(t *testing.T) {
	var arena yarnpb.Arena // one for all, as a handler has it
	n := everyMessage(func(mt protoreflect.MessageType) {
		name := mt.Descriptor().Name()
		rnd := rand.New(rand.NewPCG(1, uint64(len(name))))
		kept := mt.New().Interface().(vt)
		for range 3 {
			m := mt.New().Interface().(vt)
			fill(m.ProtoReflect(), rnd, 3)
			stock, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			fast, err := m.MarshalVT()
			if err != nil {
				t.Fatalf("%s: vt: %v", name, err)
			}
			if !bytes.Equal(stock, fast) {
				t.Fatalf("%s: stock writes\n% x\nvt writes\n% x", name, stock, fast)
			}
			if m.SizeVT() != len(fast) {
				t.Fatalf("%s: SizeVT says %d for %d bytes", name, m.SizeVT(), len(fast))
			}
			read := mt.New().Interface().(vt)
			if err := read.UnmarshalVT(stock); err != nil {
				t.Fatalf("%s: vt: %v", name, err)
			}
			if !proto.Equal(read, m) {
				t.Fatalf("%s: vt read\n%v\nwant\n%v", name, read, m)
			}
			if err := arena.Unmarshal(fast, kept.(yarnpb.ArenaMessage)); err != nil || !proto.Equal(kept, m) {
				t.Fatalf("%s: the arena read\n%v\nwant\n%v (%v)", name, kept, m, err)
			}
			if out, err := kept.MarshalVT(); err != nil || !bytes.Equal(out, fast) {
				t.Fatalf("%s: from the arena is written\n% x\nwant\n% x (%v)", name, out, fast, err)
			}
			again := mt.New().Interface()
			if err := proto.Unmarshal(fast, again); err != nil || !proto.Equal(again, m) {
				t.Fatalf("%s: stock read\n%v\nwant\n%v (%v)", name, again, m, err)
			}
		}
	})
	if n < 272 {
		t.Fatalf("only %d messages are registered", n)
	}
}

// A message cut anywhere is refused or read by both codecs alike, and never with a panic.
func TestTruncatedMessages(t *testing.T) {
	for _, r := range recordings(t, "am") {
		for cut := range len(r.bytes) {
			stock, fast := newMessage(t, r.name), newMessage(t, r.name)
			e1, e2 := proto.Unmarshal(r.bytes[:cut], stock), fast.UnmarshalVT(r.bytes[:cut])
			if (e1 == nil) != (e2 == nil) {
				t.Fatalf("%s cut at %d: stock says %v, vt says %v", r.name, cut, e1, e2)
			}
			if e1 == nil && !proto.Equal(stock, fast) {
				t.Fatalf("%s cut at %d: stock read %v, vt read %v", r.name, cut, stock, fast)
			}
		}
	}
}

// Messages nested deeper than Java reads are refused, not followed until the stack ends.
func TestDeepNesting(t *testing.T) {
	nest := func(depth int) []byte {
		b := []byte{}
		for range depth {
			b = protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), b)
		}
		return b
	}
	for depth, ok := range map[int]bool{99: true, 100: false, 5_000: false} {
		b := nest(depth)
		if err := new(yarnpb.SerializedExceptionProto).UnmarshalVT(b); (err == nil) != ok {
			t.Errorf("%d causes in each other: %v", depth, err)
		}
	}
	// Depth counts nesting, not how many messages there are.
	wide := new(yarnpb.AllocateRequestProto)
	for i := range int64(500) {
		wide.Release = append(wide.Release, yarnpb.FromContainerID(creel.ContainerID{ID: i}))
	}
	b, err := wide.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	read := new(yarnpb.AllocateRequestProto)
	if err := read.UnmarshalVT(b); err != nil || !proto.Equal(read, wide) {
		t.Errorf("500 releases: %v", err)
	}
}

// An arena serves message after message, large ones and bad ones between, and decoding into it again and again
// allocates next to nothing.
func TestArenaIsUsedAgain(t *testing.T) {
	var arena yarnpb.Arena
	m := new(yarnpb.AllocateResponseProto)
	for round := range 5 {
		for i, r := range recordings(t, "am") {
			if r.name != "AllocateResponseProto" {
				continue
			}
			want := new(yarnpb.AllocateResponseProto)
			if err := proto.Unmarshal(r.bytes, want); err != nil {
				t.Fatal(err)
			}
			if err := arena.Unmarshal(r.bytes, m); err != nil || !proto.Equal(m, want) {
				t.Fatalf("round %d, %d: read %v, want %v (%v)", round, i, m, want, err)
			}
			if err := arena.Unmarshal(r.bytes[:len(r.bytes)-1], m); err == nil {
				t.Fatal("half a message was read")
			}
		}
		large := granted(t)
		for len(large.AllocatedContainers) < 1000 {
			large.AllocatedContainers = append(large.AllocatedContainers, large.AllocatedContainers[0])
		}
		b, err := large.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if err := arena.Unmarshal(b, m); err != nil || !proto.Equal(m, large) {
			t.Fatalf("round %d: the large message: %v", round, err)
		}
	}
	b, err := granted(t).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(20, func() {
		if err := arena.Unmarshal(b, m); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 20 {
		t.Errorf("an answer of ten containers takes %v allocations", allocs)
	}
}

// A message from the plain decoder shares nothing with its input.
func TestPlainDecodingCopies(t *testing.T) {
	b, err := granted(t).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	m := new(yarnpb.AllocateResponseProto)
	if err := m.UnmarshalVT(b); err != nil {
		t.Fatal(err)
	}
	clear(b)
	if !proto.Equal(m, granted(t)) {
		t.Error("the message changed with the buffer it was read from")
	}
}

// Required fields are asked for by both codecs, writing and reading.
func TestRequiredFields(t *testing.T) {
	half := &yarnpb.TokenProto{Identifier: []byte("id"), Kind: proto.String("NMToken")}
	if _, err := half.MarshalVT(); err == nil {
		t.Error("vt wrote a token without password")
	}
	b, err := proto.MarshalOptions{AllowPartial: true}.Marshal(half)
	if err != nil {
		t.Fatal(err)
	}
	if err := new(yarnpb.TokenProto).UnmarshalVT(b); err == nil {
		t.Error("vt read a token without password")
	}
}

// Field defaults are the protocol's.
func TestDefaults(t *testing.T) {
	if got := new(yarnpb.ResourceRequestProto).GetAllocationRequestId(); got != -1 {
		t.Errorf("an ask's allocation_request_id defaults to %d", got)
	}
	if got := new(yarnpb.SchedulingRequestProto).GetAllocationRequestId(); got != 0 {
		t.Errorf("a scheduling request's allocation_request_id defaults to %d", got)
	}
	if c := new(yarnpb.ApplicationSubmissionContextProto); c.GetQueue() != "default" || c.GetApplicationType() != "YARN" ||
		c.GetApplicationName() != "N/A" || !c.GetCancelTokensWhenComplete() || c.GetAttemptFailuresValidityInterval() != -1 {
		t.Errorf("an empty submission is %q %q %q", c.GetQueue(), c.GetApplicationType(), c.GetApplicationName())
	}
	if got := new(yarnpb.ContainerStatusProto).GetExitStatus(); got != -1000 {
		t.Errorf("exit status defaults to %d", got)
	}
	if got := new(yarnpb.ContainerTokenIdentifierProto); got.GetExecutionType() != yarnpb.ExecutionTypeProto_GUARANTEED || got.GetMasterKeyId() != -1 {
		t.Errorf("container token defaults: %v %d", got.GetExecutionType(), got.GetMasterKeyId())
	}
	if got := new(yarnpb.RefreshNodesRequestProto).GetDecommissionType(); got != yarnpb.DecommissionTypeProto_DECOMMISSION_NORMAL {
		t.Errorf("decommission type defaults to %v", got)
	}
}

// granted is an allocate answer of ten containers with a ResourceManager's typical content.
func granted(t testing.TB) *yarnpb.AllocateResponseProto {
	var answer *yarnpb.AllocateResponseProto
	for _, r := range recordings(t, "am") {
		if r.name == "AllocateResponseProto" {
			m := new(yarnpb.AllocateResponseProto)
			if err := m.UnmarshalVT(r.bytes); err != nil {
				t.Fatal(err)
			}
			if len(m.AllocatedContainers) == 1 {
				answer = m
			}
		}
	}
	if answer == nil {
		t.Fatal("no answer with a container was recorded")
	}
	for i := range 9 {
		c := answer.AllocatedContainers[0].CloneVT()
		c.Id.Id = proto.Int64(int64(i + 2))
		answer.AllocatedContainers = append(answer.AllocatedContainers, c)
	}
	return answer
}

// BenchmarkAllocateAnswer encodes and decodes an allocate answer with ten containers: with the stock runtime; with
// vt, as package hrpc does at both ends of every call, into a reused buffer and by UnmarshalVT; and with vt and a
// reused arena. It prints each total as a multiple of the stock runtime's time, from the fastest of many short
// alternating turns, so that a busy machine affects all alike. The budget is half the time.
func BenchmarkAllocateAnswer(b *testing.B) {
	m := granted(b)
	wire, err := m.MarshalVT()
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, len(wire))
	var arena yarnpb.Arena
	read := new(yarnpb.AllocateResponseProto)
	codecs := []struct {
		name string
		run  func() error
	}{
		{"stock", func() error {
			out, err := proto.Marshal(m)
			if err != nil {
				return err
			}
			return proto.Unmarshal(out, new(yarnpb.AllocateResponseProto))
		}},
		{"vt", func() error {
			n, err := m.MarshalToSizedBufferVT(buf[:m.SizeVT()])
			if err != nil {
				return err
			}
			return new(yarnpb.AllocateResponseProto).UnmarshalVT(buf[:n])
		}},
		{"arena", func() error {
			n, err := m.MarshalToSizedBufferVT(buf[:m.SizeVT()])
			if err != nil {
				return err
			}
			return arena.Unmarshal(buf[:n], read)
		}},
	}
	fastest := make([]float64, len(codecs))
	for range 30 {
		for i, c := range codecs {
			const turn = 200
			before := time.Now()
			for range turn {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
			if took := float64(time.Since(before).Nanoseconds()) / turn; fastest[i] == 0 || took < fastest[i] {
				fastest[i] = took
			}
		}
	}
	for i, c := range codecs {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(wire)))
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(fastest[0]/fastest[i], "times-stock-speed")
		})
	}
}
