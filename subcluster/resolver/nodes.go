// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Limits of one member's published nodes.
const (
	MaxHosts = 200_000
	MaxBytes = 16 << 20 // of the unpacked text
	maxName  = 253      // bytes of a host's or a rack's name, as in DNS
)

// Class is the class of the document (statestore.Documents) in which a member publishes its nodes. Each member has a
// separate class with one document, because classes are read whole.
func Class(member creel.SubclusterID) string { return "nodes-" + string(member) }

// Document is the name of the document in a member's class.
const Document = "nodes"

// Nodes maps a member's hosts to their racks. A host has one rack.
type Nodes map[string]string

// Encode returns the published form, compressed by DEFLATE (RFC 1951). It has a sorted line for each rack, with its
// name and then its hosts, separated by spaces. Equal nodes have equal bytes. Names that could not be parsed again
// are left out.
func (n Nodes) Encode() []byte {
	racks := map[string][]string{}
	for host, rack := range n {
		if goodName(host) && goodName(rack) {
			racks[rack] = append(racks[rack], host)
		}
	}
	names := make([]string, 0, len(racks))
	for rack := range racks {
		names = append(names, rack)
	}
	slices.Sort(names)
	var text bytes.Buffer
	for _, rack := range names {
		slices.Sort(racks[rack])
		text.WriteString(rack)
		for _, host := range racks[rack] {
			text.WriteByte(' ')
			text.WriteString(host)
		}
		text.WriteByte('\n')
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		panic(err) // only an invalid level is an error
	}
	if _, err := w.Write(text.Bytes()); err != nil {
		panic(err) // a buffer accepts all writes
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return packed.Bytes()
}

// goodName reports whether a name is valid in the published form.
func goodName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// Digest identifies the published form in a heartbeat.
func Digest(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// Decode parses the published form. The error is an *creel.Error of kind creel.ErrInvalidRequest.
func Decode(encoded []byte) (Nodes, error) {
	bad := func(format string, args ...any) (Nodes, error) {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "a subcluster's nodes cannot be read",
			Why:  fmt.Sprintf(format, args...),
			Try:  "restart the ResourceManager or agent that published them: it writes them again",
		}
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(encoded)), MaxBytes+1))
	if err != nil {
		return bad("their compression is invalid")
	}
	if len(text) > MaxBytes {
		return bad("they are longer than %d bytes", MaxBytes)
	}
	n := Nodes{}
	for line := range strings.Lines(string(text)) {
		rack, hosts, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !goodName(rack) {
			return bad("a rack's name is empty, too long, or has control characters")
		}
		for host := range strings.SplitSeq(hosts, " ") {
			if !goodName(host) {
				return bad("a host of rack %q has an invalid name", rack)
			}
			n[strings.Clone(host)] = rack
		}
		if len(n) > MaxHosts {
			return bad("there are more than %d hosts", MaxHosts)
		}
	}
	return n, nil
}
