// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A test that draws without a fixed seed fails at random. Package propertytest seeds the draws of tests.
func TestTestsDrawFromFixedSeeds(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasPrefix(filepath.ToSlash(file), "internal/propertytest/") {
			return nil
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(file, "_test.go") && importName(tree, "testing") == "" {
			return nil
		}
		files++
		for _, wrong := range strayDraws(set, tree) {
			t.Error(wrong)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Fatalf("only %d files were read: run the test in the root of the module", files)
	}
}

// Of math/rand/v2 tests use generators and their types. Its functions draw from a seed of the process.
var generators = map[string]bool{
	"New": true, "NewPCG": true, "NewChaCha8": true, "NewZipf": true, "Rand": true, "Source": true, "PCG": true, "ChaCha8": true, "Zipf": true,
}

// strayDraws lists the draws of a test file from a seed that differs between runs.
func strayDraws(set *token.FileSet, tree *ast.File) (out []string) {
	report := func(n ast.Node, text string) { out = append(out, set.Position(n.Pos()).String()+": "+text) }
	check, random, secret := importName(tree, "pgregory.net/rapid"), importName(tree, "math/rand/v2"), importName(tree, "crypto/rand")
	clock := importName(tree, "time")
	if importName(tree, "math/rand") != "" {
		report(tree.Name, "math/rand: use math/rand/v2 with a seed")
	}
	selects := func(n ast.Node, pkg string) string {
		if s, ok := n.(*ast.SelectorExpr); ok && pkg != "" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg && x.Obj == nil {
				return s.Sel.Name
			}
		}
		return ""
	}
	readsClock := func(nodes ...ast.Expr) (yes bool) {
		for _, n := range nodes {
			ast.Inspect(n, func(n ast.Node) bool {
				yes = yes || selects(n, clock) == "Now" || selects(n, secret) != ""
				return !yes
			})
		}
		return yes
	}
	isSeed := func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return ok && strings.Contains(strings.ToLower(name.Name), "seed")
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch name := selects(n, check); name {
		case "Check", "MakeCheck":
			report(n, "rapid."+name+" seeds itself from the clock: use propertytest.Check")
		}
		if name := selects(n, random); name != "" && !generators[name] {
			report(n, "rand."+name+" draws from a seed of the process: use propertytest.Rand")
		}
		if name := selects(n, secret); name != "" && name != "Reader" { // keys and tokens are made as the program makes them
			report(n, "crypto/rand."+name+": use propertytest.Rand")
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			if strings.HasPrefix(n.Name.Name, "Fuzz") && n.Recv == nil && !calls(n, "propertytest", "Fuzz") {
				report(n, n.Name.Name+" has seeds only where it does not search: begin with f := propertytest.Fuzz(t)")
			}
		case *ast.CallExpr:
			if generators[selects(n.Fun, random)] && selects(n.Fun, random) != "New" && readsClock(n.Args...) {
				report(n, "a seed from the clock: use propertytest.Seed")
			}
		case *ast.AssignStmt:
			if isSeed(n.Lhs[0]) && readsClock(n.Rhs...) {
				report(n, "a seed from the clock: use propertytest.Seed")
			}
		case *ast.ValueSpec:
			if isSeed(n.Names[0]) && readsClock(n.Values...) {
				report(n, "a seed from the clock: use propertytest.Seed")
			}
		}
		return true
	})
	return out
}

// importName returns the name by which a file has a package, or nothing if it does not import it.
func importName(tree *ast.File, pkg string) string {
	for _, spec := range tree.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		if pkg == "math/rand/v2" {
			return "rand"
		}
		return path.Base(pkg)
	}
	return ""
}

// calls reports whether a function calls pkg.name with an argument.
func calls(f *ast.FuncDecl, pkg, name string) (yes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			yes = yes || argument(call, pkg+"."+name, 0) != nil
		}
		return !yes
	})
	return yes
}

func TestStrayDrawsAreFound(t *testing.T) {
	const head = `package p
		import ("testing"; "time"; crand "crypto/rand"; "math/rand/v2"; "pgregory.net/rapid"; "x/propertytest")
		func f(t *testing.T, r *rand.Rand) { `
	for body, found := range map[string]int{
		`rapid.Check(t, nil)`:                                                  1,
		`t.Run("a", rapid.MakeCheck(nil))`:                                     1,
		`propertytest.Check(t, func(t *rapid.T) {})`:                           0,
		`rand.Shuffle(1, nil)`:                                                 1,
		`r.Shuffle(1, nil)`:                                                    0,
		`rand.New(rand.NewPCG(1, 2)).IntN(3)`:                                  0,
		`rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2)).IntN(3)`:      1,
		`seed := time.Now().Unix(); _ = seed`:                                  1,
		`var firstSeed = time.Now().Unix(); _ = firstSeed`:                     1,
		`crand.Int(nil, nil)`:                                                  1,
		`_ = crand.Reader`:                                                     0,
		`}; func FuzzA(f *testing.F) { f.Fuzz(nil)`:                            1,
		`}; func FuzzA(t *testing.F) { f := propertytest.Fuzz(t); f.Fuzz(nil)`: 0,
	} {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, "p_test.go", head+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if out := strayDraws(set, tree); len(out) != found {
			t.Errorf("%s: found %q, want %d", body, out, found)
		}
	}
}
