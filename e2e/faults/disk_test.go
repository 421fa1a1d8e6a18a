// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// smallDisk is a directory on a file system that a test may fill.
type smallDisk struct {
	t    *testing.T
	dir  string
	fill *os.File
}

// newSmallDisk mounts a file system of this size. Without the right to mount it uses the container's /dev/shm, if that
// is small enough to be filled.
func newSmallDisk(t *testing.T, bytes int64) *smallDisk {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("creel-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
	if err == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	} else {
		const shm, most = "/dev/shm", 256 << 20
		var fs syscall.Statfs_t
		if statErr := syscall.Statfs(shm, &fs); statErr != nil || int64(fs.Blocks)*fs.Bsize > most {
			t.Fatalf("this test needs a small disk: it may not mount one (%v), and %s has more than %d bytes; "+
				"run it as root, or in a container with the usual /dev/shm", err, shm, most)
		}
		if dir, err = os.MkdirTemp(shm, "creel-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	f, err := os.Create(filepath.Join(dir, "others"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &smallDisk{t: t, dir: dir, fill: f}
}

// fillUp uses all free space.
func (d *smallDisk) fillUp() {
	for size := 1 << 20; size > 0; {
		if _, err := d.fill.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			d.t.Fatal(err)
		}
	}
}

// free releases all of that space.
func (d *smallDisk) free() {
	if err := d.fill.Truncate(0); err != nil {
		d.t.Error(err)
	}
	if _, err := d.fill.Seek(0, io.SeekStart); err != nil {
		d.t.Error(err)
	}
}

// page returns a page of a daemon's web port.
func page(t *testing.T, d *daemon, path string) string {
	t.Helper()
	resp, err := web.Get("http://" + d.at["web"] + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// submitTo submits to a ResourceManager itself.
func (f *federation) submitTo(d *daemon) (id string, a answer) {
	f.t.Helper()
	var doc struct {
		ID string `json:"application-id"`
	}
	call(f.t, d, http.MethodPost, "/ws/v1/cluster/apps/new-application", nil, &doc)
	through := *f
	through.router = d
	return doc.ID, through.submit(doc.ID)
}

// kill requests the end of an application from a ResourceManager.
func (f *federation) kill(d *daemon, id string) answer {
	return call(f.t, d, http.MethodPut, "/ws/v1/cluster/apps/"+id+"/state", map[string]string{"state": "KILLED"}, nil)
}

// The disk of a ResourceManager's journal becomes full while applications run. AMs still get containers and finish,
// reads succeed, and kill -9 loses nothing. It rejects new applications with the reason, and routers send it none. When
// the reserve is used up too, changes that need a record wait. It recovers by itself when there is free space again.
func TestFullDiskMakesResourceManagerReadOnly(t *testing.T) {
	operatorsSee(t)
	disk := newSmallDisk(t, 48<<20)
	server := redistest.Start(t)
	f := foundAs(t, server.URL(), layout{ofRM: func(id string) []string {
		if id == "sc-1" {
			return []string{"creel.rm.data=" + filepath.Join(disk.dir, "journal")}
		}
		return nil
	}})
	full, other := f.members[0], f.members[1]
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	var ams []*am // of applications at home on the disk that will be full
	for len(ams) < 2 {
		id := f.newID()
		f.submitSoon(id)
		if f.homes(id)[0] != full.id {
			continue
		}
		m := f.am(client, id)
		if err := m.register(); err != nil {
			t.Fatal(err)
		}
		m.more(f, 4)
		ams = append(ams, m)
	}
	var toKill []string // each end is a record
	for range 120 {
		id, a := f.submitTo(full.rm)
		if a.code != http.StatusAccepted {
			t.Fatalf("with room: %+v", a)
		}
		toKill = append(toKill, id)
	}

	killed := 0
	spendUntil := func(says string) { // others use the free space, and completions are written
		for ; killed < len(toKill) && !strings.Contains(full.rm.Output(), says); killed++ {
			disk.fillUp()
			f.kill(full.rm, toKill[killed])
			time.Sleep(30 * time.Millisecond)
		}
		full.rm.WaitLine(t, says)
	}
	spendUntil("journal disk full")
	_, refused := f.submitTo(full.rm)
	if refused.code != http.StatusInsufficientStorage || !strings.Contains(refused.body, "the disk of its journal is full") {
		t.Fatalf("a submission to the full one was answered %+v", refused)
	}
	sub := &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
		ApplicationId:   pb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 1, ID: 1}),
		Queue:           proto.String("default"),
		UnmanagedAm:     proto.Bool(true),
		AmContainerSpec: &pb.ContainerLaunchContextProto{},
		Resource:        pb.FromResource(creel.NewResource(256, 1)),
	}}
	rpc := yarnrpc.NewApplicationClientProtocolClient(client, full.rm.at["client"], hrpc.Login{User: hadoop.OSUser(t)})
	var thrown *hrpc.RemoteError
	if _, err := rpc.SubmitApplication(t.Context(), sub); !errors.As(err, &thrown) ||
		thrown.Class != yarnrpc.ClassReadOnly {
		t.Errorf("by RPC a submission was answered %v, want %s, which no client repeats", err, yarnrpc.ClassReadOnly)
	}
	f.await("the router knows", func() bool {
		for _, s := range f.view().Subclusters {
			if s.ID == full.id && s.State == "draining" && strings.Contains(s.Reason, "disk of its journal is full") {
				return true
			}
		}
		return false
	})
	for range 10 {
		id := f.newID()
		if a := f.submit(id); a.code != http.StatusAccepted {
			t.Errorf("a submission through the router was answered %+v", a)
		}
		if homes := f.homes(id); len(homes) != 1 || homes[0] != other.id {
			t.Errorf("%s has the homes %v", id, homes)
		}
	}
	ready := page(t, full.rm, "/readyz?verbose")
	if !strings.Contains(ready, "[-] journal: its disk is full") {
		t.Errorf("readyz says %s", ready)
	}
	if m := page(t, full.rm, "/metrics"); !strings.Contains(m, "\ncreel_rm_journal_full 1\n") {
		t.Error("the metric does not say it")
	}
	for _, m := range ams {
		m.more(f, 4)
	}
	ams[0].finish(f)
	f.await("the first application has finished", func() bool { return f.state(full.rm, ams[0].app) == "FINISHED" })

	full.rm.KillAlone()
	full.rm.again(t) // on the full disk
	f.await("its nodes are back", func() bool { return f.nodes(full.rm) == 2 })
	if s := f.state(full.rm, ams[0].app); s != "FINISHED" {
		t.Errorf("what finished on a full disk is %q after kill -9", s)
	}
	ams[1].more(f, 2)

	spendUntil("its reserve used up")
	if s := f.state(full.rm, ams[1].app); s != "RUNNING" {
		t.Errorf("without a reserve it says that the second application is %q", s)
	}
	ams[1].more(f, 2)

	disk.free()
	full.rm.WaitLine(t, "journal disk has space again")
	ams[1].finish(f)
	f.await("the second application has finished", func() bool { return f.state(full.rm, ams[1].app) == "FINISHED" })
	for _, id := range toKill[:killed] {
		f.await(id+" was killed", func() bool { return f.state(full.rm, id) == "KILLED" })
	}
	if _, a := f.submitTo(full.rm); a.code != http.StatusAccepted {
		t.Errorf("with room again a submission was answered %+v", a)
	}
	f.await("the router knows that too", func() bool { _, ok := f.active()[full.id]; return ok })
	if full.rm.Ended() {
		t.Error("the ResourceManager ended")
	}
}

// A ResourceManager starts on an empty directory although the store has applications of it: the disk is not mounted. It
// serves no requests and reports a remedy. With the right directory it resumes. With --accept-empty it starts with an
// empty journal.
func TestAnEmptyJournalIsNotServedUnasked(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t)
	data := filepath.Join(t.TempDir(), "journal")
	f := foundAs(t, server.URL(), layout{ofRM: func(id string) []string {
		return []string{"creel.rm.data=" + data + "-" + id} // first starts are not refused
	}})
	m := f.members[0]
	dir := data + "-" + m.id
	id := f.newID()
	for f.submitSoon(id); f.homes(id)[0] != m.id; f.submitSoon(id) {
		id = f.newID()
	}
	m.rm.KillAlone()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	m.rm.keepPorts()
	m.rm.run(t)
	select {
	case <-m.rm.Done():
	case <-time.After(process.Guard):
		t.Fatalf("it runs on an empty journal\n%s", m.rm.Tail(20))
	}
	awaitDown(t, m.rm.Name)
	for _, want := range []string{"its journal " + dir + " is empty", "living applications of sc-1", "--accept-empty"} {
		if out := m.rm.Output(); !strings.Contains(out, want) {
			t.Errorf("it does not say %q but\n%s", want, out)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	m.rm.again(t)
	if s := f.state(m.rm, id); s != "ACCEPTED" && s != "RUNNING" {
		t.Errorf("with its journal the application is %q", s)
	}
	m.rm.KillAlone()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	m.rm.again(t, "creel.membership.accept-empty=true")
	m.rm.WaitLine(t, "the journal is empty, and was accepted")
	if s := f.state(m.rm, id); s != "" {
		t.Errorf("without its journal the application is %q", s)
	}
}
