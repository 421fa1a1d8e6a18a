// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/logs"
	"github.com/creelrm/creel/internal/settings"
)

// SIGHUP reads the log level again, then runs the service's own reload. An invalid level changes nothing.
func TestTheLogLevelIsReadAgain(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	dir := t.TempDir()
	level := func(name string) {
		text := `<configuration><property><name>creel.log.level</name><value>` + name + `</value></property></configuration>`
		if err := os.WriteFile(filepath.Join(dir, "yarn-site.xml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	level("info")
	s, err := settings.Load(settings.Sources{ConfDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := logs.SetUp(logs.Settings(s, "router")); err != nil {
		t.Fatal(err)
	}
	debugs := func() bool { return slog.Default().Enabled(t.Context(), slog.LevelDebug) }
	reloads := 0
	d := &daemon.Service{Reload: func(context.Context) error { reloads++; return errors.New("the rest") }}
	reloadLogLevel(s, d)
	level("debug")
	if err := d.Reload(t.Context()); err == nil || err.Error() != "the rest" || !debugs() || reloads != 1 {
		t.Errorf("debug: %v, logs debug %v, the rest was reloaded %d times", err, debugs(), reloads)
	}
	level("loud")
	if err := d.Reload(t.Context()); err == nil || !debugs() || reloads != 1 {
		t.Errorf("loud: %v, logs debug %v, the rest was reloaded %d times", err, debugs(), reloads)
	}
	level("info")
	if _ = d.Reload(t.Context()); debugs() {
		t.Error("info: debug is logged")
	}
}
