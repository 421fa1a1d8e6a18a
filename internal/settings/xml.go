// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Bounds on one configuration. Real files contain a few thousand lines; a file beyond these is a mistake or an attack.
const (
	maxFileBytes    = 8 << 20  // one file
	maxTotalBytes   = 32 << 20 // a file with all its includes
	maxProperties   = 200_000
	maxElementDepth = 32
	maxIncludeDepth = 16
	maxNameBytes    = 4 << 10
)

// Property is one <property> of a Hadoop configuration file, as written: Value is not yet expanded.
type Property struct {
	Name  string
	Value string
	Final bool   // later files must not change it
	File  string // path of the file that contains it, which may be an included one
	Line  int    // 1-based line of its <name>; 0 without a file
}

// Where prints file:line, the form that editors and terminals understand.
func (p Property) Where() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// FileError is an error in a configuration file, with its line.
type FileError struct {
	File string
	Line int
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// ReadFile reads one Hadoop configuration file, with the files that it includes by XInclude, in document order. The
// error is a *FileError, or the error of opening the file.
func ReadFile(path string) ([]Property, error) {
	r := &fileReader{budget: maxTotalBytes}
	return r.file(path, nil)
}

// ParseXML reads a configuration from memory. Messages use name instead of a file name. Includes are rejected: there is
// no directory to resolve them in.
func ParseXML(name string, data []byte) ([]Property, error) {
	r := &fileReader{budget: maxTotalBytes, sealed: true}
	return r.parse(name, data, []string{name})
}

type fileReader struct {
	budget int // number of bytes that may still be read
	count  int // properties seen
	sealed bool
}

func (r *fileReader) file(path string, chain []string) ([]Property, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, &FileError{File: path, Err: err}
	}
	if len(data) > maxFileBytes {
		return nil, &FileError{
			File: path,
			Err:  fmt.Errorf("larger than %d MiB, the limit for a configuration file", maxFileBytes>>20),
		}
	}
	return r.parse(path, data, append(chain, path))
}

func (r *fileReader) parse(path string, data []byte, chain []string) ([]Property, error) {
	if r.budget -= len(data); r.budget < 0 {
		return nil, &FileError{
			File: path,
			Err:  fmt.Errorf("with the files it includes larger than %d MiB", maxTotalBytes>>20),
		}
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.CharsetReader = latin1Reader
	d := &document{reader: r, dec: dec, path: path, chain: chain}
	props, err := d.read()
	if err == nil {
		return props, nil
	}
	var fe *FileError
	if errors.As(err, &fe) {
		return nil, err
	}
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return nil, &FileError{File: path, Line: syntax.Line, Err: errors.New("not well-formed XML: " + syntax.Msg)}
	}
	line, _ := dec.InputPos()
	return nil, &FileError{File: path, Line: line, Err: err}
}

// document walks the tokens of one file.
type document struct {
	reader *fileReader
	dec    *xml.Decoder
	path   string
	chain  []string // this file and the files that include it
	depth  int
	props  []Property
}

func (d *document) line() int { l, _ := d.dec.InputPos(); return l }

func (d *document) fail(format string, a ...any) error {
	return &FileError{File: d.path, Line: d.line(), Err: fmt.Errorf(format, a...)}
}

// next returns the next token, and rejects constructs that no configuration needs.
func (d *document) next() (xml.Token, error) {
	tok, err := d.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case xml.StartElement:
		if d.depth++; d.depth > maxElementDepth {
			return nil, d.fail("elements nested deeper than %d", maxElementDepth)
		}
	case xml.EndElement:
		d.depth--
	case xml.Directive:
		// A DOCTYPE may declare entities that multiply into gigabytes or read other files. Hadoop's files need neither.
		if bytes.ContainsAny(t, "[") || bytes.Contains(bytes.ToUpper(t), []byte("ENTITY")) {
			return nil, d.fail("a DOCTYPE with declarations is refused; remove it")
		}
	}
	return tok, nil
}

func (d *document) read() ([]Property, error) {
	for {
		tok, err := d.next()
		if err == io.EOF {
			return nil, d.fail("no <configuration> element")
		}
		if err != nil {
			return nil, err
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "configuration" {
			return nil, d.fail("the root element is <%s>, not <configuration>", start.Name.Local)
		}
		if err := d.configuration(); err != nil {
			return nil, err
		}
		break
	}
	for { // only comments and white space may follow the root
		tok, err := d.next()
		if err == io.EOF {
			return d.props, nil
		}
		if err != nil {
			return nil, err
		}
		if start, ok := tok.(xml.StartElement); ok {
			return nil, d.fail("<%s> after the end of <configuration>", start.Name.Local)
		}
	}
}

// configuration reads the children of a <configuration>, up to its end.
func (d *document) configuration() error {
	for {
		tok, err := d.next()
		if err != nil {
			return unexpectedEnd(err)
		}
		switch t := tok.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			switch t.Name.Local {
			case "property":
				err = d.property(t)
			case "configuration":
				err = d.configuration()
			case "include":
				err = d.include(t)
			default:
				return d.fail(
					"<%s> is not known inside <configuration>; a setting is <property><name/><value/></property>",
					t.Name.Local,
				)
			}
			if err != nil {
				return err
			}
		}
	}
}

func (d *document) property(start xml.StartElement) error {
	p := Property{File: d.path, Line: d.line()}
	named, valued := false, false
	for _, a := range start.Attr { // the short form: <property name="" value="" final=""/>
		switch a.Name.Local {
		case "name":
			p.Name, named = strings.TrimSpace(a.Value), true
		case "value":
			p.Value, valued = a.Value, true
		case "final":
			p.Final = strings.TrimSpace(a.Value) == "true"
		}
	}
	for {
		tok, err := d.next()
		if err != nil {
			return unexpectedEnd(err)
		}
		switch t := tok.(type) {
		case xml.EndElement:
			if !named || p.Name == "" {
				return &FileError{File: d.path, Line: p.Line, Err: errors.New("a <property> without a <name>")}
			}
			if len(p.Name) > maxNameBytes {
				return &FileError{File: d.path, Line: p.Line, Err: fmt.Errorf("a name of %d bytes", len(p.Name))}
			}
			if !valued {
				return nil // as in Hadoop: a name without a value sets nothing
			}
			if d.reader.count++; d.reader.count > maxProperties {
				return d.fail("more than %d properties", maxProperties)
			}
			d.props = append(d.props, p)
			return nil
		case xml.StartElement:
			line := d.line()
			text, err := d.text(t.Name.Local)
			if err != nil {
				return err
			}
			switch t.Name.Local {
			case "name":
				p.Name, p.Line, named = strings.TrimSpace(text), line, true
			case "value":
				p.Value, valued = text, true
			case "final":
				p.Final = strings.TrimSpace(text) == "true"
			case "description", "source", "tag":
			default:
				return &FileError{
					File: d.path,
					Line: line,
					Err:  fmt.Errorf("<%s> is not known inside <property>", t.Name.Local),
				}
			}
		}
	}
}

// text reads the text of an element up to its end. Markup is dropped inside a description, and rejected elsewhere.
func (d *document) text(element string) (string, error) {
	var b strings.Builder
	for depth := 0; ; {
		tok, err := d.next()
		if err != nil {
			return "", unexpectedEnd(err)
		}
		switch t := tok.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			if element != "description" {
				return "", d.fail("<%s> inside <%s>", t.Name.Local, element)
			}
			depth++
		case xml.EndElement:
			if depth == 0 {
				return b.String(), nil
			}
			depth--
		}
	}
}

// include reads an XInclude of a local file. A missing file is an error unless there is an <xi:fallback>.
func (d *document) include(start xml.StartElement) error {
	href := ""
	for _, a := range start.Attr {
		if a.Name.Local == "href" {
			href = a.Value
		}
	}
	if href == "" {
		return d.fail("an include without href")
	}
	path, err := d.localPath(href)
	if err != nil {
		return d.fail("include %q: %v", href, err)
	}
	line := d.line()
	props, openErr := d.reader.file(path, d.chain)
	missing := errors.Is(openErr, os.ErrNotExist)
	if openErr != nil && !missing {
		return openErr
	}
	d.props = append(d.props, props...)

	fallback := false
	for {
		tok, err := d.next()
		if err != nil {
			return unexpectedEnd(err)
		}
		switch t := tok.(type) {
		case xml.EndElement:
			if missing && !fallback {
				return &FileError{
					File: d.path,
					Line: line,
					Err:  fmt.Errorf("included file %s does not exist; create it or add an <xi:fallback/>", path),
				}
			}
			return nil
		case xml.StartElement:
			if t.Name.Local != "fallback" {
				return d.fail("<%s> inside an include", t.Name.Local)
			}
			fallback = true
			before := len(d.props)
			if err := d.configuration(); err != nil {
				return err
			}
			if !missing {
				d.props = d.props[:before]
			}
		}
	}
}

func (d *document) localPath(href string) (string, error) {
	if d.reader.sealed {
		return "", errors.New("includes are not allowed here")
	}
	if len(d.chain) > maxIncludeDepth {
		return "", fmt.Errorf("files included more than %d deep", maxIncludeDepth)
	}
	path := href
	if u, err := url.Parse(href); err == nil && u.Scheme != "" {
		if u.Scheme != "file" || (u.Host != "" && u.Host != "localhost") {
			return "", errors.New("only local files may be included")
		}
		path = u.Path
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.path), path)
	}
	path = filepath.Clean(path)
	for _, open := range d.chain {
		if filepath.Clean(open) == path {
			return "", errors.New("the file includes itself: " + strings.Join(append(d.chain, path), " -> "))
		}
	}
	return path, nil
}

func unexpectedEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// latin1Reader decodes the one other encoding that old files declare. It rejects any other encoding by name.
func latin1Reader(charset string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "us-ascii", "ascii":
		return in, nil
	case "iso-8859-1", "latin1":
		raw, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		for _, c := range raw {
			b.WriteRune(rune(c))
		}
		return &b, nil
	}
	return nil, fmt.Errorf("encoding %q is not supported; save the file as UTF-8", charset)
}
