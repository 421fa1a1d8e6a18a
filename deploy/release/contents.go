// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
)

// writeBill writes a binary's bill of materials from the build information in it.
func (r *release) writeBill(path, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	component := func(kind cdx.ComponentType, name, version string) cdx.Component {
		url := "pkg:golang/" + name + "@" + version
		return cdx.Component{Type: kind, Name: name, Version: version, BOMRef: url, PackageURL: url}
	}
	bill := cdx.NewBOM()
	main := component(cdx.ComponentTypeApplication, info.Main.Path, r.version)
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	bill.Metadata = &cdx.Metadata{Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: &main}
	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		part := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		part.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
		parts = append(parts, part)
	}
	bill.Components = &parts
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return errors.Join(err, f.Close())
}

var licenceFile = regexp.MustCompile(`^(?i)(LICEN[CS]E|COPYING|NOTICE|PATENTS)([.-].*)?$`)

// writeLicences collects the licences of all modules linked or embedded into creel. Redistribution of the binary
// requires them.
func (r *release) writeLicences(path, goos, arch string) error {
	list, err := r.output(environment(goos, arch), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/creel")
	if err != nil {
		return err
	}
	root, err := r.output(nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	modules := strings.Split(list, "\n")
	modules = append(modules,
		"std "+runtime.Version()+"\t"+root,
		"uPlot 1.6.32\t"+filepath.Join(r.source, "internal/pages/page/static/uplot"),
		"the recorded workloads\t"+filepath.Join(r.source, "internal/workload/traces"),
	)
	slices.Sort(modules)
	var text bytes.Buffer
	for _, m := range slices.Compact(modules) {
		name, dir, ok := strings.Cut(m, "\t")
		if !ok {
			continue // a package of the standard library, or creel's
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			if !licenceFile.MatchString(e.Name()) || e.IsDir() {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			found = true
			fmt.Fprintf(&text, "======== %s: %s\n\n%s\n\n", name, e.Name(), bytes.TrimSpace(b))
		}
		if !found {
			return fmt.Errorf("%s has no licence: it cannot be passed on", name)
		}
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// writeDeb packs the files listed in nfpm.yaml and returns the package's path.
func (r *release) writeDeb(stage, arch string) (string, error) {
	if err := compress(filepath.Join(stage, "CHANGELOG.md")); err != nil {
		return "", err
	}
	if err := os.Chtimes(filepath.Join(stage, "CHANGELOG.md.gz"), r.time, r.time); err != nil {
		return "", err
	}
	// A release candidate sorts before its release: 1.2.3~rc.1.
	version := strings.Replace(strings.TrimPrefix(r.version, "v"), "-", "~", 1)
	version = strings.ReplaceAll(version, "-", ".")
	here := filepath.Join(r.source, "deploy/release")
	values := map[string]string{"VERSION": version, "ARCH": arch, "STAGE": stage, "RELEASE": here}
	conf, err := nfpm.ParseFileWithEnvMapping(filepath.Join(here, "nfpm.yaml"),
		func(key string) string { return values[key] })
	if err != nil {
		return "", err
	}
	info, err := conf.Get("deb")
	if err != nil {
		return "", err
	}
	info.MTime = r.time
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = filepath.Join(here, *script) // nfpm replaces no variables in these paths
	}
	info = nfpm.WithDefaults(info)
	path := filepath.Join(r.out, deb.Default.ConventionalFileName(info))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := errors.Join(deb.Default.Package(info, f), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}
