// SPDX-License-Identifier: Apache-2.0

// Package traces embeds recorded days in the binary, so that the demo and the simulator run on a machine that has
// only Go. README.md in this directory lists the origin and licence of each.
package traces

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
)

//go:embed fb2009-0.tsv.gz
var fb0 []byte

//go:embed fb2009-1.tsv.gz
var fb1 []byte

//go:embed yahoo-attempts.csv.gz
var yahoo []byte

// Names that Open accepts besides paths.
const (
	FB2009   = "fb2009-1"
	FB2009x0 = "fb2009-0"
	Yahoo    = "yahoo-attempts"
)

// Open returns the text of a built-in trace by name, or of a file by path. A file that ends in .gz is unpacked.
func Open(name string) (io.ReadCloser, error) {
	switch name {
	case FB2009:
		return gzip.NewReader(bytes.NewReader(fb1))
	case FB2009x0:
		return gzip.NewReader(bytes.NewReader(fb0))
	case Yahoo:
		return gzip.NewReader(bytes.NewReader(yahoo))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("trace %q is neither a file nor one of %s, %s: %w", name, FB2009, FB2009x0, err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return f, nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("trace %q: %w", name, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}
