// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// walk follows one parameter of a function through the calls that pass it on, as a reader does.
type walk struct {
	bodies map[string]body // by full name
	walked map[string]bool
	rooms  []string // files, in the order of the first visit
	at     string   // the current file

	stays, returns int
}

// body is the source of a function.
type body struct {
	src  *source
	decl *ast.FuncDecl
}

// part is how much of a variable is the parameter: all of it, or some fields.
type part struct {
	all    bool
	fields map[string]bool
}

func (p part) is() bool { return p.all || len(p.fields) > 0 }

// newWalk indexes the functions of packages.
func newWalk(list []*source) *walk {
	w := &walk{bodies: map[string]body{}, walked: map[string]bool{}}
	for _, s := range list {
		for _, f := range s.files {
			for _, d := range f.Decls {
				if d, is := d.(*ast.FuncDecl); is && d.Body != nil {
					w.bodies[s.info.Defs[d.Name].(*types.Func).FullName()] = body{s, d}
				}
			}
		}
	}
	return w
}

// from walks from a function, named as in "(*example.com/m/p.T).Run:r".
func (w *walk) from(start string) error {
	name, param, _ := strings.Cut(start, ":")
	b, has := w.bodies[name]
	if !has {
		return fmt.Errorf("no function %s", name)
	}
	parts := map[types.Object]part{}
	for _, p := range params(b) {
		if p != nil && p.Name() == param {
			parts[p] = part{all: true}
		}
	}
	if len(parts) == 0 {
		return fmt.Errorf("%s has no parameter %s", name, param)
	}
	w.enter(b)
	w.walked[name] = true
	w.body(b, parts)
	return nil
}

// enter moves to the file of a function, and counts a return to a file that the walk had left.
func (w *walk) enter(b body) {
	file := b.src.fset.Position(b.decl.Pos()).Filename
	if file == w.at {
		return
	}
	if w.at = file; slices.Contains(w.rooms, file) {
		w.returns++
		return
	}
	w.rooms = append(w.rooms, file)
}

// params returns the receiver, which is nil for a function, and the parameters. An unnamed one is nil.
func params(b body) (out []types.Object) {
	fields := []*ast.Field{{}}
	if b.decl.Recv != nil {
		fields = slices.Clone(b.decl.Recv.List)
	}
	for _, f := range append(fields, b.decl.Type.Params.List...) {
		if len(f.Names) == 0 {
			out = append(out, nil)
		}
		for _, n := range f.Names {
			out = append(out, b.src.info.Defs[n])
		}
	}
	return out
}

// body follows the parts of the parameter through a function, in the order of its text.
func (w *walk) body(b body, parts map[types.Object]part) {
	ast.Inspect(b.decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if id, is := left.(*ast.Ident); is && len(n.Lhs) == len(n.Rhs) {
					b.assign(id, b.partOf(n.Rhs[i], parts), parts)
				}
			}
		case *ast.RangeStmt:
			if id, is := n.Value.(*ast.Ident); is {
				b.assign(id, b.partOf(n.X, parts), parts)
			}
		case *ast.CallExpr:
			w.call(b, n, parts)
		}
		return true
	})
}

// assign records that a variable has a part of the parameter.
func (b body) assign(id *ast.Ident, p part, parts map[types.Object]part) {
	obj := b.src.info.Defs[id]
	if obj == nil {
		obj = b.src.info.Uses[id]
	}
	if obj != nil && p.is() {
		parts[obj] = p
	}
}

// call counts a call that passes a part on, and follows it once.
func (w *walk) call(b body, c *ast.CallExpr, parts map[types.Object]part) {
	var fun *ast.Ident
	passed := []part{{}}
	switch f := c.Fun.(type) {
	case *ast.Ident:
		fun = f
	case *ast.SelectorExpr:
		fun = f.Sel
		if b.src.info.Selections[f] != nil {
			passed[0] = b.partOf(f.X, parts)
		}
	}
	callee, is := b.src.info.Uses[fun].(*types.Func)
	if fun == nil || !is {
		return
	}
	for _, arg := range c.Args {
		passed = append(passed, b.partOf(arg, parts))
	}
	to, has := w.bodies[callee.FullName()]
	if !slices.ContainsFunc(passed, part.is) || !has {
		return
	}
	w.stays++
	w.enter(to)
	if w.walked[callee.FullName()] {
		return
	}
	w.walked[callee.FullName()] = true
	given := map[types.Object]part{}
	list := params(to)
	for i, p := range passed {
		if i = min(i, len(list)-1); list[i] != nil && p.is() {
			given[list[i]] = p
		}
	}
	w.body(to, given)
}

// partOf returns how much of an expression's value is the parameter. The result of a call is none of it, nor is a
// number or a text.
func (b body) partOf(e ast.Expr, parts map[types.Object]part) part {
	if t := b.src.info.TypeOf(e); t != nil {
		if _, basic := t.Underlying().(*types.Basic); basic {
			return part{}
		}
	}
	switch e := e.(type) {
	case *ast.Ident:
		return parts[b.src.info.Uses[e]]
	case *ast.ParenExpr:
		return b.partOf(e.X, parts)
	case *ast.StarExpr:
		return b.partOf(e.X, parts)
	case *ast.IndexExpr:
		return b.partOf(e.X, parts)
	case *ast.SliceExpr:
		return b.partOf(e.X, parts)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return b.partOf(e.X, parts)
		}
	case *ast.SelectorExpr:
		p, s := b.partOf(e.X, parts), b.src.info.Selections[e]
		return part{all: p.all || s != nil && p.fields[firstField(s)]}
	case *ast.CompositeLit:
		return b.literal(e, parts)
	}
	return part{}
}

// literal returns the fields of a composite literal that have a part.
func (b body) literal(e *ast.CompositeLit, parts map[types.Object]part) part {
	out := part{fields: map[string]bool{}}
	for _, x := range e.Elts {
		k, is := x.(*ast.KeyValueExpr)
		if !is {
			out.all = out.all || b.partOf(x, parts).is()
			continue
		}
		if name, is := k.Key.(*ast.Ident); is && b.partOf(k.Value, parts).is() {
			out.fields[name.Name] = true
		}
	}
	return out
}

// firstField is the field of a selection's operand that has the selected one, which may be embedded in it.
func firstField(s *types.Selection) string {
	t := s.Recv()
	if p, is := t.Underlying().(*types.Pointer); is {
		t = p.Elem()
	}
	if st, is := t.Underlying().(*types.Struct); is && s.Kind() == types.FieldVal {
		return st.Field(s.Index()[0]).Name()
	}
	return ""
}
