// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// BenchmarkEncodeAllocated makes the response that grants ten containers and reports ten completions, its tokens
// included.
func BenchmarkEncodeAllocated(b *testing.B) {
	s, err := server.New(server.Config{ClusterID: "test", Machine: rm.Defaults()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	app := creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: 1}
	attempt := creel.AttemptID{Application: app, Attempt: 1}
	who, err := token.ParseAMRM(s.AMRMToken(attempt).Identifier)
	if err != nil {
		b.Fatal(err)
	}
	place, shape := &rm.Place{
		Node:        creel.NodeID{Host: "127.1.0.1", Port: 8041},
		HTTPAddress: "127.1.0.1:8042",
	}, &amounts.Shape{
		Resource: creel.NewResource(128, 1),
	}
	var a codec.AllocateAnswer
	for i := range 10 {
		id := creel.ContainerID{Attempt: who.Attempt, ID: int64(i)}
		a.Granted = append(a.Granted, rm.Grant{ID: id, Place: place, Shape: shape, Priority: 1})
		a.Completed = append(a.Completed, rm.Completion{ID: id, Shape: shape, Diagnostics: "released"})
	}
	buf := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		m := encodeAllocated(s, who, &a)
		n := m.SizeVT()
		if _, err := m.MarshalToSizedBufferVT(buf[:n]); err != nil {
			b.Fatal(err)
		}
	}
}
