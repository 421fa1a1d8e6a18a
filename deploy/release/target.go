// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// target builds the files of one target and returns their paths.
func (r *release) target(scratch, goos, arch string) ([]string, error) {
	name := fmt.Sprintf("creel-%s-%s-%s", r.version, goos, arch)
	stage := filepath.Join(scratch, name)
	if err := r.stage(stage, goos, arch); err != nil {
		return nil, err
	}
	archive := filepath.Join(r.out, name+".tar.gz")
	bill := filepath.Join(r.out, name+".cdx.json")
	err := errors.Join(r.writeArchive(archive, stage), r.writeBill(bill, filepath.Join(stage, "creel")))
	made := []string{archive, bill}
	if goos == "linux" && err == nil {
		var deb string
		deb, err = r.writeDeb(stage, arch)
		made = append(made, deb)
	}
	return made, errors.Join(err, os.RemoveAll(stage))
}

// environment returns the environment of a target's build, without variables that would change the result.
func environment(goos, arch string) []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=-mod=readonly", "GOEXPERIMENT=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
}

func (r *release) build(to, goos, arch string) error {
	_, err := r.output(environment(goos, arch), "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X github.com/creelrm/creel/app/daemon/build.version="+r.version, "-o", to, "./cmd/creel")
	return err
}

// writePages makes creel write its man pages and completions, once for all targets.
func (r *release) writePages(dir string) error {
	if err := r.build(r.creel, runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	man := filepath.Join(dir, "man")
	if _, err := r.output(nil, r.creel, "reference", "--format", "man", man); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(man, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := compress(page); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "completion"), 0o755); err != nil {
		return err
	}
	for shell, file := range map[string]string{
		"bash": "creel.bash", "zsh": "_creel", "fish": "creel.fish", "powershell": "creel.ps1",
	} {
		text, err := r.output(nil, r.creel, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "completion", file), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compress replaces a file by FILE.gz, which contains neither name nor time.
func compress(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.Create(path + ".gz")
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = z.Write(text)
	return errors.Join(err, z.Close(), f.Close(), os.Remove(path))
}

// stage makes the archive's directory. The package uses its files too.
func (r *release) stage(dir, goos, arch string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	binary := filepath.Join(dir, "creel")
	if goos == runtime.GOOS && arch == runtime.GOARCH {
		// It was built to write the pages.
		if err := os.Link(r.creel, binary); err != nil {
			return err
		}
	} else if err := r.build(binary, goos, arch); err != nil {
		return err
	}
	copies := map[string]string{"deploy/conf": "conf", "deploy/prometheus": "prometheus", "deploy/grafana": "grafana"}
	if goos == "linux" {
		copies["deploy/systemd"] = "systemd"
	}
	for from, to := range copies {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join(r.source, from))); err != nil {
			return err
		}
	}
	if err := os.CopyFS(dir, os.DirFS(r.pages)); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(r.source, name))
		if name == "CHANGELOG.md" {
			text, err = r.changelog()
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	if err := r.writeLicences(filepath.Join(dir, "THIRD-PARTY"), goos, arch); err != nil {
		return err
	}
	// Modes and times are set by the release, not by the clone.
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(os.Chmod(path, mode(d)), os.Chtimes(path, r.time, r.time))
	})
}

func mode(d fs.DirEntry) fs.FileMode {
	if d.IsDir() || d.Name() == "creel" {
		return 0o755
	}
	return 0o644
}

// writeArchive packs a directory under the directory's name.
func (r *release) writeArchive(path, dir string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // in name order
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(dir), path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: int64(mode(d)), ModTime: r.time, Format: tar.FormatUSTAR}
		if d.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
			return w.WriteHeader(h)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, file)
		return errors.Join(err, file.Close())
	})
	return errors.Join(err, w.Close(), z.Close(), f.Close())
}

// writeSums writes the input of sha256sum --check.
func writeSums(path string, files []string) error {
	slices.Sort(files)
	var text strings.Builder
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sum.Sum(nil), filepath.Base(file))
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}
