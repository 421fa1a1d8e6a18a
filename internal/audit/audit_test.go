// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestHadoopsForm(t *testing.T) {
	var ours, theirs bytes.Buffer
	log := slog.New(NewHadoop(slog.NewTextHandler(&ours, nil), &theirs, "resourcemanager.RMAuditLogger"))
	log.Info("serves")
	Line{
		User: "ann", RealUser: "oozie", Auth: Kerberos, Context: "nightly", From: "10.0.0.7:4711", Operation: "submitApplication",
		Target: "application_1700000000000_0001", Result: Success,
	}.Log(log.With("role", "rm"), slog.String("queue", "root.prod"))
	result, why := Of(errors.New("no\nrights\tat all"))
	Line{
		User: "eve\nUSER=root", From: "[::1]:1", ForwardedFor: "10.0.0.8", Operation: "signalToContainer",
		Target: "/containers/container_e17_1_0001_01_000002/signal", Result: result, Error: why,
	}.Log(log)
	lines := strings.Split(theirs.String(), "\n")
	for i, want := range []string{
		"INFO resourcemanager.RMAuditLogger: USER=ann\tIP=10.0.0.7\tOPERATION=submitApplication\t" +
			"TARGET=application_1700000000000_0001\tRESULT=SUCCESS\tAPPID=application_1700000000000_0001\t" +
			"CALLERCONTEXT=nightly\tQUEUENAME=root.prod\tREAL_USER=oozie\tAUTH=KERBEROS",
		"WARN resourcemanager.RMAuditLogger: USER=eve\\nUSER=root\tIP=10.0.0.8\tOPERATION=signalToContainer\t" +
			"TARGET=/containers/container_e17_1_0001_01_000002/signal\tRESULT=FAILURE\tDESCRIPTION=no\\nrights at all\t" +
			"CONTAINERID=container_e17_1_0001_01_000002",
	} {
		stamp, text, _ := strings.Cut(lines[i], " ")
		clock, text, _ := strings.Cut(text, " ")
		if text != want || !regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}$`).MatchString(stamp+" "+clock) {
			t.Errorf("%q, want %q", lines[i], want)
		}
	}
	if len(lines) != 3 || !strings.Contains(ours.String(), "serves") || strings.Contains(ours.String(), "ann") {
		t.Errorf("%d lines; other lines go on: %q", len(lines), ours.String())
	}
}

func TestLineHasKnownFields(t *testing.T) {
	var out bytes.Buffer
	Line{Operation: "refreshQueues", Result: Busy, Auth: Token, Context: "job 7"}.Log(slog.New(slog.NewTextHandler(&out, nil)))
	if _, text, _ := strings.Cut(out.String(), " "); text != "level=INFO msg=audit operation=refreshQueues result=busy auth=TOKEN caller_context=\"job 7\"\n" {
		t.Errorf("%q", text)
	}
}

// What a router tries in the name of a user without rights is expected to fail.
func TestFailuresOfTrialsAreNoWarnings(t *testing.T) {
	for user, want := range map[string]string{"ann": "level=WARN", TrialUser: "level=INFO"} {
		var out bytes.Buffer
		Line{User: user, Operation: "refreshQueues", Result: Failure}.Log(slog.New(slog.NewTextHandler(&out, nil)))
		if !strings.Contains(out.String(), want+" ") {
			t.Errorf("%s: %q", user, out.String())
		}
	}
}
