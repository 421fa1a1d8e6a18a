// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/yarnpb"
)

// FuzzDecode checks that any bytes are read alike by the stock runtime, by vt and into an arena, or rejected by all,
// and that results are written alike.
func FuzzDecode(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, name := range []string{"am", "tracker", "nm-start"} {
		for _, r := range recordings(f, name) {
			switch r.name {
			case "AllocateRequestProto":
				f.Add(byte(0), r.bytes)
			case "AllocateResponseProto":
				f.Add(byte(1), r.bytes)
			case "NodeHeartbeatRequestProto":
				f.Add(byte(2), r.bytes)
			case "StartContainersRequestProto":
				f.Add(byte(3), r.bytes)
			}
		}
	}
	makers := []func() vt{
		func() vt { return new(yarnpb.AllocateRequestProto) },
		func() vt { return new(yarnpb.AllocateResponseProto) },
		func() vt { return new(yarnpb.NodeHeartbeatRequestProto) },
		func() vt { return new(yarnpb.StartContainersRequestProto) },
	}
	var arena yarnpb.Arena
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		make := makers[int(which)%len(makers)]
		fast, kept, stock := make(), make(), make()
		e1, e2 := fast.UnmarshalVT(b), arena.Unmarshal(b, kept.(yarnpb.ArenaMessage))
		e3 := proto.Unmarshal(b, stock)
		if (e1 == nil) != (e2 == nil) {
			t.Fatalf("vt says %v, the arena %v", e1, e2)
		}
		if e1 != nil || e3 != nil {
			return // the two runtimes differ in which malformed bytes they accept
		}
		w1, err1 := fast.MarshalVT()
		w2, err2 := kept.MarshalVT()
		if err1 != nil || err2 != nil || !bytes.Equal(w1, w2) {
			t.Fatalf("vt writes %x (%v), from the arena %x (%v)", w1, err1, w2, err2)
		}
		again := make()
		if err := proto.Unmarshal(w1, again); err != nil {
			t.Fatalf("stock cannot read what vt wrote: %v", err)
		}
	})
}
