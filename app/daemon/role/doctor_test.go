// SPDX-License-Identifier: Apache-2.0

package role

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster"
)

// An examination names what fails, and goes on with the rest: a member that does not answer, one that is lost, and a
// store that does not answer.
func TestExaminationNamesWhatFails(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	s := minimal(t, "creel.store.url="+server.URL())
	store, closeStore, err := OpenStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	if err := store.Register(t.Context(), subcluster.Member{
		ID: "sc-1", Version: subcluster.HadoopVersion, Lease: time.Hour,
		Addresses: subcluster.Addresses{Client: "127.0.0.1:1", Admin: "127.0.0.1:1", Web: "127.0.0.1:1", Scheduler: "127.0.0.1:1"},
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		role settings.Role
		more string
		want []string // subject, text; of a failure with an exclamation mark
	}{
		{settings.Router, "", []string{"settings: ", "store: redis://", "!member sc-1: it does not answer kills: ", "connection refused"}},
		{settings.Proxy, "", []string{"settings: ", "store: redis://", "!member sc-1: ", "connection refused"}},
		{settings.Rebalancer, "", []string{"settings: ", "it has 1 members"}},
		{settings.Rebalancer, "creel.store.url=redis://127.0.0.1:1", []string{"settings: ", "!store: "}},
		{settings.Router, "creel.store.password-file=/nosuch/file", []string{"!settings: ", "creel.store.password-file"}},
	} {
		var all strings.Builder
		defines := []string{"creel.store.url=" + server.URL()}
		if c.more != "" {
			defines = append(defines, c.more)
		}
		for _, f := range Examine(t.Context(), minimal(t, defines...), c.role) {
			if f.Failed {
				all.WriteByte('!')
			}
			all.WriteString(f.Subject + ": " + f.Text + "\n")
		}
		for _, want := range c.want {
			if !strings.Contains(all.String(), want) {
				t.Errorf("%s %s: no %q in\n%s", c.role, c.more, want, all.String())
			}
		}
		if strings.Contains(all.String(), "dial tcp") {
			t.Errorf("%s: raw text of an error\n%s", c.role, all.String())
		}
	}
}
