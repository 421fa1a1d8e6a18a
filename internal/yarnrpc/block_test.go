// SPDX-License-Identifier: Apache-2.0

package yarnrpc_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func TestBlock(t *testing.T) {
	wanted := func(request []byte) int {
		t.Helper()
		var r pb.GetNewApplicationRequestProto
		if err := proto.Unmarshal(request, &r); err != nil {
			t.Fatal(err)
		}
		return yarnrpc.BlockWanted(&r)
	}
	strange := protowire.AppendBytes(protowire.AppendTag(nil, 77, protowire.BytesType), []byte("of a newer Hadoop"))
	for _, c := range []struct {
		request []byte
		want    int
	}{
		{nil, 1}, {yarnrpc.BlockRequest(0), 1}, {yarnrpc.BlockRequest(1), 1}, {yarnrpc.BlockRequest(7), 7}, {yarnrpc.BlockRequest(1 << 40), yarnrpc.MaxBlock},
		{strange, 1}, {append(bytes.Clone(strange), yarnrpc.BlockRequest(9)...), 9},
		{protowire.AppendVarint(protowire.AppendTag(nil, 15001, protowire.VarintType), 0), 1},
		{protowire.AppendVarint(protowire.AppendTag(nil, 15001, protowire.VarintType), 1<<62), yarnrpc.MaxBlock},
		{protowire.AppendVarint(protowire.AppendTag(nil, 15001, protowire.VarintType), 1<<63), 1}, // negative
		{protowire.AppendBytes(protowire.AppendTag(nil, 15001, protowire.BytesType), []byte{9}), 1},
	} {
		if got := wanted(c.request); got != c.want {
			t.Errorf("request %x wants %d ids, read as %d", c.request, c.want, got)
		}
	}

	answer := &pb.GetNewApplicationResponseProto{ApplicationId: &pb.ApplicationIdProto{Id: new(int32(5))}}
	plain, err := proto.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	yarnrpc.SetBlock(answer, 3)
	answer.ProtoReflect().SetUnknown(append(answer.ProtoReflect().GetUnknown(), strange...))
	if n := yarnrpc.TakeBlock(answer); n != 3 {
		t.Errorf("a block of 3 is read as %d", n)
	}
	if got, _ := proto.Marshal(answer); !bytes.Equal(got, append(plain, strange...)) {
		t.Errorf("what is left of the answer is %x", got)
	}
	yarnrpc.SetBlock(answer, 1)
	if n := yarnrpc.TakeBlock(answer); n != 1 {
		t.Errorf("one id is read as %d", n)
	}
}
