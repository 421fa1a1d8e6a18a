// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// creel runs a command at a server, with variables for its login.
func (c *cluster) creel(t *testing.T, server string, env []string, args ...string) (all string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	dir := t.TempDir()
	_, all, code = process.Run(ctx, t, process.Command{
		Name: "creel", Args: append([]string{rm.Binary(t)}, append(args, "--server", server)...), Dir: dir,
		Env: append(append(c.Environment(), "CREEL_CONTEXTS="+filepath.Join(dir, "none"), "KRB5CCNAME=", "KRB5_CLIENT_KTNAME="), env...),
	})
	return all, code
}

// creel's commands log in by the tickets of kinit or by a keytab, and report what a failed login lacks.
func TestCommandsLogInByTicket(t *testing.T) {
	c := startWeb(t, nil)
	alice, bob := c.AddPrincipal(t, "alice"), c.AddPrincipal(t, "bob")
	id := browser{c, c.Login(t, "alice", alice), filepath.Join(t.TempDir(), "cookies")}.submit(t, "")
	at := "http://" + c.Web
	for name, x := range map[string]struct {
		server, env string
		args        []string
		code        int
		want        string
	}{
		"a ticket":         {at, "KRB5CCNAME=FILE:" + c.Login(t, "bob", bob), []string{"app", "list"}, 0, id},
		"a keytab":         {at, "KRB5_CLIENT_KTNAME=" + bob, []string{"app", "list"}, 0, id},
		"without right":    {at, "KRB5_CLIENT_KTNAME=" + bob, []string{"app", "kill", id}, 4, "bob"},
		"another name":     {at, "KRB5_CLIENT_KTNAME=" + bob, []string{"app", "kill", id, "--user", c.user}, 4, "bob"},
		"no ticket":        {at, "KRB5CCNAME=/nowhere/cache", []string{"app", "list"}, 4, "/nowhere/cache does not exist; log in by kinit"},
		"no keytab":        {at, "KRB5_CLIENT_KTNAME=/nowhere/keytab", []string{"app", "list"}, 4, "keytab /nowhere/keytab does not exist"},
		"an unknown name":  {"http://127.0.0.1" + strings.TrimPrefix(c.Web, "localhost"), "KRB5_CLIENT_KTNAME=" + bob, []string{"app", "list"}, 4, "the KDC does not know the service HTTP/127.0.0.1@CREEL.TEST"},
		"another's keytab": {at, "KRB5_CLIENT_KTNAME=" + c.oldKeytab(t, "carol"), []string{"app", "list"}, 4, "the keytab is old"},
	} {
		if all, code := c.creel(t, x.server, []string{x.env}, x.args...); code != x.code || !strings.Contains(all, x.want) {
			t.Errorf("%s: code %d, want %d with %q\n%.2000s", name, code, x.code, x.want, all)
		}
	}
	if all, code := c.creel(t, at, []string{"KRB5_CLIENT_KTNAME=" + alice}, "app", "kill", id); code != 0 {
		t.Errorf("alice's kill: code %d\n%.2000s", code, all)
	}
	short := c.Login(t, "alice", alice, "-l", "2s")
	c.Await(t, "the ticket's end", func() bool {
		all, code := c.creel(t, at, []string{"KRB5CCNAME=" + short}, "app", "list")
		return code == 4 && strings.Contains(all, "has expired: log in by kinit")
	})
	// A KDC whose clock differs is the machine's own fault: the KDC's answer names the difference.
	k := c.config(t)
	k.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if _, err := keytabLogin(t, k, "alice", alice).Ticket(context.Background(), principal(t, "HTTP/localhost@"+c.Realm)); err == nil ||
		!strings.Contains(err.Error(), "ahead of the KDC's: synchronise the clocks") {
		t.Errorf("an hour ahead: %v", err)
	}
}

// oldKeytab adds a principal and returns a keytab whose keys the KDC has replaced.
func (k *KDC) oldKeytab(t *testing.T, name string) string {
	t.Helper()
	keytab := k.AddPrincipal(t, name)
	k.run(t, "kadmin.local", "-r", k.Realm, "cpw", "-randkey", name)
	return keytab
}
