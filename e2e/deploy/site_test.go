// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/programs"
)

// MkDocs builds the documents as a site: every page is reachable, links and anchors resolve, and links to files
// outside of the documents lead to the published source.
func TestTheSite(t *testing.T) {
	const requirements = root + "/docs/.site/requirements.txt"
	venv := hadoop.Cached(t, "site", read(t, requirements), func(dir string) error {
		python, err := programs.Path("python3")
		if err != nil {
			return err
		}
		for _, args := range [][]string{
			{python, "-m", "venv", filepath.Join(dir, "venv")},
			{filepath.Join(dir, "venv/bin/python"), "-m", "pip", "install", "--quiet", "-r", requirements},
		} {
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			if err := cmd.Run(); err != nil {
				return err
			}
		}
		return nil
	})
	site := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(venv, "venv/bin/python"), "-m", "mkdocs", "build", "--strict", "--quiet",
		"--config-file", root+"/mkdocs.yml", "--site-dir", site)
	cmd.Env = append(os.Environ(), "DISABLE_MKDOCS_2_WARNING=true", "NO_MKDOCS_2_WARNING=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mkdocs: %v\n%s", err, out)
	}
	for page, texts := range map[string][]string{
		"index.html":                 {"https://github.com/creelrm/creel/blob/main/README.md", "guide/migrate.html"},
		"operations/alerts.html":     {"https://github.com/creelrm/creel/blob/main/deploy/prometheus/alerts.yml", `id="creelstoreslow"`},
		"reference/cli/app.html":     {"creel app why"},
		"operations/kubernetes.html": {"redis.html"},
	} {
		html := string(read(t, site, page))
		for _, text := range texts {
			if !strings.Contains(html, text) {
				t.Errorf("%s lacks %s", page, text)
			}
		}
		if strings.Contains(html, "https://fonts.") || strings.Contains(html, "cdn.") {
			t.Errorf("%s asks other hosts for something", page)
		}
	}
}
