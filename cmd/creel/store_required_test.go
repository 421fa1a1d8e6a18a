// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/settings"
)

func TestDaemonWithoutStoreRefuses(t *testing.T) {
	t.Setenv("CREEL_STORE", "")
	t.Setenv("HADOOP_CONF_DIR", "")
	for _, line := range []string{"router", "proxy", "rebalancer", "agent --subcluster sc-1"} {
		code, out := ends(t, line)
		if code != exitUsage || !strings.Contains(out, "no state store is named") || !strings.Contains(out, "--store memory") {
			t.Errorf("creel %s: %d %s", line, code, out)
		}
		role, _, _ := strings.Cut(line, " ")
		if code, out := ends(t, "config check --role "+role); code != exitUsage ||
			!strings.Contains(out, "no state store is named") {
			t.Errorf("config check of %s: %d %s", role, code, out)
		}
	}
	if code, out := ends(t, "config check --role router --store memory"); code != exitOK {
		t.Errorf("with memory, as written: %d %s", code, out)
	}
	t.Setenv("CREEL_STORE", "redis://127.0.0.1:1")
	if code, out := ends(t, "config check --role router"); code != exitOK || !strings.Contains(out, "$CREEL_STORE") {
		t.Errorf("the variable names the store: %d %s", code, out)
	}
	if code, out := ends(t, "router --store memory -D yarn.router.bind-host=nosuch.invalid"); strings.Contains(out, "no state") ||
		code == exitUnreachable {
		t.Errorf("a flag is before the variable: %d %s", code, out)
	}
}

// A misspelt key warns with the nearest name, and fails a strict check.
func TestMisspeltKeyIsNamed(t *testing.T) {
	t.Setenv("CREEL_STORE", "")
	dir := t.TempDir()
	text := "<configuration><property><name>yarn.resourcemanger.webapp.address</name><value>h:1</value></property>" +
		"<property><name>my.own.key</name><value>1</value></property></configuration>"
	if err := os.WriteFile(filepath.Join(dir, "yarn-site.xml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const near = "did you mean yarn.resourcemanager.webapp.address?"
	s, err := settings.Load(settings.Sources{ConfDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(s.WarningsFor(settings.RM), "\n"); !strings.Contains(all, near) ||
		!strings.Contains(all, "has no effect: creel does not know it") {
		t.Errorf("warnings at the start:\n%s", all)
	}
	if code, out := ends(t, "config check --conf "+dir); code != exitOK || !strings.Contains(out, near) {
		t.Errorf("config check: %d %s", code, out)
	}
	code, out := ends(t, "config check --strict --conf "+dir)
	if code != exitUsage || !strings.Contains(out, "unknown setting yarn.resourcemanger.webapp.address; "+near) ||
		strings.Contains(out, "unknown setting my.own.key") {
		t.Errorf("config check --strict: %d %s", code, out)
	}
}
