// SPDX-License-Identifier: Apache-2.0

package newcomer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/federation"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// block is a block of commands of a page, or a file that these commands read.
type block struct {
	line         int
	file         string // the name before a file's content
	text, notRun string
}

var (
	fenced = regexp.MustCompile("(?ms)^(?:<!-- ([^\n]*) -->\n)?```(sh|yaml|json)\n(.*?)^```$")
	isFile = regexp.MustCompile(`^[\w-]+\.(yaml|json)$`)
)

// blocks returns a page's commands and the files among them, in order.
func blocks(page string) (out []block) {
	for _, m := range fenced.FindAllStringSubmatchIndex(page, -1) {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return page[m[2*i]:m[2*i+1]]
		}
		b := block{line: 1 + strings.Count(page[:m[0]], "\n"), text: part(3)}
		note := part(1)
		switch {
		case isFile.MatchString(note):
			b.file = note
		case part(2) != "sh":
			continue
		default:
			b.notRun, _ = strings.CutPrefix(note, "not run: ")
			if b.notRun == note { // another remark
				b.notRun = ""
			}
		}
		out = append(out, b)
	}
	return out
}

// notRun are the pages with blocks that cannot run on creel up, and how many. Four of migrate.md run in e2e/rm and
// e2e/federation.
var notRun = map[string]int{"migrate.md": 6, "spark.md": 3, "tasks.md": 3, "troubleshooting.md": 2}

// Each block of commands in the guide runs as it is printed, on what creel up starts. A page is one shell, which a
// failing command ends.
func TestTheGuideRunsAsPrinted(t *testing.T) {
	n := &newcomer{T: t, dir: t.TempDir()}
	_, store := federation.StartRedis(t)
	up := n.up(store)
	bin := filepath.Join(n.dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(rm.Binary(t), filepath.Join(bin, "creel")); err != nil {
		t.Fatal(err)
	}
	// It has ended: otherwise a page that empties its home would wait for it.
	id := strings.TrimSpace(n.types(0, "run", "--detach", "--", "sleep", "1"))
	n.types(0, "app", "wait", "--for", "state=FINISHED", id)
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page, left := filepath.Base(path), 0
		script := "set -euo pipefail\n"
		for _, b := range blocks(string(text)) {
			switch {
			case b.notRun != "":
				left++
			case b.file != "":
				script += fmt.Sprintf("cat >%s <<'END'\n%sEND\n", b.file, b.text)
			default:
				script += fmt.Sprintf("echo '# %s:%d'\n%s", page, b.line, b.text)
				ran++
			}
		}
		if left != notRun[page] {
			t.Errorf("%s has %d blocks that are not run, want %d", page, left, notRun[page])
		}
		dir := filepath.Join(n.dir, page)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*process.Guard)
		_, all, code := process.Run(ctx, t, process.Command{
			Name: "guide-" + page, Dir: dir, Args: []string{"bash", "-c", script},
			Env: []string{
				"CREEL_SERVER=" + n.server, "CREEL_CONTEXTS=" + n.dir + "/contexts.yaml", "id=" + id,
				"conf=" + filepath.Join(n.dir, "up", "conf"), "PATH=" + bin + ":" + os.Getenv("PATH"),
			},
		})
		cancel()
		if code != 0 {
			t.Errorf("%s: a command exits with %d:\n%s", page, code, all)
		}
	}
	if ran < 20 {
		t.Errorf("only %d blocks were run", ran)
	}
	if strings.Contains(up.Output(), "no merge rule") {
		t.Errorf("a router cannot merge a field of its members:\n%s", up.Output())
	}
}
