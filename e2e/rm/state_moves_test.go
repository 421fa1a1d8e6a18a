// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// A state moves from a journal to Redis and back by files, with its applications. A state in use is not touched, and an
// application is removed from a stopped one.
func TestStateMovesBetweenJournalAndRedis(t *testing.T) {
	redis := redistest.Start(t, "--appendonly", "yes")
	dir := t.TempDir()
	journal := filepath.Join(dir, "journal")
	inJournal := []string{"--data", journal}
	inRedis := []string{"-D", "creel.rm.state.url=" + redis.URL(), "-D", "yarn.resourcemanager.cluster-id=moved"}
	creel := func(where []string, words ...string) (out string, code int) {
		_, out, code = process.Run(context.Background(), t, process.Command{
			Name: "creel rm " + words[0], Dir: dir, Args: append(append([]string{Binary(t), "rm"}, words...), where...),
		})
		return out, code
	}
	done := func(where []string, words ...string) {
		t.Helper()
		if out, code := creel(where, words...); code != 0 {
			t.Fatalf("creel rm %v: exit code %d\n%s", words, code, out)
		}
	}
	start := func(name string, where []string) (*Creel, *stage) {
		rm := Start(t, Options{Name: name, Volatile: true, Args: where, Conf: hadoop.Conf{
			"yarn.resourcemanager.recovery.enabled": "true",
		}})
		return rm, newStage(t, rm.Process, rm.Addresses)
	}
	has := func(s *stage, app *pb.ApplicationIdProto, name string) {
		t.Helper()
		if got := s.report(app).GetName(); got != name {
			t.Errorf("%v is %q, want %q", app, got, name)
		}
	}

	first, at := start("first", append([]string{"-D", "yarn.resourcemanager.cluster-id=moved"}, inJournal...))
	one, two := at.submit("one", nil), at.submit("two", nil)
	if out, code := creel(inJournal, "export", "early"); code == 0 {
		t.Fatalf("a journal in use was exported\n%s", out)
	}
	first.Stop()
	done(inJournal, "export", "first")
	if info, err := os.Stat(filepath.Join(dir, "first")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the master keys: %v, %v", info.Mode(), err)
	}
	done(inRedis, "import", "first")
	if out, code := creel(inRedis, "import", "first"); code == 0 || !strings.Contains(out, "only an empty one") {
		t.Errorf("a state is filled twice: exit code %d\n%s", code, out)
	}

	second, at := start("second", inRedis)
	has(at, one, "one")
	has(at, two, "two")
	for _, words := range [][]string{{"export", "busy"}, {"import", "first"}, {"format", "--yes"}, {"forget", pb.ToApplicationID(one).String()}} {
		if out, code := creel(inRedis, words...); code == 0 || !strings.Contains(out, "in use by process ") {
			t.Errorf("creel rm %v beside a running ResourceManager: exit code %d\n%s", words, code, out)
		}
	}
	three := at.submit("three", nil) // it still holds its state
	second.Stop()

	done(inRedis, "forget", pb.ToApplicationID(one).String())
	done(inRedis, "export", "second")
	done(inJournal, "format", "--yes")
	done(inJournal, "import", "second")
	_, at = start("third", append([]string{"-D", "yarn.resourcemanager.cluster-id=moved"}, inJournal...))
	has(at, two, "two")
	has(at, three, "three")
	if r, err := at.user().GetApplicationReport(t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: one}); err == nil {
		t.Errorf("the removed application is reported: %v", r)
	}
}
