// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stubEdit is a part of testdata/checklists.txt.
type stubEdit struct {
	checklist, file string
	after           string // "": append, or make the file
	text            string
}

func stubEdits(t *testing.T) (edits []stubEdit) {
	t.Helper()
	text, err := os.ReadFile("testdata/checklists.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sectionsOf(string(text)) {
		for _, part := range strings.Split("\n"+s.body, "\n== ")[1:] {
			head, text, _ := strings.Cut(part, "\n")
			file, after, _ := strings.Cut(head, " after")
			edits = append(edits, stubEdit{s.name, file, strings.TrimPrefix(after, " "), text + "\n"})
		}
	}
	return edits
}

// edited returns a file's text with the edit.
func (e stubEdit) edited(t *testing.T, text string) string {
	t.Helper()
	if e.after == "" {
		return text + "\n" + e.text
	}
	i := strings.Index(text, e.after+"\n")
	if i < 0 {
		t.Fatalf("%s: no line %q", e.file, e.after)
	}
	i += len(e.after) + 1
	return text[:i] + e.text + text[i:]
}

// The smallest addition of each checklist compiles, in the files that the checklist names and in no others.
func TestChecklistStubsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles most of the tree")
	}
	lists := map[string]string{}
	for _, s := range checklistSections(t) {
		lists[s.name] = s.body
	}
	edits, files := stubEdits(t), map[string]string{}
	for _, name := range checklists {
		if !slices.ContainsFunc(edits, func(e stubEdit) bool { return e.checklist == name }) {
			t.Errorf("%s has no stub", name)
		}
	}
	for _, e := range edits {
		if !namesFile(lists[e.checklist], e.file) {
			t.Errorf("the checklist %q does not name %s", e.checklist, e.file)
		}
		text, ok := files[e.file]
		if !ok {
			old, err := os.ReadFile(e.file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			text = string(old)
		}
		files[e.file] = strings.TrimLeft(e.edited(t, text), "\n")
	}
	dir, replace := t.TempDir(), map[string]string{}
	for file, text := range files {
		at := filepath.Join(dir, strings.ReplaceAll(file, "/", "+"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[file] = at
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-overlay", at, "./...").CombinedOutput(); err != nil {
		t.Errorf("the stubs do not compile: %v\n%s", err, out)
	}
}

// namesFile reports whether a checklist names a file, its folder or its pattern with NAME.
func namesFile(list, file string) bool {
	return slices.ContainsFunc(quoted.FindAllStringSubmatch(list, -1), func(m []string) bool {
		pattern := strings.ReplaceAll(m[1], "NAME", "*")
		for at := file; at != "."; at = filepath.Dir(at) {
			if ok, err := filepath.Match(pattern, at); err == nil && ok {
				return true
			}
		}
		return false
	})
}
