// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

const (
	maxExpansionDepth = 20       // Hadoop's MAX_SUBST
	maxExpanded       = 64 << 10 // bytes of one expanded value
)

// expand replaces ${name} by the value of the key, system property or environment variable with that name:
//
//	${a.key}         value of that key, itself expanded
//	${user.name}     system property, which wins over a key of the same name
//	${env.X}         environment variable
//	${env.X-text}    text when X is not set
//	${env.X:-text}   text when X is not set or empty
//
// A name without a value remains as written. A value that refers to itself is an error, and so is a value that becomes
// too large.
func (s *Settings) expand(raw string) (string, error) { return s.expandWith(raw, nil) }

// expandWith searches local before the settings: the keys of a queue file.
func (s *Settings) expandWith(raw string, local map[string]string) (string, error) {
	x := expander{s: s, local: local}
	return x.expand(raw, nil)
}

type expander struct {
	s     *Settings
	local map[string]string
	work  int
}

func (x *expander) expand(raw string, chain []string) (string, error) {
	if !strings.Contains(raw, "${") {
		return raw, nil
	}
	if len(chain) > maxExpansionDepth {
		return raw, fmt.Errorf("expanding deeper than %d variables", maxExpansionDepth)
	}
	var b strings.Builder
	for {
		start := strings.Index(raw, "${")
		if start < 0 {
			b.WriteString(raw)
			break
		}
		end := strings.IndexByte(raw[start:], '}')
		if end < 0 {
			b.WriteString(raw)
			break
		}
		name := raw[start+2 : start+end]
		if inner := strings.LastIndex(name, "${"); inner >= 0 {
			// ${a${b}}: only the innermost name is a variable.
			b.WriteString(raw[:start+2+inner])
			raw = raw[start+2+inner:]
			continue
		}
		b.WriteString(raw[:start])
		if strings.ContainsAny(name, " $") || name == "" {
			b.WriteString(raw[start : start+end+1])
		} else {
			text, err := x.variable(name, chain)
			if err != nil {
				return raw, err
			}
			if text == nil {
				b.WriteString(raw[start : start+end+1])
			} else {
				b.WriteString(*text)
			}
		}
		if x.work += b.Len(); b.Len() > maxExpanded || x.work > 64*maxExpanded {
			return "", errors.New("expanding to more than it can mean")
		}
		raw = raw[start+end+1:]
	}
	return b.String(), nil
}

// variable returns the text of a variable, or nil if it is not set.
func (x *expander) variable(name string, chain []string) (*string, error) {
	if rest, ok := strings.CutPrefix(name, "env."); ok {
		return x.environment(rest), nil
	}
	if text, ok := x.s.system(name); ok {
		return &text, nil
	}
	raw, ok := x.local[name]
	if !ok {
		v, known := x.s.values[name]
		if !known {
			return nil, nil
		}
		raw = v.Raw
	}
	if slices.Contains(chain, name) {
		return nil, fmt.Errorf("defined by itself: ${%s}", strings.Join(append(chain, name), "} -> ${"))
	}
	text, err := x.expand(raw, append(chain, name))
	text = strings.TrimSpace(text)
	return &text, err
}

func (x *expander) environment(expr string) *string {
	for i := range len(expr) {
		if expr[i] == ':' && i+1 < len(expr) && expr[i+1] == '-' {
			if v, ok := x.s.env(expr[:i]); ok && v != "" {
				return &v
			}
			text := expr[i+2:]
			return &text
		}
		if expr[i] == '-' {
			if v, ok := x.s.env(expr[:i]); ok {
				return &v
			}
			text := expr[i+1:]
			return &text
		}
	}
	if v, ok := x.s.env(expr); ok {
		return &v
	}
	return nil
}

func joinHostPort(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}
