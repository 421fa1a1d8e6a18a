// SPDX-License-Identifier: Apache-2.0

package webdoc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/creelrm/creel"
)

var (
	declaration = regexp.MustCompile(`^\s*<\?xml\s[^>]{0,200}\?>`)
	encodingOf  = regexp.MustCompile(`\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']`)
)

// toUTF8 converts a document. Its byte order mark takes precedence over the charset of the Content-Type. That takes
// precedence over the XML declaration.
func toUTF8(b []byte, charset string, isXML bool) (_ []byte, err error) {
	charset = strings.ToLower(charset)
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		b, charset = b[3:], "utf-8"
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		b, charset = b[2:], "utf-16be"
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		b, charset = b[2:], "utf-16le"
	case charset != "" || !isXML:
	case bytes.HasPrefix(b, []byte("\x00<\x00?")):
		charset = "utf-16be"
	case bytes.HasPrefix(b, []byte("<\x00?\x00")):
		charset = "utf-16le"
	default:
		if m := encodingOf.FindSubmatch(declaration.Find(b)); m != nil {
			charset = strings.ToLower(string(m[1]))
		}
	}
	switch charset {
	case "", "utf-8", "utf8":
		if !utf8.Valid(b) {
			err = errors.New("it is not UTF-8")
		}
	case "us-ascii", "ascii":
		if bytes.ContainsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) {
			err = errors.New("it is not ASCII")
		}
	case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1":
		runes := make([]rune, len(b))
		for i, c := range b {
			runes[i] = rune(c)
		}
		b = []byte(string(runes))
	case "utf-16", "utf-16be":
		b, err = fromUTF16(b, binary.BigEndian)
	case "utf-16le":
		b, err = fromUTF16(b, binary.LittleEndian)
	default:
		return nil, &creel.Error{
			Kind: ErrMediaType, What: fmt.Sprintf("charset %.40q is not supported", charset), Try: "send UTF-8",
		}
	}
	if err != nil {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "the body cannot be read", Why: err.Error(),
			Try: "send UTF-8, or name its charset in Content-Type",
		}
	}
	if isXML { // the declaration may name the former encoding
		b = b[len(declaration.Find(b)):]
	}
	return b, nil
}

func fromUTF16(b []byte, order binary.ByteOrder) ([]byte, error) {
	if len(b)%2 != 0 {
		return nil, errors.New("it is not UTF-16")
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	text := string(utf16.Decode(units))
	if strings.ContainsRune(text, utf8.RuneError) {
		return nil, errors.New("it is not UTF-16")
	}
	return []byte(text), nil
}

// quality reads the q of a header's part; 1 if it is missing.
func quality(q string) float64 {
	if q == "" {
		return 1
	}
	v, err := strconv.ParseFloat(q, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return 1
	}
	return v
}
