// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

var updateExtensions = flag.Bool("update", false, "write docs/reference/wire.md")

// Each creel field is in an existing message, under a number that neither Hadoop nor another creel field uses there,
// and the reference page names all of them.
func TestEveryFieldIsListed(t *testing.T) {
	messages := map[string]protoreflect.MessageDescriptor{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Messages().Len() {
			m := f.Messages().Get(i)
			messages[string(m.Name())] = m
		}
		return true
	})
	seen := map[string]bool{}
	for _, e := range pb.Extensions {
		place := fmt.Sprintf("%s %d", e.Message, e.Number)
		if seen[place] {
			t.Errorf("%s stands twice in the table", place)
		}
		seen[place] = true
		if m := messages[e.Message]; m == nil {
			t.Errorf("there is no message %s", e.Message)
		} else if f := m.Fields().ByNumber(e.Number); f != nil {
			t.Errorf("field %d of %s is Hadoop's %s", e.Number, e.Message, f.Name())
		}
	}

	var page bytes.Buffer
	page.WriteString("# Creel's fields in YARN's messages\n\nGenerated from the table in internal/yarnpb/extensions.go: " +
		"`go test ./internal/yarnpb -run EveryField -update`.\n\nIn these fields parts of creel exchange data that YARN's messages have no field for. " +
		"Hadoop ignores them. So does a part of creel that is older than the field;\nthe other side detects that in the answer and continues without the field.\n\n" +
		"| message | field | meaning |\n| --- | --- | --- |\n")
	for _, e := range pb.Extensions {
		fmt.Fprintf(&page, "| `%s` | %d | %s |\n", e.Message, e.Number, e.Meaning)
	}
	const path = "../../docs/reference/wire.md"
	if *updateExtensions {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, page.Bytes()) {
		t.Errorf("%s is not what the table says (%v): go test ./internal/yarnpb -run EveryField -update", path, err)
	}
}

// A number that is chosen elsewhere could be given out twice.
func TestFieldNumbersDoNotCollide(t *testing.T) {
	number := regexp.MustCompile(`protowire\.Number\s*=\s*1[5-9]\d{3}\b`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if err == nil && filepath.Base(path) != "extensions.go" && number.Match(b) {
			t.Errorf("%s numbers a field; its place is internal/yarnpb/extensions.go", path)
		}
		return err
	})
	if err != nil || files < 500 {
		t.Fatalf("read %d files: %v", files, err)
	}
}
