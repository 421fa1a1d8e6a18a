// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is a package with its types. Its files are those that are neither tests nor generated.
type source struct {
	path  string // below the module
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	DepOnly    bool
	ImportMap  map[string]string
	Module     *struct{ Path string }
}

// load reads and type-checks the packages that match the patterns. The types of their imports come from the build
// cache, which go list fills.
func load(patterns []string) ([]*source, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly,ImportMap,Module"}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var own []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && p.Module != nil {
			own = append(own, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no compiled package %s", path)
		}
		return os.Open(exports[path])
	})
	var list []*source
	for _, p := range own {
		s, err := check(fset, imports, &p)
		if err != nil {
			return nil, err
		}
		if len(s.files) > 0 {
			list = append(list, s)
		}
	}
	return list, nil
}

func check(fset *token.FileSet, imports types.Importer, p *listed) (*source, error) {
	s := &source{
		path: strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/"), fset: fset,
		info: &types.Info{
			Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
		},
	}
	if s.path == "" {
		s.path = "."
	}
	const mode = parser.ParseComments | parser.SkipObjectResolution
	var all []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, mode)
		if err != nil {
			return nil, err
		}
		if all = append(all, f); !ast.IsGenerated(f) {
			s.files = append(s.files, f)
		}
	}
	var err error
	conf := types.Config{Importer: imports}
	if s.types, err = conf.Check(p.ImportPath, fset, all, s.info); err != nil {
		return nil, err
	}
	return s, nil
}
