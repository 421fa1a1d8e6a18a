// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/nodelogs"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// A simulated node serves the logs of its containers at the web port that it has registered, by the same requests as a
// NodeManager. They say that no program runs.
func TestNodeServesTheLogsOfItsContainers(t *testing.T) {
	k := &tracker{}
	s := play(t, k)
	<-s.farm.Ready()
	if r, err := s.asAM(key, attempt, s.node).StartContainers(t.Context(), start(s.container(1, nil))); err != nil ||
		len(r.GetSucceededRequests()) != 1 {
		t.Fatalf("start: %v, %v", r, err)
	}
	id := creel.NewContainerID(attempt, 0, 1)
	s.until("it runs", func() bool { return s.status(id).GetState() == pb.ContainerStateProto_C_RUNNING })
	k.mu.Lock()
	web := "127.0.0.1:" + strconv.Itoa(int(k.registrations[0].GetHttpPort()))
	k.mu.Unlock()
	reader := nodelogs.New(nil)
	at := nodelogs.At{Web: web, Container: id.String(), User: "bob"}
	files, err := reader.Files(t.Context(), at)
	if err != nil || len(files) != 1 || files[0].Name != "stdout" {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := reader.Read(t.Context(), at, "stdout", 0)
	if err != nil || !strings.Contains(string(text), "runs no program") || !strings.Contains(string(text), "state RUNNING") ||
		!strings.Contains(string(text), "simulated run time 60 min, exit code 0") || int64(len(text)) != files[0].Size {
		t.Errorf("%d bytes listed: %q, %v", files[0].Size, text, err)
	}
	if last, err := reader.Read(t.Context(), at, "stdout", 7); err != nil || string(last) != string(text[len(text)-7:]) {
		t.Errorf("the last 7 bytes are %q, %v", last, err)
	}
	if _, err := reader.Read(t.Context(), at, "stderr", 0); !errors.Is(err, creel.ErrContainerNotFound) {
		t.Errorf("another file: %v", err)
	}
	at.Container = creel.NewContainerID(attempt, 0, 2).String()
	if _, err := reader.Files(t.Context(), at); !errors.Is(err, creel.ErrContainerNotFound) {
		t.Errorf("another container: %v", err)
	}
	at.Container = "../../node"
	if _, err := reader.Files(t.Context(), at); !errors.Is(err, creel.ErrContainerNotFound) {
		t.Errorf("no container: %v", err)
	}
}
