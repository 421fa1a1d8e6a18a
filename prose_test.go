// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var rewriteProse = flag.Bool("rewrite-prose", false, "write today's counts into "+proseFile)

const proseFile = "testdata/prose.txt"

// goals are the words that hide the noun of a sentence, with how often each may
// stand in 1,000 lines. Good Go code has them less often still.
var goals = []struct {
	word string
	most int
}{{"what", 15}, {"who", 1}, {"whoever", 0}, {"nobody", 1}, {"tells", 2}, {"gives", 3}, {"anew", 0}}

var goalWords = func() []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, g := range goals {
		list = append(list, regexp.MustCompile(`(?i)\b`+g.word+`\b`))
	}
	return list
}()

// A prose is the text of one kind in one folder.
type prose struct {
	lines  int
	counts [7]int // of goals
}

func (p *prose) add(text string) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		p.lines++
		for i, w := range goalWords {
			p.counts[i] += len(w.FindAllString(line, -1))
		}
	}
}

// most is the bound of a word: its goal for so many lines, rounded up, but 0 where the goal is 0.
func (p *prose) most(i int) int { return (p.lines*goals[i].most + 999) / 1000 }

// TestProseStaysPlain counts the words of goals in comments (per package), in text
// that programs print (string literals of three words and more, per package), and in
// Markdown (per folder). A folder that passes a goal has a line in testdata/prose.txt,
// and that count may only fall:
//
//	go test -run TestProseStaysPlain . -rewrite-prose
func TestProseStaysPlain(t *testing.T) {
	found, err := readProse(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]*prose{}
	for key, p := range found {
		kind, _, _ := strings.Cut(key, " ")
		sum := whole[kind]
		if sum == nil {
			sum = &prose{}
			whole[kind] = sum
		}
		sum.lines += p.lines
		for i := range p.counts {
			sum.counts[i] += p.counts[i]
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(whole)) {
		p := whole[kind]
		text := fmt.Sprintf("%s: %d lines; in 1,000 lines", kind, p.lines)
		for i, g := range goals {
			text += fmt.Sprintf(" %s %.1f", g.word, 1000*float64(p.counts[i])/float64(p.lines))
		}
		t.Log(text)
	}
	if *rewriteProse {
		if err := os.WriteFile(proseFile, []byte(proseTable(found)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded, err := os.ReadFile(proseFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range judgeProse(found, string(recorded)) {
		t.Error(problem)
	}
}

// judgeProse compares the counts with the recorded ones.
func judgeProse(found map[string]*prose, recorded string) (problems []string) {
	bounds := map[string]int{} // kind, folder and word
	for line := range strings.Lines(recorded) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		n, err := strconv.Atoi(f[len(f)-1])
		if len(f) != 4 || err != nil {
			return []string{fmt.Sprintf("%s: not a kind, a folder, a word and a count: %s", proseFile, line)}
		}
		bounds[strings.Join(f[:3], " ")] = n
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		p := found[key]
		for i, g := range goals {
			bound, listed := bounds[key+" "+g.word]
			delete(bounds, key+" "+g.word)
			n, most := p.counts[i], p.most(i)
			switch {
			case n <= most && listed, listed && n < bound:
				problems = append(problems, fmt.Sprintf("%s: %q fell from %d to %d: go test -run TestProseStaysPlain . -rewrite-prose",
					key, g.word, bound, n))
			case !listed && n > most, listed && n > bound:
				problems = append(problems, fmt.Sprintf("%s: %q stands %d times in %d lines, at most %d: name the noun",
					key, g.word, n, p.lines, max(most, bound)))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(bounds)) {
		problems = append(problems, key+" is listed in "+proseFile+" and has no such text")
	}
	return problems
}

func proseTable(found map[string]*prose) string {
	var b strings.Builder
	b.WriteString("# Folders whose text passes a goal of prose_test.go: kind, folder, word, count. Counts may only fall.\n")
	for _, key := range slices.Sorted(maps.Keys(found)) {
		for i, g := range goals {
			if n := found[key].counts[i]; n > found[key].most(i) {
				fmt.Fprintf(&b, "%s %s %d\n", key, g.word, n)
			}
		}
	}
	return b.String()
}

// readProse returns the text of a tree by kind and folder.
func readProse(tree fs.FS) (map[string]*prose, error) {
	found := map[string]*prose{}
	of := func(kind, file string) *prose {
		key := kind + " " + path.Dir(file)
		if found[key] == nil {
			found[key] = &prose{}
		}
		return found[key]
	}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || file != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		switch filepath.Ext(file) {
		case ".md":
			text, err := fs.ReadFile(tree, file)
			if err == nil {
				of("markdown", file).add(string(text))
			}
			return err
		case ".go":
			src, err := fs.ReadFile(tree, file)
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if ast.IsGenerated(parsed) {
				return nil
			}
			for _, group := range parsed.Comments {
				for _, c := range group.List {
					of("comments", file).add(c.Text)
				}
			}
			if strings.HasSuffix(file, "_test.go") {
				return nil
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Count(lit.Value, " ") > 1 {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						of("texts", file).add(text)
					}
				}
				return true
			})
		}
		return nil
	})
	return found, err
}

func TestProseIsJudged(t *testing.T) {
	found := map[string]*prose{"comments a": {lines: 100}, "comments b": {lines: 100}}
	found["comments a"].add("// what it gives to whoever asks")
	found["comments b"].add("// What. What? what!")
	for _, c := range []struct{ recorded, want string }{
		{"comments a whoever 1\ncomments b what 3\n", ""},
		{"comments b what 3\n", "comments a: \"whoever\" stands 1 times"},
		{"comments a whoever 1\ncomments b what 2\n", "\"what\" stands 3 times in 101 lines, at most 2"},
		{"comments a whoever 1\ncomments b what 4\n", "\"what\" fell from 4 to 3"},
		{"comments a whoever 1\ncomments b what 3\ncomments a what 1\n", "\"what\" fell from 1 to 1"},
		{"comments a whoever 1\ncomments b what 3\ncomments c what 1\n", "comments c what is listed"},
		{"comments a whoever\n", "not a kind, a folder, a word and a count"},
	} {
		got := strings.Join(judgeProse(found, c.recorded), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: %s", c.recorded, got)
		}
	}
}
