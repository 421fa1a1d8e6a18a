// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// named is a number and the declaration that it measures.
type named struct {
	n    int
	name string
}

// shape has the figures of a package.
type shape struct {
	path    string
	files   int
	lines   int
	methods named // of the type with the most
	fields  named // of the struct with the most
	longest named // function, in lines
	p99     int   // lines of functions
	arrows  int   // pairs of files of which one uses the other
	up      int   // of these, against the order of the files
	caches  []string
}

// measure computes the figures of a package.
func measure(s *source) *shape {
	m := &shape{path: s.path, files: len(s.files)}
	methods := map[string]int{}
	var lengths []int
	for _, f := range s.files {
		m.lines += s.fset.Position(f.FileEnd).Line - 1
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				n := s.fset.Position(d.End()).Line - s.fset.Position(d.Pos()).Line + 1
				lengths = append(lengths, n)
				m.longest = most(m.longest, named{n, d.Name.Name})
				if d.Recv != nil {
					methods[receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						m.typeSpec(t)
					}
				}
			}
		}
	}
	for name, n := range methods {
		m.methods = most(m.methods, named{n, name})
	}
	if slices.Sort(lengths); len(lengths) > 0 {
		m.p99 = lengths[len(lengths)*99/100]
	}
	slices.Sort(m.caches)
	m.arrows, m.up = arrows(uses(s))
	return m
}

// typeSpec counts the fields of a struct and the methods of an interface.
func (m *shape) typeSpec(t *ast.TypeSpec) {
	name := t.Name.Name
	if strings.HasSuffix(strings.ToLower(name), "cache") {
		m.caches = append(m.caches, name)
	}
	switch of := t.Type.(type) {
	case *ast.StructType:
		m.fields = most(m.fields, named{of.Fields.NumFields(), name})
	case *ast.InterfaceType:
		m.methods = most(m.methods, named{of.Methods.NumFields(), name})
	}
}

// most returns the larger number; of equal ones, that with the first name.
func most(a, b named) named {
	if b.n > a.n || b.n == a.n && b.name < a.name {
		return b
	}
	return a
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// uses counts, for each pair of files of a package, how often the first uses a declaration of the second: a type, a
// function, a method, a field, a constant or a variable.
func uses(s *source) (names []string, count [][]int) {
	index := map[string]int{}
	for i, f := range s.files {
		name := s.fset.Position(f.Package).Filename
		index[name] = i
		names = append(names, name)
	}
	count = make([][]int, len(s.files))
	for i := range count {
		count[i] = make([]int, len(s.files))
	}
	for id, obj := range s.info.Uses {
		if obj.Pkg() != s.types || obj.Parent() != nil && obj.Parent() != s.types.Scope() {
			continue // of another package, or local
		}
		if _, is := obj.(*types.PkgName); is {
			continue
		}
		from, isOurs := index[s.fset.Position(id.Pos()).Filename]
		to, declared := index[s.fset.Position(obj.Pos()).Filename]
		if isOurs && declared && from != to {
			count[from][to]++
		}
	}
	return names, count
}

// arrows returns the number of pairs of files of which one uses the other, and how many of them run against the best
// order of the files. The order is improved, file by file, until no file has a better position. So it is close to the
// order with the fewest uses against it.
func arrows(names []string, count [][]int) (all, up int) {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	out := func(i int) (n int) {
		for j := range count {
			n += count[i][j] - count[j][i]
		}
		return n
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(out(b)-out(a), strings.Compare(names[a], names[b])) })
	for better := true; better; {
		better = false
		for at, f := range order {
			if to := bestPlace(order, at, count); to != at {
				order = slices.Insert(slices.Delete(order, at, at+1), to, f)
				better = true
				break
			}
		}
	}
	for i, a := range order {
		for j, b := range order {
			if count[a][b] > 0 {
				if all++; j < i {
					up++
				}
			}
		}
	}
	return all, up
}

// bestPlace returns the position to which a file moves so that most uses against the order vanish.
func bestPlace(order []int, at int, count [][]int) int {
	f, best, to := order[at], 0, at
	gain := 0
	for j := at + 1; j < len(order); j++ { // f moves behind order[j]
		if gain += count[order[j]][f] - count[f][order[j]]; gain > best {
			best, to = gain, j
		}
	}
	gain = 0
	for j := at - 1; j >= 0; j-- {
		if gain += count[f][order[j]] - count[order[j]][f]; gain > best {
			best, to = gain, j
		}
	}
	return to
}
