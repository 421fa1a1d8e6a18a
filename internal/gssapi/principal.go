// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/types"
)

// Principal is a Kerberos principal: alice@REALM, or yarn/host@REALM.
type Principal struct {
	Names []string
	Realm string
}

// maxPrincipal bounds the text of a principal.
const maxPrincipal = 1024

// ParsePrincipal parses a principal as MIT writes it: a backslash stands before a slash, an at sign or a backslash of a
// name. A missing realm stays empty.
func ParsePrincipal(text string) (p Principal, err error) {
	if len(text) > maxPrincipal {
		return p, fmt.Errorf("principal %.80q is longer than %d bytes", text, maxPrincipal)
	}
	var part strings.Builder
	inRealm := false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '\\':
			if i++; i == len(text) {
				return Principal{}, fmt.Errorf("principal %q ends with a backslash", text)
			}
			part.WriteByte(text[i])
		case ch == '@' && inRealm:
			return Principal{}, fmt.Errorf("principal %q has two realms", text)
		case ch == '@' || ch == '/' && !inRealm:
			p.Names = append(p.Names, part.String())
			part.Reset()
			inRealm = ch == '@'
		default:
			part.WriteByte(ch)
		}
	}
	if inRealm {
		p.Realm = part.String()
	} else {
		p.Names = append(p.Names, part.String())
	}
	if slices.Contains(p.Names, "") || inRealm && p.Realm == "" {
		return Principal{}, fmt.Errorf("principal %q has an empty part", text)
	}
	return p, nil
}

var escapeName = strings.NewReplacer(`\`, `\\`, "/", `\/`, "@", `\@`)

// String returns the text that ParsePrincipal parses.
func (p Principal) String() string {
	var b strings.Builder
	for i, name := range p.Names {
		if i > 0 {
			b.WriteByte('/')
		}
		escapeName.WriteString(&b, name)
	}
	if p.Realm != "" {
		b.WriteByte('@')
		b.WriteString(strings.NewReplacer(`\`, `\\`, "@", `\@`).Replace(p.Realm))
	}
	return b.String()
}

// Equal reports whether two principals are the same.
func (p Principal) Equal(q Principal) bool {
	return p.Realm == q.Realm && slices.Equal(p.Names, q.Names)
}

// hostPattern is the host of a principal that stands for the machine's own name, as in yarn/_HOST@REALM.
const hostPattern = "_HOST"

// WithHost replaces _HOST by the host's name in lower case, as Hadoop does.
func (p Principal) WithHost(host string) (Principal, error) {
	if len(p.Names) != 2 || p.Names[1] != hostPattern {
		return p, nil
	}
	host = strings.ToLower(host)
	if host == "" || host == "0.0.0.0" || strings.ContainsAny(host, "/@") {
		return p, fmt.Errorf("principal %s needs the name of a host, not %q", p, host)
	}
	return Principal{[]string{p.Names[0], host}, p.Realm}, nil
}

var errNames = errors.New("a principal without a name")

// fromWire converts a principal of a message.
func fromWire(name types.PrincipalName, realm string) (Principal, error) {
	if len(name.NameString) == 0 || slices.Contains(name.NameString, "") || realm == "" {
		return Principal{}, errNames
	}
	p := Principal{name.NameString, realm}
	if len(p.String()) > maxPrincipal {
		return Principal{}, errors.New("a principal is too long")
	}
	return p, nil
}
