// SPDX-License-Identifier: Apache-2.0

package creel_test

import "go/ast"

// usesName reports whether the file selects name from the package known
// locally as pkg.
func usesName(tree *ast.File, pkg, name string) (found bool) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == name {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg && x.Obj == nil {
				found = true
			}
		}
		return !found
	})
	return found
}

// startsGoroutine reports whether the file holds a go statement.
func startsGoroutine(tree *ast.File) (found bool) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			found = true
		}
		return !found
	})
	return found
}
