// SPDX-License-Identifier: Apache-2.0

// Package webdoc reads the bodies and the Accept headers of YARN's REST calls, for routers and ResourceManagers alike.
// It reads a body like Hadoop's web services, or rejects it; it replaces no value by a default.
package webdoc

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/creelrm/creel"
)

// ErrMediaType is the kind of errors about a body's type, charset or packing: 415 (Unsupported Media Type).
var ErrMediaType = errors.New("unsupported media type")

// Kind is the form of a body.
type Kind uint8

// The forms. Other is any form that is not a YARN document, such as a form's fields.
const (
	Other Kind = iota
	JSON
	XML
)

// ContentType is the Content-Type of a body of this kind, as Read returns it.
func (k Kind) ContentType() string {
	return map[Kind]string{JSON: "application/json", XML: "application/xml"}[k]
}

// Body is a request's body. The text of a document is unpacked UTF-8, and has no declaration if it is XML.
type Body struct {
	Kind Kind
	Text []byte
}

// Read reads a request's body. The limit most, in bytes, applies before and after unpacking. A larger body returns an
// *http.MaxBytesError.
func Read(w http.ResponseWriter, r *http.Request, most int64) (Body, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil || len(text) == 0 {
		return Body{}, err
	}
	switch packing := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); packing {
	case "", "identity":
	case "gzip", "x-gzip":
		if text, err = unpack(text, most); err != nil {
			return Body{}, err
		}
	default:
		return Body{}, &creel.Error{
			Kind: ErrMediaType, What: fmt.Sprintf("Content-Encoding %.80q is not supported", packing),
			Try: "send gzip, or leave it out",
		}
	}
	kind, charset := kindOf(r.Header.Get("Content-Type"))
	if kind != Other {
		text, err = toUTF8(text, charset, kind == XML)
	}
	return Body{kind, text}, err
}

func unpack(text []byte, most int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(z, most+1))
	}
	switch {
	case err != nil:
		return nil, &creel.Error{Kind: creel.ErrInvalidRequest, What: "the body is not gzip", Why: err.Error()}
	case int64(len(text)) > most:
		return nil, &http.MaxBytesError{Limit: most}
	}
	return text, nil
}

func kindOf(contentType string) (kind Kind, charset string) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return Other, ""
	}
	switch media {
	case "application/json", "text/json":
		kind = JSON
	case "application/xml", "text/xml":
		kind = XML
	}
	return kind, params["charset"]
}

// KindOf returns the kind of a request's body from its Content-Type.
func KindOf(r *http.Request) Kind {
	kind, _ := kindOf(r.Header.Get("Content-Type"))
	return kind
}

// Decode reads the document into the value that to points to. A struct's XMLName is the required root of XML; JSON has
// none. Text after the document is an error.
func (b Body) Decode(to any) error {
	switch b.Kind {
	case JSON:
		return json.Unmarshal(b.Text, to)
	case XML:
		return decodeXML(b.Text, to)
	}
	if len(b.Text) == 0 {
		return io.EOF
	}
	return &creel.Error{
		Kind: ErrMediaType, What: "a body of this Content-Type cannot be read",
		Try: "send application/json or application/xml, and name it in Content-Type",
	}
}

func decodeXML(text []byte, to any) error {
	dec := xml.NewDecoder(bytes.NewReader(text))
	for roots := 0; ; {
		tok, err := dec.Token()
		if err == io.EOF && roots == 1 {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if roots++; roots > 1 {
				return errors.New("trailing text after the document")
			}
			if err := dec.DecodeElement(to, &t); err != nil {
				return err
			}
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return errors.New("text outside the document's root")
			}
		}
	}
}

// PrefersXML reads Accept like Jersey for YARN's two types: JSON unless XML is preferred. A header that accepts neither
// gets JSON.
func PrefersXML(r *http.Request) bool {
	values := r.Header["Accept"]
	if len(values) == 0 || len(values) == 1 && (values[0] == "application/json" || values[0] == "*/*") {
		return false
	}
	// A named type precedes a wildcard with the same q; otherwise the first one counts.
	var best struct {
		q, exact float64
		xml      bool
	}
	refused := false // JSON, by q=0
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
			continue
		}
		q, exact, isXML := quality(params["q"]), 1.0, false
		switch media {
		case "application/json":
			refused = refused || q == 0
		case "application/xml":
			isXML = true
		case "application/*":
			exact = 0.5
		case "*/*":
			exact = 0
		default:
			continue
		}
		if cmp.Or(cmp.Compare(q, best.q), cmp.Compare(exact, best.exact)) > 0 && q > 0 {
			best.q, best.exact, best.xml = q, exact, isXML
		}
	}
	return best.xml || best.exact < 1 && best.q > 0 && refused
}

// TakesGzip reports whether a client accepts a packed answer.
func TakesGzip(r *http.Request) bool {
	if v := r.Header["Accept-Encoding"]; len(v) == 1 && v[0] == "gzip" {
		return true
	}
	for part := range strings.SplitSeq(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		if coding, params, err := mime.ParseMediaType(part); err == nil && coding == "gzip" {
			return quality(params["q"]) > 0
		}
	}
	return false
}
