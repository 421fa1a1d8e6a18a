// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

// releases builds releases of this tree for linux/amd64.
type releases struct{ program string }

// newReleases builds the release builder.
func newReleases(t *testing.T) releases {
	t.Helper()
	program := filepath.Join(t.TempDir(), "release")
	run(t, "go", "-C", root+"/deploy/release", "vet", ".")
	run(t, "go", "-C", root+"/deploy/release", "test", ".")
	run(t, "go", "-C", root+"/deploy/release", "build", "-o", program, ".")
	return releases{program}
}

// build returns the directory of a release of a tree.
func (r releases) build(t *testing.T, source, version string) string {
	t.Helper()
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), r.program, "-source", source, "-out", out, "-version", version,
		"-targets", "linux/amd64")
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the release of %s: %v\n%s", source, err, text)
	}
	return out
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// The parts of a release: the same bytes from a clone elsewhere, valid checksums, an archive whose binary runs, a
// bill of materials of the linked modules, and a package that dpkg installs, upgrades and removes as an operator
// expects.
func TestARelease(t *testing.T) {
	r := newReleases(t)
	const version = "v0.1.0-rc.1"
	dist := r.build(t, root, version)
	want := []string{
		"SHA256SUMS", "creel-" + version + "-linux-amd64.cdx.json", "creel-" + version + "-linux-amd64.tar.gz",
		"creel_0.1.0~rc.1_amd64.deb",
	}
	if got := names(t, dist); !slices.Equal(got, want) {
		t.Fatalf("a release is %q, not %q", got, want)
	}
	t.Run("the same bytes elsewhere", func(t *testing.T) {
		again := r.build(t, copyOfTree(t), version)
		for _, name := range want {
			if !bytes.Equal(read(t, dist, name), read(t, again, name)) {
				t.Errorf("%s has other bytes when it is built elsewhere", name)
			}
		}
	})
	t.Run("sums", func(t *testing.T) {
		sums := string(read(t, dist, "SHA256SUMS"))
		for _, name := range want[1:] {
			if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(read(t, dist, name)), name); !strings.Contains(sums, line) {
				t.Errorf("SHA256SUMS lacks %q", line)
			}
		}
	})
	t.Run("archive", func(t *testing.T) { checkArchive(t, dist, version) })
	t.Run("bill of materials", func(t *testing.T) { checkBill(t, filepath.Join(dist, want[1]), version) })
	t.Run("package", func(t *testing.T) {
		next := r.build(t, root, "v0.1.0")
		checkPackage(t, filepath.Join(dist, want[3]), filepath.Join(next, "creel_0.1.0_amd64.deb"))
	})
}

// copyOfTree copies committed and stageable files to another place.
func copyOfTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list := run(t, "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600) // other modes too
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func checkArchive(t *testing.T, dist, version string) {
	name := "creel-" + version + "-linux-amd64"
	dir := t.TempDir()
	run(t, "tar", "-C", dir, "-xzf", filepath.Join(dist, name+".tar.gz"))
	if out := run(t, filepath.Join(dir, name, "creel"), "version"); !strings.Contains(out, version) {
		t.Errorf("creel of the archive says it is %s", out)
	}
	for _, file := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "THIRD-PARTY", "man/creel.1.gz", "conf/yarn-site.xml",
		"systemd/creel-router.service", "systemd/creel.env", "prometheus/alerts.yml", "grafana/dashboards/creel.json",
		"completion/creel.ps1",
	} {
		if len(read(t, dir, name, file)) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
	licences := string(read(t, dir, name, "THIRD-PARTY"))
	for _, of := range []string{
		"std go1", "github.com/redis/go-redis/v9 v9", "the recorded workloads: LICENSE.yahoo", "uPlot 1.6.32: LICENSE",
	} {
		if !strings.Contains(licences, "======== "+of) {
			t.Errorf("the licences lack those of %s", of)
		}
	}
}

// checkBill compares the bill with the binary's modules as Go's own tool reads them.
func checkBill(t *testing.T, path, version string) {
	var bill struct {
		BomFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(read(t, path), &bill); err != nil {
		t.Fatal(err)
	}
	if bill.BomFormat != "CycloneDX" || bill.Metadata.Component.Name != "github.com/creelrm/creel" ||
		bill.Metadata.Component.Version != version || bill.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the bill is of %+v", bill.Metadata)
	}
	has := map[string]bool{}
	for _, c := range bill.Components {
		has[c.Name+" "+c.Version] = c.Purl == "pkg:golang/"+c.Name+"@"+c.Version
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/creel")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(list)), "\n")))
	for _, m := range linked {
		if m != "" && !has[m] {
			t.Errorf("the bill lacks %s", m)
		}
	}
	if len(linked) < 20 || len(bill.Components) < len(linked) {
		t.Errorf("%d modules are linked, %d in the bill", len(linked), len(bill.Components))
	}
}

// host is a scratch root with only a shell and dpkg's database.
type host struct {
	t    *testing.T
	root string
	dpkg string
}

func newHost(t *testing.T) *host {
	t.Helper()
	dpkg, err := programs.Path("dpkg")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t, t.TempDir(), dpkg}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp"} {
		if err := os.MkdirAll(filepath.Join(h.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.write("/var/lib/dpkg/status", "")
	libraries := regexp.MustCompile(`/\S+`).FindAllString(run(t, "ldd", "/bin/sh"), -1)
	for _, path := range append(libraries, "/bin/sh") {
		h.write(strings.TrimSuffix(path, ":"), string(read(t, path)))
	}
	return h
}

func (h *host) write(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) has(path string) bool {
	_, err := os.Lstat(filepath.Join(h.root, path))
	return err == nil
}

// packages runs dpkg on the root, noninteractively.
func (h *host) packages(args ...string) string {
	h.t.Helper()
	return run(h.t, h.dpkg, append([]string{"--root=" + h.root, "--force-confold", "--force-unsafe-io"}, args...)...)
}

// creel runs the installed one, inside.
func (h *host) creel(args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "/usr/bin/creel", args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{"PATH=/usr/bin"}, &syscall.SysProcAttr{Chroot: h.root}
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("in the root, creel %s (this needs root): %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func checkPackage(t *testing.T, first, next string) {
	h := newHost(t)
	h.packages("--install", first)
	if out := h.creel("--version"); !strings.Contains(out, "v0.1.0-rc.1") {
		t.Errorf("the installed creel says %s", out)
	}
	modes := map[string]fs.FileMode{
		"/usr/bin/creel": 0o755,
		"/usr/lib/systemd/system/creel-rm.service":            0o644,
		"/usr/share/man/man1/creel.1.gz":                      0o644,
		"/usr/share/man/man1/creel-app-why.1.gz":              0o644,
		"/usr/share/bash-completion/completions/creel":        0o644,
		"/usr/share/zsh/vendor-completions/_creel":            0o644,
		"/usr/share/fish/vendor_completions.d/creel.fish":     0o644,
		"/usr/share/doc/creel/copyright":                      0o644,
		"/usr/share/doc/creel/LICENSE":                        0o644,
		"/usr/share/doc/creel/THIRD-PARTY":                    0o644,
		"/usr/share/doc/creel/changelog.gz":                   0o644,
		"/usr/share/doc/creel/examples/prometheus/alerts.yml": 0o644,
		"/etc/creel/yarn-site.xml":                            0o644,
		"/etc/creel/capacity-scheduler.xml":                   0o644,
		"/etc/creel/creel.env":                                0o600, // a password may stand in it
	}
	for path, mode := range modes {
		info, err := os.Stat(filepath.Join(h.root, path))
		if err != nil || info.Mode().Perm() != mode || info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	// The agent's unit reads the configuration of the Hadoop beside it, which its package brings.
	hadoop := h.root + "/etc/hadoop/conf"
	if err := os.MkdirAll(hadoop, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hadoop+"/yarn-site.xml", []byte("<configuration/>"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Each unit starts a program that is there, with a configuration with which it would start.
	units, err := filepath.Glob(h.root + "/usr/lib/systemd/system/creel-*.service")
	if err != nil || len(units) != 5 {
		t.Fatalf("units %q, %v", units, err)
	}
	for _, unit := range units {
		line := regexp.MustCompile(`(?m)^ExecStart=(/\S+) (\w+) (.*)$`).FindStringSubmatch(string(read(t, unit)))
		if line == nil || !h.has(line[1]) {
			t.Errorf("%s starts %q, which is not installed", filepath.Base(unit), line)
			continue
		}
		values := os.Expand(line[3], func(key string) string {
			m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(string(read(t, h.root, "etc/creel/creel.env")))
			if m == nil {
				t.Errorf("%s needs %s, which creel.env does not have", filepath.Base(unit), key)
				return ""
			}
			return m[1]
		})
		h.creel(append([]string{"config", "check", "--role", line[2]}, strings.Fields(values)...)...)
	}
	run(t, "bash", "-euc", `source "$1" && complete -p creel`, "bash",
		filepath.Join(h.root, "/usr/share/bash-completion/completions/creel"))

	// The operator's configuration and the daemons' files outlive an upgrade; the installed binary is the next one.
	const edited = "<configuration><!-- the operator's --></configuration>\n"
	h.write("/etc/creel/yarn-site.xml", edited)
	h.write("/var/lib/creel/rm/journal", "applications\n")
	h.packages("--install", next)
	if out := h.creel("--version"); !strings.Contains(out, "v0.1.0\n") {
		t.Errorf("after the upgrade creel says %q: is 0.1.0~rc.1 not older than 0.1.0?", out)
	}
	kept := func(when string) {
		t.Helper()
		if string(read(t, h.root, "/etc/creel/yarn-site.xml")) != edited {
			t.Errorf("%s overwrote the operator's configuration", when)
		}
		if !h.has("/var/lib/creel/rm/journal") {
			t.Errorf("%s removed the journal", when)
		}
	}
	kept("the upgrade")
	h.packages("--remove", "creel")
	kept("the removal")
	for path := range modes {
		if gone := !h.has(path); gone != !strings.HasPrefix(path, "/etc/") {
			t.Errorf("after the removal: %s is gone: %v", path, gone)
		}
	}
	h.packages("--purge", "creel")
	if h.has("/etc/creel/yarn-site.xml") || !h.has("/var/lib/creel/rm/journal") {
		t.Error("a purge takes the configuration, and leaves the journal: applications live in it")
	}
}
