// SPDX-License-Identifier: Apache-2.0

package username

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Rules are Hadoop's auth_to_local rules. Nil is Hadoop's default with simple authentication: Short.
type Rules struct {
	list  []rule
	mit   bool
	realm string
}

// rule is a rule of the form RULE:[components:format](match)s/from/to/g/L. Without components it is DEFAULT.
type rule struct {
	components int
	format     []part
	match      *regexp.Regexp // of the whole text; nil: every text
	from       *regexp.Regexp // nil: no replacement
	to         []part
	all, lower bool
	text       string
}

// part is a constant text, or the numbered part of a name or match.
type part struct {
	text   string
	number int // -1 for text
}

// Bounds of rules and names. Hadoop has none.
const (
	maxRulesText = 64 << 10
	maxRules     = 1000
	maxName      = 1024
)

// ruleForm is ruleParser of Hadoop's class KerberosName.
var ruleForm = regexp.MustCompile(
	`^\s*((DEFAULT)|(RULE:\[(\d*):([^\]]*)](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?))/?(L)?`)

// ParseRules parses the value of hadoop.security.auth_to_local. The mechanism is hadoop or mit. DEFAULT accepts names
// of realm; without one it accepts none.
func ParseRules(text, mechanism, realm string) (*Rules, error) {
	r := &Rules{realm: realm, mit: strings.EqualFold(mechanism, "mit")}
	if !r.mit && !strings.EqualFold(mechanism, "hadoop") {
		return nil, fmt.Errorf("mechanism %.80q is neither hadoop nor mit", mechanism)
	}
	if len(text) > maxRulesText {
		return nil, fmt.Errorf("the rules are longer than %d bytes", maxRulesText)
	}
	for rest := strings.TrimSpace(text); rest != ""; {
		f := ruleForm.FindStringSubmatch(rest)
		if f == nil {
			return nil, fmt.Errorf("invalid rule: %.200s", strings.TrimSpace(rest))
		}
		one, err := parseRule(f)
		if err != nil {
			return nil, fmt.Errorf("rule %.200s: %w", strings.TrimSpace(f[0]), err)
		}
		r.list = append(r.list, one)
		if len(r.list) > maxRules {
			return nil, fmt.Errorf("more than %d rules", maxRules)
		}
		rest = rest[len(f[0]):]
	}
	return r, nil
}

// parseRule makes a rule from the groups of ruleForm.
func parseRule(f []string) (r rule, err error) {
	r.text = f[1]
	if r.lower = f[12] == "L"; f[2] != "" {
		r.components = -1
		return r, nil
	}
	components, err := strconv.ParseInt(f[4], 10, 32)
	if err != nil {
		return r, errors.New("the number of components is missing or too large")
	}
	r.components = int(components)
	if r.format, err = parseFormat(f[5], r.components); err != nil {
		return r, err
	}
	if f[6] != "" {
		if r.match, err = compile(f[7], `\A(?:%s)\z`); err != nil {
			return r, err
		}
	}
	if f[8] == "" {
		return r, nil
	}
	if r.from, err = compile(f[9], "%s"); err != nil {
		return r, err
	}
	if r.all = f[11] == "g"; r.all && (r.from.MatchString("") || strings.Contains(strings.ToLower(f[9]), `\b`)) {
		return r, fmt.Errorf("with g, %q must not match the empty text", f[9])
	}
	r.to, err = parseReplacement(f[10], r.from)
	return r, err
}

// parseFormat parses the format of a rule: $0 is the realm, $1 the first component.
func parseFormat(text string, components int) (parts []part, err error) {
	before, rest, more := strings.Cut(text, "$")
	parts = append(parts, part{before, -1})
	for more {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > components {
			return nil, fmt.Errorf("$%.20s is not from $0 to $%d", rest[:digits], components)
		}
		before, rest, more = strings.Cut(rest[digits:], "$")
		parts = append(parts, part{"", n}, part{before, -1})
	}
	return parts, nil
}

// parseReplacement parses the replacement of a match, in the syntax of Java's Matcher.appendReplacement.
func parseReplacement(text string, of *regexp.Regexp) (parts []part, err error) {
	digit := func(i int) int {
		if i < len(text) && text[i] >= '0' && text[i] <= '9' {
			return int(text[i] - '0')
		}
		return -1
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			parts = append(parts, part{text[i : i+1], -1})
		case text[i] == '\\':
			return nil, errors.New("nothing follows the last backslash of the replacement")
		case text[i] != '$':
			parts = append(parts, part{text[i : i+1], -1})
		case strings.HasPrefix(text[i:], "${"):
			name, _, closed := strings.Cut(text[i+2:], "}")
			n := of.SubexpIndex(name)
			if !closed || n < 0 {
				return nil, fmt.Errorf("the replacement names no group by ${%.40s}", name)
			}
			parts = append(parts, part{"", n})
			i += len(name) + 2
		default:
			n := digit(i + 1)
			if n < 0 || n > of.NumSubexp() {
				return nil, fmt.Errorf("$%.1s of the replacement is not from $0 to $%d", text[i+1:], of.NumSubexp())
			}
			for i++; digit(i+1) >= 0 && n*10+digit(i+1) <= of.NumSubexp(); i++ {
				n = n*10 + digit(i+1)
			}
			parts = append(parts, part{"", n})
		}
	}
	return parts, nil
}

var (
	groupForm  = regexp.MustCompile(`^\(\?(:|[ism]+[:)]|<[a-zA-Z][a-zA-Z0-9]*>)`)
	repeatForm = regexp.MustCompile(`^\{\d+(,\d*)?\}`)
)

// compile compiles a regular expression of Java. It rejects an expression that Go does not have, or reads in another
// way.
func compile(text, form string) (*regexp.Regexp, error) {
	inClass := false
	for i := 0; i < len(text); i++ {
		rest, bad := text[i:], false
		switch {
		case text[i] == '\\':
			// Letters and digits after a backslash that mean the same in both; \p is an error in Go if it differs.
			if i++; i < len(text) && isWordByte(text[i]) {
				bad = !strings.ContainsRune("dDwWsSbBAztnrfaxpP", rune(text[i]))
			}
		case inClass:
			if bad = text[i] == '[' || strings.HasPrefix(rest, "&&"); text[i] == ']' {
				inClass = false
			}
		case text[i] == '[':
			inClass = true
			bad = strings.HasPrefix(rest, "[]") || strings.HasPrefix(rest, "[^]")
		case text[i] == '{':
			bad = !repeatForm.MatchString(rest)
		case strings.HasPrefix(rest, "(?"):
			bad = !groupForm.MatchString(rest)
		}
		if bad {
			return nil, fmt.Errorf("%.40q in the expression %q is not supported", rest, text)
		}
	}
	re, err := regexp.Compile(fmt.Sprintf(form, text))
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return re, nil
}

func isWordByte(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }

// Short returns the user of a login name.
func (r *Rules) Short(name string) (string, error) {
	if r == nil {
		return Short(name)
	}
	if len(name) > maxName {
		return "", fmt.Errorf("user name %.80q is longer than %d bytes", name, maxName)
	}
	parts, err := components(name) // realm, user, host
	switch {
	case err != nil:
		return "", err
	case parts == nil:
		return name, nil
	}
	for i := range r.list {
		short, ok := r.list[i].apply(parts, r.realm)
		switch {
		case !ok:
			continue
		case !r.mit && strings.ContainsAny(short, "/@"):
			return "", fmt.Errorf("rule %.200s maps user name %.80q to %.80q, which is no short name",
				r.list[i].text, name, short)
		case r.list[i].lower:
			short = strings.ToLower(short)
		}
		if short == "" || len(short) > maxName {
			return "", fmt.Errorf("rule %.200s maps user name %.80q to an empty or too long name", r.list[i].text, name)
		}
		return short, nil
	}
	if r.mit {
		return name, nil
	}
	return "", fmt.Errorf("no rule of hadoop.security.auth_to_local applies to user name %.80q", name)
}

// apply returns the result for the realm, user and perhaps host of a name; ok is false if the rule does not apply.
func (r *rule) apply(name []string, realm string) (short string, ok bool) {
	if r.components < 0 {
		return name[1], realm != "" && name[0] == realm
	}
	if len(name)-1 != r.components {
		return "", false
	}
	if name[0] == "" {
		name = append([]string{"null"}, name[1:]...) // as Java writes an absent realm
	}
	base := expand(r.format, func(n int) string { return name[n] })
	if r.match != nil && !r.match.MatchString(base) {
		return "", false
	}
	if r.from == nil {
		return base, true
	}
	most := 1
	if r.all {
		most = -1
	}
	var out strings.Builder
	end := 0
	for _, at := range r.from.FindAllStringSubmatchIndex(base, most) {
		out.WriteString(base[end:at[0]])
		out.WriteString(expand(r.to, func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return base[at[2*n]:at[2*n+1]]
		}))
		if end = at[1]; out.Len() > maxName {
			return out.String(), true // Short rejects it
		}
	}
	out.WriteString(base[end:])
	return out.String(), true
}

// expand joins parts, up to a little more than maxName bytes.
func expand(parts []part, value func(n int) string) string {
	var out strings.Builder
	for _, p := range parts {
		if out.Len() > maxName {
			break
		}
		if p.number < 0 {
			out.WriteString(p.text)
		} else {
			out.WriteString(value(p.number))
		}
	}
	return out.String()
}

// HasDefault reports whether one of the rules is DEFAULT, which needs a realm.
func (r *Rules) HasDefault() bool {
	for i := range r.list {
		if r.list[i].components < 0 {
			return true
		}
	}
	return false
}

// DefaultRealm returns the default_realm in the [libdefaults] of a krb5.conf, "" if it has none.
func DefaultRealm(conf string) string {
	section, blocks := "", 0
	for line := range strings.Lines(conf) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "["):
			section, blocks = line, 0
		case strings.HasPrefix(line, "}"):
			blocks = max(0, blocks-1)
		case strings.HasSuffix(line, "{") && line[0] != '#' && line[0] != ';':
			blocks++
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && blocks == 0 && section == "[libdefaults]" && strings.TrimSpace(key) == "default_realm" {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
