// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// BenchmarkAnswer makes the answer that grants ten containers and tells of the
// end of ten, its tokens included.
func BenchmarkAnswer(b *testing.B) {
	d, err := New(Config{
		Client:            "127.0.0.1:0",
		Scheduler:         "127.0.0.1:0",
		Tracker:           "127.0.0.1:0",
		Admin:             "127.0.0.1:0",
		ClusterID:         "test",
		Machine:           rm.Defaults(),
		HeartbeatInterval: time.Second,
		Groups:            func(user string) []string { return []string{user} },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	app := creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: 1}
	who := token.AMRM{
		Attempt: creel.AttemptID{Application: app, Attempt: 1},
		KeyID:   d.secrets.keys.Load().amrmNewest.ID,
	}
	place, shape := &rm.Place{
		Node:        creel.NodeID{Host: "127.1.0.1", Port: 8041},
		HTTPAddress: "127.1.0.1:8042",
	}, &amounts.Shape{
		Resource: creel.NewResource(128, 1),
	}
	var a rm.Answer
	for i := range 10 {
		id := creel.ContainerID{Attempt: who.Attempt, ID: int64(i)}
		a.Granted = append(a.Granted, rm.Grant{ID: id, Place: place, Shape: shape, Priority: 1})
		a.Completed = append(a.Completed, rm.Completed{ID: id, Shape: shape, Diagnostics: "released"})
	}
	buf := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		m := d.encodeAnswer(who, &a, nil, time.Time{})
		n := m.SizeVT()
		if _, err := m.MarshalToSizedBufferVT(buf[:n]); err != nil {
			b.Fatal(err)
		}
	}
}
