// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/creelrm/creel/e2e/hadoop"
)

// importRoot makes an image of a directory.
func (e *engine) importRoot(dir, name string, changes ...string) {
	e.t.Helper()
	archive := filepath.Join(e.dir, "image.tar")
	e.run("tar", "-C", dir, "-cf", archive, ".")
	e.importTar(archive, name, changes...)
	if err := os.Remove(archive); err != nil {
		e.t.Fatal(err)
	}
}

func (e *engine) importTar(archive, name string, changes ...string) {
	e.t.Helper()
	args := []string{"import"}
	for _, c := range changes {
		args = append(args, "-c", c)
	}
	e.run(e.docker, append(args, archive, name)...)
}

// builder makes the image that the Dockerfile builds in: a minimal Debian with the Go of this machine. Its archive is
// kept between runs.
func (e *engine) builder() {
	e.t.Helper()
	strap := program(e.t, "debootstrap")
	goroot := strings.TrimSpace(e.run("go", "env", "GOROOT"))
	dir := hadoop.Cached(e.t, "builder", []byte("bookworm "+runtime.Version()), func(dir string) error {
		base := filepath.Join(e.dir, "builder")
		defer os.RemoveAll(base)
		for _, args := range [][]string{
			{strap, "--variant=minbase", "--include=ca-certificates", "bookworm", base},
			{"mkdir", "-p", base + "/usr/local/go"},
			{"cp", "-a", goroot + "/.", base + "/usr/local/go"},
			{"rm", "-rf", base + "/usr/local/go/test", base + "/var/cache/apt/archives"},
			{"tar", "-C", base, "-cf", filepath.Join(dir, "root.tar"), "."},
		} {
			if out, err := e.try(args[0], args[1:]...); err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
			}
		}
		return nil
	})
	e.importTar(filepath.Join(dir, "root.tar"), "golang:1.26",
		"ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"ENV GOTOOLCHAIN=local", "ENV GOPATH=/go")
	// The builder must trust the certificates that this machine trusts for its network.
	context := filepath.Join(e.dir, "trust")
	const certificates = "/etc/ssl/certs/ca-certificates.crt"
	e.write(filepath.Join(context, "Dockerfile"), "FROM golang:1.26\nCOPY ca-certificates.crt "+certificates+"\n")
	e.run("cp", certificates, context)
	e.run(e.docker, "build", "-q", "-t", "golang:1.26", context)
}

// runtime makes the image that the Dockerfile ends in: nothing but a user.
func (e *engine) runtime() {
	e.t.Helper()
	dir := filepath.Join(e.dir, "distroless")
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
		"etc/group":  "root:x:0:\nnonroot:x:65532:\n",
	} {
		e.write(filepath.Join(dir, name), text)
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o777); err != nil {
		e.t.Fatal(err)
	}
	e.importRoot(dir, "gcr.io/distroless/static-debian12:nonroot", "USER 65532")
}

// packed makes an image of programs of this machine with the libraries that they name.
func (e *engine) packed(image string, changes []string, names ...string) {
	e.t.Helper()
	dir := filepath.Join(e.dir, strings.NewReplacer("/", "-", ":", "-").Replace(image))
	put := func(path, to string) {
		e.run("install", "-D", "-m", "755", path, filepath.Join(dir, to))
	}
	for _, name := range names {
		path := program(e.t, name)
		put(path, filepath.Join("usr/bin", name))
		out, _ := e.try("ldd", path) // fails for a static one, which needs nothing
		for _, word := range strings.Fields(out) {
			if strings.HasPrefix(word, "/") {
				put(strings.TrimSuffix(word, ":"), word)
			}
		}
	}
	for _, name := range []string{"tmp", "data"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			e.t.Fatal(err)
		}
	}
	e.importRoot(dir, image, changes...)
}

func (e *engine) write(path, text string) {
	e.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}
