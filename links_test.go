// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence    = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```")
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)(?: "[^"]*")?\)`)
	absolute = regexp.MustCompile(`^[a-z][a-z+.-]*:`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?)[ #]*$`)
	label    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unnamed  = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// document is a page of Markdown as links see it.
type document struct {
	links   []string
	anchors map[string]bool
}

func parseDocument(text string) document {
	p := document{anchors: map[string]bool{}}
	text = fence.ReplaceAllString(text, "")
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		p.links = append(p.links, m[1])
	}
	// As GitHub makes them of headings; a second of the same name has a number.
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := label.ReplaceAllString(strings.ReplaceAll(m[1], "`", ""), "$1")
		name = strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(name), ""), " ", "-")
		free := name
		for n := 1; p.anchors[free]; n++ {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		p.anchors[free] = true
	}
	return p
}

// Every relative link of every page leads to a file that is there, and to a heading that it has.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := map[string]document{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.' || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			pages[path] = parseDocument(string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for path, p := range pages {
		for _, to := range p.links {
			if absolute.MatchString(to) {
				continue
			}
			followed++
			file, anchor, _ := strings.Cut(to, "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, to)
				continue
			}
			if there, isPage := pages[target]; anchor != "" && (!isPage || !there.anchors[anchor]) {
				t.Errorf("%s links to %s: there is no such heading", path, to)
			}
		}
	}
	if followed < 250 {
		t.Errorf("only %d links were found in %d pages", followed, len(pages))
	}
}

func TestPageIsParsedAsOnGitHub(t *testing.T) {
	p := parseDocument("# A `b` [c](d.md)!\n\n## Über 2 x_y-z\n\n# A b c\n\n```\n# no\n[no](no)\n```\n\nsee `[no](no)` and [e](f.md#g \"h\")\n")
	if got := fmt.Sprint(p.links); got != "[d.md f.md#g]" {
		t.Errorf("links %s", got)
	}
	for _, a := range []string{"a-b-c", "über-2-x_y-z", "a-b-c-1"} {
		if !p.anchors[a] {
			t.Errorf("no anchor %s in %v", a, p.anchors)
		}
	}
	if len(p.anchors) != 3 {
		t.Errorf("anchors %v", p.anchors)
	}
}
