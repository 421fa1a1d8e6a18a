// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	routerserver "github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/rest"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/go-chi/chi/v5"
)

// breakDisk has every write to the journal in dir fail from now on.
func breakDisk(t *testing.T, dir string) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[0])
	defer syscall.Close(pipe[1])
	broken := 0
	for _, fd := range fds {
		at, err := os.Readlink(fd)
		if err != nil || filepath.Dir(at) != dir || !strings.HasSuffix(at, ".journal") {
			continue
		}
		n, err := strconv.Atoi(filepath.Base(fd))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Dup3(pipe[1], n, syscall.O_CLOEXEC); err != nil { // a pipe has no place to write at
			t.Fatal(err)
		}
		broken++
	}
	if broken == 0 {
		t.Fatalf("no journal is open in %s", dir)
	}
}

// The disk fails while a submission by REST waits for it. Its record may be in the
// journal, so the answer must not say that the submission was refused: a router would
// take the application to another member, and the next start would run it here too.
func TestASubmissionWithoutItsRecordIsUnclear(t *testing.T) {
	dir := t.TempDir()
	m := rm.Defaults()
	m.MinAllocation, m.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(8192, 8)
	conf, err := queueconf.ReadCapacity([]queueconf.Property{
		{Name: "yarn.scheduler.capacity.root.queues", Value: "default"},
		{Name: "yarn.scheduler.capacity.root.default.capacity", Value: "100"},
	}, queueconf.Options{MaxAllocation: m.MaxAllocation})
	if err != nil {
		t.Fatal(err)
	}
	m.Queues = conf.Queues
	s, err := server.New(server.Config{ClusterID: "test", Machine: m, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	mux := chi.NewRouter()
	rest.New(s, rest.Config{}).Mount(mux)
	web := httptest.NewServer(mux)
	defer web.Close()
	pool := remote.NewPool(remote.Config{})
	defer pool.Close()
	member := pool.Member(&subcluster.Status{Member: subcluster.Member{
		ID: "sc-1", Addresses: subcluster.Addresses{Web: web.Listener.Addr().String()},
	}})
	submit := func(id string) error {
		_, _, err := member.Web(t.Context(), remote.Write, http.MethodPost, base+"/apps", "alice",
			http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
			[]byte(`{"application-id":"`+id+`","unmanaged-AM":true,"queue":"default","am-container-spec":{}}`))
		return err
	}
	// Nothing else is written meanwhile: a failure of another record would end the ResourceManager first.
	breakDisk(t, dir)
	err = submit("application_1_0002")
	if verdict := routerserver.VerdictOf(err); verdict != router.Unclear {
		t.Errorf("a submission whose record failed is read as %v: %v", verdict, err)
	}
	var answered *remote.StatusError
	if !errors.As(err, &answered) || answered.Code != http.StatusInternalServerError ||
		!strings.Contains(answered.Words(), "may have accepted") || !strings.Contains(answered.Words(), "repeat") {
		t.Errorf("the answer is %v, want a 500 that says what to do", err)
	}
	if err := <-ended; err == nil {
		t.Error("the ResourceManager goes on without its journal")
	}
	// What comes now has not begun: it may go elsewhere.
	if verdict := routerserver.VerdictOf(submit("application_1_0003")); verdict != router.Refused {
		t.Errorf("a submission to a ResourceManager that has ended is read as %v, want refused", verdict)
	}
}
