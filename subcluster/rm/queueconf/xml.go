// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxXMLBytes    = 8 << 20
	maxXMLElements = 500_000
)

// element is one XML element with its position.
type element struct {
	name     string
	attrs    []xml.Attr
	text     string // its own text
	children []*element
	line     int
}

func (e *element) attr(name string) string {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

// value is the text without surrounding white space.
func (e *element) value() string { return strings.TrimSpace(e.text) }

// parseElements parses a whole document into elements. It rejects documents that declare entities, are too large or
// are nested too deeply.
func parseElements(file string, data []byte) (*element, error) {
	if len(data) > maxXMLBytes {
		return nil, &Error{
			File: file,
			Text: fmt.Sprintf("larger than %d MiB, the limit for a queue file", maxXMLBytes>>20),
		}
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	line := func() int { l, _ := dec.InputPos(); return l }
	fail := func(format string, a ...any) (*element, error) {
		return nil, &Error{File: file, Line: line(), Text: fmt.Sprintf(format, a...)}
	}
	var root *element
	var open []*element
	var texts []*strings.Builder
	count := 0
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			var syntax *xml.SyntaxError
			if errors.As(err, &syntax) {
				return nil, &Error{File: file, Line: syntax.Line, Text: "not well-formed XML: " + syntax.Msg}
			}
			return fail("%v", err)
		}
		switch t := tok.(type) {
		case xml.Directive:
			if bytes.ContainsAny(t, "[") || bytes.Contains(bytes.ToUpper(t), []byte("ENTITY")) {
				return fail("a DOCTYPE with declarations is refused; remove it")
			}
		case xml.StartElement:
			if count++; count > maxXMLElements || len(open) > 2*maxDepth {
				return fail("more elements, or nested deeper, than a queue file can need")
			}
			e := &element{name: t.Name.Local, attrs: t.Attr, line: line()}
			switch {
			case len(open) > 0:
				parent := open[len(open)-1]
				parent.children = append(parent.children, e)
			case root != nil:
				return fail("<%s> after the end of <%s>", e.name, root.name)
			default:
				root = e
			}
			open = append(open, e)
			texts = append(texts, &strings.Builder{})
		case xml.EndElement:
			open[len(open)-1].text = texts[len(texts)-1].String()
			open, texts = open[:len(open)-1], texts[:len(texts)-1]
		case xml.CharData:
			if len(texts) > 0 {
				texts[len(texts)-1].Write(t)
			}
		}
	}
	if root == nil {
		return fail("no element at all")
	}
	return root, nil
}
