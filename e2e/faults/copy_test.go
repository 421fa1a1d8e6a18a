// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// second starts another ResourceManager with a member's settings, on other ports and with another data directory.
func (f *federation) second(m *member, name, data string, more ...string) *daemon {
	f.t.Helper()
	settings := slices.DeleteFunc(slices.Clone(m.rm.settings), func(s string) bool {
		return strings.HasPrefix(s, "creel.rm.data=")
	})
	for i, s := range settings {
		if key, _, _ := strings.Cut(s, "="); ports[key] != "" {
			settings[i] = key + "=127.0.0.1:0"
		}
	}
	return f.spawn(name, "rm", slices.Concat(settings, []string{"creel.rm.data=" + data}, more)...)
}

// wrote reports whether a daemon wrote its ready file.
func (d *daemon) wrote() bool {
	_, err := os.Stat(d.ready())
	return err == nil
}

// A member's data directory is copied while the member runs, and a ResourceManager starts on the copy. It has the
// member's epoch and would take its name. So it ends, reports a remedy, and was never ready. With --take-over it
// becomes the member.
func TestACopiedDataDirectoryIsRefused(t *testing.T) {
	operatorsSee(t)
	dir := t.TempDir()
	f := foundAs(t, redistest.Start(t).URL(), layout{ofRM: func(id string) []string {
		return []string{"creel.rm.data=" + filepath.Join(dir, id)}
	}})
	m := f.members[0]
	epoch := f.active()[m.id]
	copied := filepath.Join(dir, "copy")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(dir, m.id))); err != nil {
		t.Fatal(err)
	}
	second := f.second(m, "copy", copied)
	select {
	case <-second.Done():
	case <-time.After(process.Guard):
		t.Fatalf("the copy runs\n%s", second.Tail(20))
	}
	if second.wrote() {
		t.Error("the copy wrote its ready file")
	}
	for _, want := range []string{"another process does, with the same data", "--take-over", m.rm.at["client"]} {
		if out := second.Output(); !strings.Contains(out, want) {
			t.Errorf("the copy does not say %q but\n%s", want, out)
		}
	}
	f.await("the refusal is an event", func() bool { return f.refused(m.id, "the same data") })
	if now := f.active()[m.id]; now != epoch {
		t.Errorf("%s has epoch %d after the copy's start, had %d", m.id, now, epoch)
	}
	m.rm.KillAlone()
	m.rm.again(t) // a successor of the process that ended is no copy
	f.await("the member has its next epoch", func() bool { return f.active()[m.id] > epoch })
	epoch = f.active()[m.id]

	if err := os.RemoveAll(copied); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(dir, m.id))); err != nil {
		t.Fatal(err)
	}
	f.second(m, "taker", copied, "creel.membership.take-over=true").awaitReady(t)
	f.await("the copy is the member", func() bool { return f.active()[m.id] > epoch })
}

// A second ResourceManager, with its own data, has a living member's name. It serves no requests and writes no ready
// file until the first has ended.
func TestADuplicateMemberIsNotReady(t *testing.T) {
	operatorsSee(t)
	dir := t.TempDir()
	f := foundAs(t, redistest.Start(t).URL(), layout{ofRM: func(id string) []string {
		return []string{"creel.rm.data=" + filepath.Join(dir, id)}
	}})
	m := f.members[0]
	second := f.second(m, "duplicate", filepath.Join(dir, "other"))
	second.WaitLine(t, "no heartbeat")
	if second.wrote() {
		t.Error("the duplicate wrote its ready file")
	}
	f.await("the refusal is an event", func() bool { return f.refused(m.id, m.id) })
	m.rm.KillAlone()
	second.awaitReady(t)
}

// refused reports whether an event has a refusal of a member's name, with this text.
func (f *federation) refused(id, text string) bool {
	var doc struct {
		Events []statestore.Event `json:"events"`
	}
	call(f.t, f.router, http.MethodGet, "/api/v1/events", nil, &doc)
	return slices.ContainsFunc(doc.Events, func(e statestore.Event) bool {
		return e.Kind == statestore.EventMember && e.Subject == id && e.After == "refused" &&
			e.Result == statestore.EventFailed && strings.Contains(e.Detail, text)
	})
}
