// SPDX-License-Identifier: Apache-2.0

// Command release builds the files of a creel release for each target. It builds an archive (tar.gz) and, for Linux, a
// Debian package. Each contains the binary, man pages, completions, sample configuration, units, dashboards and
// licences. It also writes a bill of materials (CycloneDX) and the SHA-256 sums of all files. From the root of a clone:
//
//	go -C deploy/release run . -out ../../dist
//
// The same commit and the same Go yield the same bytes on any machine. Paths are trimmed, nothing is linked from the
// machine, and all files have the time of the commit. The changelog has the entries of .changelog under the version.
// -changelog writes them into CHANGELOG.md, for the commit that gets the tag. It is a module of its own, because the
// product needs none of its packages.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	all := "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"
	out := flag.String("out", "../../dist", "write into this `DIR`, which is made")
	source := flag.String("source", "../..", "the `DIR` of creel's module")
	targets := flag.String("targets", all, "`OS/ARCH,...` to build for")
	version := flag.String("version", "", "`VERSION` (default: the tag of the commit, else the next version with -dev, the time and the hash of the commit)")
	changelog := flag.Bool("changelog", false, "join .changelog into CHANGELOG.md under -version, and build nothing")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "release: %q is not understood; see -help\n", flag.Args())
		os.Exit(2)
	}
	build := func() error { return run(*source, *out, *version, strings.Split(*targets, ",")) }
	if *changelog {
		build = func() error { return join(*source, *version) }
	}
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release contains the values that all targets share.
type release struct {
	source  string // directory of the module
	out     string
	version string    // v1.2.3
	time    time.Time // of the commit
	creel   string    // for this machine
	pages   string    // directory of man pages and completions, written by creel
}

// join updates the changelog for a release. Commit it before the tag.
func join(source, version string) error {
	r := &release{source: source, version: version}
	if version == "" {
		return errors.New("-changelog needs -version, such as v0.1.0")
	}
	if err := r.commit(); err != nil {
		return err
	}
	return r.writeChangelog()
}

func run(source, out, version string, targets []string) error {
	r := &release{version: version}
	var err error
	if r.source, err = filepath.Abs(source); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := r.commit(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "creel-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r.creel, r.pages = filepath.Join(scratch, "creel"), filepath.Join(scratch, "pages")
	if err := r.writePages(r.pages); err != nil {
		return err
	}
	var made []string
	for _, t := range targets {
		goos, arch, ok := strings.Cut(t, "/")
		if !ok {
			return fmt.Errorf("target %q: expected OS/ARCH, such as linux/amd64", t)
		}
		files, err := r.target(scratch, goos, arch)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		made = append(made, files...)
	}
	return writeSums(filepath.Join(r.out, "SHA256SUMS"), made)
}

// commit finds the time of the commit, and its version if none was set. SOURCE_DATE_EPOCH has precedence over that time
// (https://reproducible-builds.org/specs/source-date-epoch/).
func (r *release) commit() error {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" || r.version == "" {
		head, err := r.git("log", "-1", "--format=%ct %H")
		if err != nil {
			return fmt.Errorf("%w: in a tree without git, set SOURCE_DATE_EPOCH and -version", err)
		}
		seconds, hash, _ := strings.Cut(head, " ")
		if epoch == "" {
			epoch = seconds
		}
		if err := r.fromGit(seconds, hash); err != nil {
			return err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is %q, no number of seconds", epoch)
	}
	r.time = time.Unix(seconds, 0).UTC()
	if !strings.HasPrefix(r.version, "v") || len(r.version) < 2 || r.version[1] < '0' || r.version[1] > '9' {
		return fmt.Errorf("version %q: expected one like v1.2.3", r.version)
	}
	return nil
}

// fromGit sets the version to the tag of the commit. Without a tag it is the version under development with the
// commit's time and hash, as creel itself prints it. It rejects a tree with changes, because the result could not be
// reproduced.
func (r *release) fromGit(seconds, hash string) error {
	if r.version != "" {
		return nil
	}
	changed, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the tree differs from its commit; commit it, or name it with -version:\n%s", changed)
	}
	tags, err := r.git("tag", "--points-at", "HEAD", "--list", "v*", "--sort", "-version:refname")
	if err != nil {
		return err
	}
	next, err := os.ReadFile(filepath.Join(r.source, "app/daemon/build/VERSION"))
	if err != nil {
		return err
	}
	of := "v" + strings.TrimSpace(string(next))
	if r.version, _, _ = strings.Cut(tags, "\n"); r.version != "" {
		if tagged, _, _ := strings.Cut(r.version, "-"); tagged != of {
			return fmt.Errorf("the tag is %s, but app/daemon/build/VERSION is of %s: change one of them", r.version, of)
		}
		return nil
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("git says that the commit is of %q", seconds)
	}
	r.version = fmt.Sprintf("%s-dev.%s+%.12s", of, time.Unix(at, 0).UTC().Format("20060102150405"), hash)
	return nil
}

func (r *release) git(args ...string) (string, error) { return r.output(nil, "git", args...) }

// output runs a program in the tree and returns its output. A nil env is this process's environment.
func (r *release) output(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.source, env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
