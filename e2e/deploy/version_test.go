// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"regexp"
	"strings"
	"testing"
)

// The binary (by VERSION), the chart, the image and the changelog name one version. The Debian package has the
// binary's: see TestARelease.
func TestVersionsAgree(t *testing.T) {
	version := strings.TrimSpace(string(read(t, root, "app/daemon/build/VERSION")))
	if !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(version) {
		t.Fatalf("VERSION is %q", version)
	}
	for file, lines := range map[string][]string{
		"deploy/helm/creel/Chart.yaml": {`(?m)^version: (\S+)$`, `(?m)^appVersion: "(\S+)"$`},
		"Dockerfile":                   {`(?m)^ARG VERSION=v(\S+)-dev$`},
		"docker-compose.yml":           {`CREEL_VERSION:-v(\S+)-dev\}`},
		"CHANGELOG.md":                 {`(?m)^## (\S+)`},
	} {
		text := string(read(t, root, file))
		for _, line := range lines {
			found := regexp.MustCompile(line).FindAllStringSubmatch(text, -1)
			if len(found) == 0 {
				t.Errorf("%s has no line %s", file, line)
			}
			if file == "CHANGELOG.md" && len(found) > 0 {
				found = found[:1] // the newest section
			}
			for _, m := range found {
				if m[1] != version {
					t.Errorf("%s: version %s, but VERSION is %s", file, m[1], version)
				}
			}
		}
	}
	if label := "org.opencontainers.image.version=${VERSION}"; !strings.Contains(string(read(t, root, "Dockerfile")), label) {
		t.Errorf("Dockerfile has no label %s", label)
	}
}
