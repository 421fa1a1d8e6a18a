// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// replaced are words that the glossary has replaced and that mean nothing else in a name here. Words that are also
// plain English (own, said, mark, room of a node, life of a token) are left to the reader.
var replaced = map[string]string{
	"door": "server, handler or address", "doors": "servers, handlers or addresses",
	"walls": "import rules",
	"law":   "property or invariant", "laws": "properties or invariants",
	"twin": "UAM, reference model or memory state", "twins": "UAMs",
	"master": "AM", "masters": "AMs",
	"beat": "heartbeat", "beats": "heartbeats", "beaten": "answered", "beating": "sending heartbeats",
	"spread":  "UAM record",
	"picture": "view", "pictures": "views",
	"letter": "message", "letters": "messages",
	"shelf": "cache", "shelves": "caches",
}

// kept reports whether a name with such a word is external, or has the word's usual meaning.
func kept(file, name string) bool {
	switch {
	case strings.Contains(name, "ApplicationMaster"), strings.Contains(name, "MasterKey"), name == "masterKey":
		return true // Hadoop's protocol and its keys
	case name == "ClassMasterNotRegistered", name == "ClassInvalidMasterRequest":
		return true // Hadoop's exceptions
	case strings.HasPrefix(file, "statestore/redis/"):
		return name == "master" || name == "MasterName" // a Redis master
	}
	return name == "Spread" && file == "subcluster/rm/queues/policy.go" // over nodes, as in the setting's name
}

// Declared names use the glossary's words (docs/glossary.md).
func TestNamesUseTheGlossarysWords(t *testing.T) {
	names := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, ".pb.go") {
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(parsed) {
			return nil
		}
		declared(parsed, func(id *ast.Ident) {
			names++
			for _, word := range words(id.Name) {
				if instead, bad := replaced[word]; bad && !kept(filepath.ToSlash(file), id.Name) {
					t.Errorf("%s: %s says %q; docs/glossary.md: %s", set.Position(id.Pos()), id.Name, word, instead)
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if names < 20_000 {
		t.Errorf("only %d names were looked at", names)
	}
}

// declared calls found for every name that a file declares.
func declared(file *ast.File, found func(*ast.Ident)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			found(n.Name)
		case *ast.TypeSpec:
			found(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				found(id)
			}
		case *ast.Field: // of structs and interfaces, parameters, results, receivers
			for _, id := range n.Names {
				found(id)
			}
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					found(id)
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					found(id)
				}
			}
		}
		return true
	})
}

// words cuts a name where a capital begins a word: "UAMHeartbeats" is uam and
// heartbeats.
func words(name string) []string {
	var list []string
	runes, from := []rune(name), 0
	for i := range runes {
		if i == from {
			continue
		}
		begins := unicode.IsUpper(runes[i]) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins || runes[i] == '_' {
			list, from = append(list, strings.ToLower(strings.Trim(string(runes[from:i]), "_"))), i
		}
	}
	return append(list, strings.ToLower(strings.Trim(string(runes[from:]), "_")))
}

func TestWordsOfAName(t *testing.T) {
	for name, want := range map[string][]string{
		"door":              {"door"},
		"UAMHeartbeats":     {"uam", "heartbeats"},
		"MasterNode":        {"master", "node"},
		"nextID":            {"next", "id"},
		"Test_old_twin":     {"test", "old", "twin"},
		"outdoorLetterhead": {"outdoor", "letterhead"},
	} {
		if got := words(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
