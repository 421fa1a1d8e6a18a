// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/audit"
)

func TestAuditLineNamesCallersLogin(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	audited(log, Caller{
		User: "ann", RealUser: "oozie", Auth: audit.Kerberos, Context: "nightly",
		Remote: netip.MustParseAddrPort("10.0.0.7:4711"),
	}, "submitApplication", "application_1_0001", nil)
	audited(log, Caller{}, "refreshQueues", "", errors.New("no file")) // the daemon's own action
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"level=INFO msg=audit user=ann real_user=oozie from=10.0.0.7:4711 operation=submitApplication " +
			"target=application_1_0001 result=success auth=KERBEROS caller_context=nightly",
		`level=WARN msg=audit operation=refreshQueues result=failure error="no file"`,
	} {
		if _, text, _ := strings.Cut(lines[i], " "); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}
