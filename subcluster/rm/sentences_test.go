// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// explanations are files with creel's own texts for readers, which are sentences, too.
var explanations = map[string]bool{
	"why.go": true, "planned.go": true, "preempt_budget.go": true, // reasons why an application waits
	"hold.go": true, "preempt.go": true, // one reason each
	"distributed.go": true, // of a container that a NodeManager placed and the machine does not take
}

// A sentence of Hadoop's begins with a capital letter; creel's errors do not.
func TestHadoopSentencesAreInOneFile(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	in := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || explanations[name] {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, is := n.(*ast.BasicLit)
			if !is || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			words := strings.Fields(text)
			switch sentence := len(words) > 1 && unicode.IsUpper([]rune(words[0])[0]); {
			case name == "sentences.go":
				in++
			case sentence:
				t.Errorf("%s: %q belongs in sentences.go", set.Position(lit.Pos()), text)
			}
			return true
		})
	}
	if in < 50 {
		t.Errorf("sentences.go has %d texts", in)
	}
}
