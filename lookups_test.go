// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

// Tests find programs beside creel by package programs, whose table ./test tools installs. So the needs of a fresh
// machine are derived from the tests' lookups: a lookup past the table fails here, and so does a program without a
// package, or an unused line of the table.
func TestProgramsAreLookedUpInTheTable(t *testing.T) {
	// Programs that ./test itself runs, or that a language's own tools run.
	wanted := map[string]bool{"gcc": true, "git": true, "protoc": true, "debootstrap": true}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".go") {
			for _, wrong := range strayLookups(t, file, wanted) {
				t.Error(wrong)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range programs.Packages {
		if !wanted[name] {
			t.Errorf("internal/programs/debian.txt: nobody looks up %s", name)
		}
	}
}

// strayLookups lists the lookups of a file that pass by the table, and notes in wanted every word of its source that
// is a program of the table.
func strayLookups(t *testing.T, file string, wanted map[string]bool) (out []string) {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	inTable := filepath.Dir(file) == filepath.Join("internal", "programs")
	helpers := lookupHelpers(tree)
	var at string
	check := func(e ast.Expr) {
		if name, ok := literal(e); ok && !strings.Contains(name, "/") && len(programs.Packages[name]) == 0 {
			out = append(out, at+name+" has no Debian package in internal/programs/debian.txt")
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if s, ok := literal(n); ok && !inTable && programs.Packages[s] != nil {
				wanted[s] = true
			}
		case *ast.KeyValueExpr: // process.Command{Args: []string{"redis-server", ...}}
			key, isName := n.Key.(*ast.Ident)
			if list, ok := n.Value.(*ast.CompositeLit); ok && isName && key.Name == "Args" && len(list.Elts) > 0 {
				at = set.Position(n.Pos()).String() + ": "
				check(list.Elts[0])
			}
		case *ast.CallExpr:
			at = set.Position(n.Pos()).String() + ": "
			name, known := literal(argument(n, "exec.Command", 0))
			if !known {
				name, known = literal(argument(n, "exec.CommandContext", 1))
			}
			if known && name != "go" && !strings.Contains(name, "/") {
				out = append(out, at+"exec.Command of "+name+": find it by programs.Path")
			}
			if argument(n, "exec.LookPath", 0) != nil && !inTable {
				out = append(out, at+"exec.LookPath: find it by programs.Path")
			}
			if !inTable {
				check(argument(n, "programs.Path", 0))
			}
			if f, ok := n.Fun.(*ast.Ident); ok {
				if i, ok := helpers[f.Name]; ok && i < len(n.Args) {
					check(n.Args[i])
				}
			}
		}
		return true
	})
	return out
}

// lookupHelpers returns the functions of a file that hand a parameter on to programs.Path, with its place.
func lookupHelpers(tree *ast.File) map[string]int {
	helpers := map[string]int{}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		var names []string
		for _, field := range f.Type.Params.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if x, ok := argument(call, "programs.Path", 0).(*ast.Ident); ok && slices.Contains(names, x.Name) {
					helpers[f.Name.Name] = slices.Index(names, x.Name)
				}
			}
			return true
		})
	}
	return helpers
}

// argument returns the i-th argument of a call of pkg.Func, or nil when it is another's.
func argument(call *ast.CallExpr, function string, i int) ast.Expr {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || i >= len(call.Args) {
		return nil
	}
	if x, ok := f.X.(*ast.Ident); !ok || x.Name+"."+f.Sel.Name != function {
		return nil
	}
	return call.Args[i]
}

// literal returns the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit == nil || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// The check itself is tested.
func TestStrayLookupsAreSeen(t *testing.T) {
	wanted := map[string]bool{}
	if got := strayLookups(t, "testdata/imports/lookups.go", wanted); len(got) != 6 {
		t.Errorf("%d stray lookups seen, want 6: %q", len(got), got)
	}
	if !wanted["mvn"] {
		t.Error("the lookup of mvn was not seen")
	}
}
