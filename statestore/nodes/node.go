// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

const (
	perNode  = 256      // bytes of a node in a transaction besides its data, at most
	deflated = 4 << 10  // longer values are compressed
	maxValue = 64 << 20 // bytes of a value after decompression
)

// compressed begins a value that is compressed; JSON never does.
const compressed = 1

// encode writes a value as the data of a node.
func encode(text []byte) ([]byte, error) {
	if len(text) < deflated {
		return text, nil
	}
	out := bytes.NewBuffer([]byte{compressed})
	w, err := flate.NewWriter(out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// decode reads the output of encode.
func decode(data []byte) ([]byte, error) {
	if len(data) == 0 || data[0] != compressed {
		return data, nil
	}
	r := flate.NewReader(bytes.NewReader(data[1:]))
	text, err := io.ReadAll(io.LimitReader(r, maxValue))
	if err != nil {
		return nil, statestore.Unreadable("a compressed record", err)
	}
	return text, nil
}

// tooLarge is the error for a change that the system would refuse.
func (c *Config) tooLarge(size int) error {
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: "record too large for " + c.System,
		Why:  fmt.Sprintf("the change has %d bytes after compression, and %s accepts %d", size, c.System, c.MaxChange),
		Try:  "shorten it, or use a store on Redis",
	}
}

// fields are the top-level fields of a JSON document.
type fields map[string]json.RawMessage

func parseFields(data []byte) (fields, error) {
	text, err := decode(data)
	if err != nil || len(text) == 0 {
		return fields{}, err
	}
	f := fields{}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, statestore.Unreadable("a record", err)
	}
	return f, nil
}

// name makes the name of a node from any text.
func name(text string) string {
	escaped := url.PathEscape(text)
	if strings.Trim(escaped, ".") == "" { // ZooKeeper reserves "." and ".."
		return strings.ReplaceAll(escaped, ".", "%2E")
	}
	return escaped
}

// named is the text of a node's name.
func named(node string) string {
	text, err := url.PathUnescape(node)
	if err != nil {
		return node
	}
	return text
}
