// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Entry is one line of `creel config print`, and of its JSON.
type Entry struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Type   string `json:"type"`
	Origin string `json:"origin"`
	Kind   string `json:"kind"`             // understood, ignored, unknown
	Status string `json:"status,omitempty"` // of a supported key: in force, without effect, not yet
	Note   string `json:"note,omitempty"`   // why it is not in force
}

// Unused reports whether a source sets a key of Hadoop's that no daemon of creel reads.
func (e Entry) Unused() bool {
	return e.Kind != Understood.String() && startsWith(e.Key, ownFamilies) && !startsWith(e.Key, queueKeys)
}

// Effective lists the values in force sorted by key: all values, or only those that a source other than a default sets.
// Secrets are masked.
func (s *Settings) Effective(all bool) []Entry {
	var out []Entry
	for _, key := range s.keys() {
		v := s.values[key]
		if !all && v.Origin.Source == "default" {
			continue
		}
		e := Entry{
			Key:    key,
			Value:  s.shown(v),
			Type:   String.String(),
			Origin: v.Origin.String(),
			Kind:   Classify(key).String(),
		}
		if row, ok := Find(key); ok {
			e.Type = row.Type.String()
			e.Status, e.Note = row.Status.String(), row.Note
		}
		out = append(out, e)
	}
	return out
}

// HadoopsDefaults are Hadoop's keys that are not set and that creel does not support, with Hadoop's defaults, in order.
func (s *Settings) HadoopsDefaults() []Property {
	var out []Property
	t := registry()
	for _, name := range t.hadoopKeyNames() {
		if s.values[name] == nil {
			out = append(out, Property{Name: name, Value: t.hadoop[name]})
		}
	}
	return out
}

// shown is a value for display: passwords in URLs and values of secrets are masked.
func (s *Settings) shown(v *Value) string {
	row, known := Find(v.Key)
	if v.Text == "" {
		return ""
	}
	if known && row.Secret || s.sensitive(v.Key) {
		return "****"
	}
	if strings.Contains(v.Text, "://") {
		if u, err := url.Parse(v.Text); err == nil {
			return redacted(u)
		}
		if strings.Contains(v.Text, "@") {
			return "****"
		}
	}
	return v.Text
}

// redacted returns a URL without the passwords of its user and its parameters.
func redacted(u *url.URL) string {
	q, masked := u.Query(), false
	for name := range q {
		if sensitive(name) {
			q.Set(name, "xxxxx")
			masked = true
		}
	}
	if masked {
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

// sensitiveKeys is the setting that lists further keys with masked values.
const sensitiveKeys = "hadoop.security.sensitive-config-keys"

// sensitive reports whether a key's value is masked.
func (s *Settings) sensitive(key string) bool {
	return sensitive(key) || slices.ContainsFunc(s.masked, func(r *regexp.Regexp) bool { return r.MatchString(key) })
}

// setMasked reads sensitiveKeys.
func (s *Settings) setMasked() error {
	v, ok := s.Lookup(sensitiveKeys)
	if !ok {
		return nil
	}
	for text := range strings.FieldsFuncSeq(v.Text, func(r rune) bool { return r == ',' || r == '\n' }) {
		r, err := regexp.Compile(strings.TrimSpace(text))
		if err != nil {
			return s.Problem(sensitiveKeys, "it is no regular expression that creel can use: "+err.Error(), "")
		}
		if strings.TrimSpace(text) != "" {
			s.masked = append(s.masked, r)
		}
	}
	return nil
}

// sensitive reports whether the end of a name always marks a secret.
func sensitive(key string) bool {
	k := strings.ToLower(key)
	for _, end := range [...]string{
		"secret",
		"password",
		"passphrase",
		"ssl.keystore.pass",
		"access.key",
		"secret.key",
		".auth",
		"credential",
	} {
		if strings.HasSuffix(k, end) {
			return true
		}
	}
	return false
}

// Print writes the values in force, one key=value a line. If origin is set, a separate column contains their origin.
func (s *Settings) Print(w io.Writer, all, origin bool) error {
	entries := s.Effective(all)
	width := 0
	for _, e := range entries {
		width = max(width, len(e.Key)+1+len(e.Value))
	}
	width = min(width, 100)
	for _, e := range entries {
		line := e.Key + "=" + e.Value
		if origin {
			line = fmt.Sprintf("%-*s  # %s", width, line, e.Origin)
			switch {
			case e.Kind != Understood.String():
				line += " (" + e.Kind + ")"
			case e.Status != InForce.String():
				line += " (" + e.Status + ")"
			}
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// ErrUnknownSetting is returned by Explain for an unknown key.
var ErrUnknownSetting = errors.New("unknown setting")

// Explain writes a setting's description, type and default, and the value in force with all values that it overrides.
func (s *Settings) Explain(w io.Writer, key string) error {
	asked := key
	if newer, ok := deprecated[key]; ok {
		key = newer
	}
	row, known := Find(key)
	v := s.values[key]
	_, listed := registry().hadoop[key]
	if !known && !listed && v == nil && (Classify(key) == Unknown || !startsWith(key, openPrefixes)) {
		if near := Nearest(key); near != "" {
			return fmt.Errorf("%w %s; did you mean %s?", ErrUnknownSetting, asked, near)
		}
		return fmt.Errorf("%w %s; `creel config print --effective` lists all", ErrUnknownSetting, asked)
	}
	var b strings.Builder
	fmt.Fprintln(&b, asked)
	if asked != key {
		fmt.Fprintf(&b, "  deprecated name of %s\n", key)
	}
	switch {
	case known:
		fmt.Fprintf(&b, "  %s\n", row.Doc)
		fmt.Fprintf(&b, "  type     %s\n", row.typeText())
		if strings.Contains(row.Key, "*") {
			fmt.Fprintf(&b, "  pattern  %s\n", row.Key)
		}
		fmt.Fprintf(&b, "  default  %s\n", orNone(row.Default))
		fmt.Fprintf(&b, "  status   %s\n", row.statusText())
	case Classify(key) == Ignored:
		switch {
		case listed:
			fmt.Fprintln(&b, "  Hadoop's; creel does not use it")
		case startsWith(key, openPrefixes):
			fmt.Fprintln(&b, "  not in Hadoop 3.4's defaults, but of a family of free names; creel does not use it")
		default:
			fmt.Fprintln(&b, "  neither creel nor Hadoop 3.4 knows it; other values may refer to it as ${"+key+"}")
		}
		if text := s.explainIgnored(key); text != "" {
			fmt.Fprintf(&b, "  status   %s\n", text)
		}
	default:
		fmt.Fprintln(&b, "  neither creel nor Hadoop knows it")
	}
	if v != nil {
		fmt.Fprintf(&b, "  value    %s\n", orNone(s.shown(v)))
		if v.Raw != v.Text && strings.Contains(v.Raw, "${") {
			fmt.Fprintf(&b, "  written  %s\n", v.Raw)
		}
		final := ""
		if v.Final {
			final = ", final"
		}
		fmt.Fprintf(&b, "  origin   %s%s\n", v.Origin, final)
		for _, c := range v.Overridden {
			verb := "covers"
			if c.Refused {
				verb = "refuses"
			}
			shown := s.shown(&Value{Key: v.Key, Text: c.Raw})
			fmt.Fprintf(&b, "  %-8s %s (%s)\n", verb, orNone(shown), c.Origin)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Setting) typeText() string {
	switch s.Type {
	case Duration:
		return fmt.Sprintf("duration%s, a plain number is %s", s.Least, unitName(s))
	case Enum:
		return strings.Join(s.Choices, " | ")
	}
	return s.Type.String() + s.Least.String()
}

// statusText describes how creel uses the setting, and the reason if it does not.
func (s *Setting) statusText() string {
	if s.Note == "" {
		return s.Status.String()
	}
	return s.Status.String() + ": " + s.Note
}

func unitName(s *Setting) string {
	if s.Unit.Seconds() >= 1 {
		return "seconds"
	}
	return "milliseconds"
}

func orNone(v string) string {
	if v == "" {
		return "(none)"
	}
	return v
}

// Report is the result of `creel config check` beyond Load's errors. It lists every key that a source sets, by how
// creel treats it.
type Report struct {
	Understood []Entry       `json:"understood"` // each with its status
	Ignored    []Entry       `json:"ignored"`
	Unknown    []Misspelling `json:"unknown"`
	Warnings   []string
	Misspelt   []string `json:"-"` // unknown keys whose names nearly are those of known ones
}

// Misspelling is an unknown key, with the nearest known name if one is close.
type Misspelling struct {
	Entry
	Nearest string `json:"nearest,omitempty"`
}

// Check sorts the set keys by how creel treats them.
func (s *Settings) Check() Report {
	r := Report{Warnings: slices.Clone(s.warnings)}
	for _, e := range s.Effective(false) {
		switch e.Kind {
		case Understood.String():
			r.Understood = append(r.Understood, e)
		case Ignored.String():
			r.Ignored = append(r.Ignored, e)
		default:
			r.Unknown = append(r.Unknown, Misspelling{Entry: e, Nearest: Nearest(e.Key)})
		}
	}
	for _, e := range s.notYet() {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("%s: %s=%s is not in force yet: %s", short(e.Origin), e.Key, e.Value, e.Note))
	}
	for _, p := range s.passedOver("") {
		effect, ok := map[Effect]string{Stops: "stops a daemon", Warns: "has no effect"}[p.effect]
		if ok {
			text := fmt.Sprintf("%s: %s %s: %s", short(p.Origin.String()), p.Key, effect, p.why)
			if strings.HasPrefix(p.try, didYouMean) {
				text += "; " + p.try
				r.Misspelt = append(r.Misspelt, fmt.Sprintf("%s: unknown setting %s; %s", p.Origin, p.Key, p.try))
			}
			r.Warnings = append(r.Warnings, text)
		}
	}
	return r
}

// WriteTo prints the report for a terminal.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	counts := map[string]int{}
	for _, e := range r.Understood {
		counts[e.Status]++
	}
	fmt.Fprintf(&b, "%d understood (%d in force, %d without effect, %d not yet), %d ignored, %d unknown\n",
		len(r.Understood), counts[InForce.String()], counts[WithoutEffect.String()], counts[NotYet.String()],
		len(r.Ignored), len(r.Unknown))
	for _, e := range r.Understood {
		note := ""
		if e.Note != "" {
			note = ": " + e.Note
		}
		fmt.Fprintf(&b, "  %-14s  %s=%s  (%s)%s\n", e.Status, e.Key, e.Value, short(e.Origin), note)
	}
	for _, e := range r.Ignored {
		fmt.Fprintf(&b, "  %-14s  %s  (%s)\n", "ignored", e.Key, short(e.Origin))
	}
	for _, m := range r.Unknown {
		hint := ""
		if m.Nearest != "" {
			hint = "; did you mean " + m.Nearest + "?"
		}
		fmt.Fprintf(&b, "  %-14s  %s  (%s)%s\n", "unknown", m.Key, short(m.Origin), hint)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "  %-14s  %s\n", "warning", warning)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// short drops the directory of a file:line.
func short(origin string) string { return filepath.Base(origin) }

// Reference writes the reference page of all settings in Markdown.
func Reference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Settings\n\n")
	b.WriteString(
		"Sources, later wins: the defaults below; `core-site.xml`, `hdfs-site.xml`, `yarn-site.xml`, (the history server's principal) `mapred-site.xml` and (the access lists of protocols) `hadoop-policy.xml` of `--conf DIR` (or `HADOOP_CONF_DIR`); `-D key=value`; flags. ",
	)
	b.WriteString(
		"`final` values override later files, but not `-D` and flags. `${key}`, `${user.name}`, `${env.X}`, `${env.X-text}` and `${env.X:-text}` are expanded.\n\n",
	)
	b.WriteString(
		"Durations take ns, us, ms, s, m, h or d; a plain number has the unit in the type column. Sizes take k, m, g, t (powers of 1024). ",
	)
	b.WriteString(
		"`*` in a name matches one part, `**` several. A daemon refuses to start with an unknown `creel.*` key, or a value that does not parse or is meaningless (a duration of -1). ",
	)
	b.WriteString("Queues are described by `capacity-scheduler.xml` or `fair-scheduler.xml`.\n\n")
	b.WriteString(
		"Each setting is *in force* (a test starts every daemon and checks that it is read), *without effect* (meaningless to creel, with the reason), ",
	)
	b.WriteString(
		"or *not yet*: a value other than the default causes a warning at the start, in `creel config check` and in `/conf`. ",
	)
	b.WriteString(
		"With some unsupported values a daemon refuses to start: see [refused starts](refused-starts.md).\n\n",
	)
	b.WriteString("This page is generated from the registry: `go test ./internal/settings -run Reference -update`.\n")
	last := ""
	for _, row := range All() {
		if row.Section != last {
			last = row.Section
			fmt.Fprintf(&b, "\n## %s\n\n| setting | type | default | status | |\n|---|---|---|---|---|\n", last)
		}
		kind := row.typeText()
		if row.Type == Duration {
			kind = "duration" + row.Least.String() + " (" + unitName(row) + ")"
		}
		def := ""
		if row.Default != "" {
			def = "`" + row.Default + "`"
		}
		text := row.Doc
		if row.Note != "" {
			text += " *Instead: " + row.Note + ".*"
			if row.Status == WithoutEffect {
				text = row.Doc + " *Why not: " + row.Note + ".*"
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
			row.Key, strings.ReplaceAll(kind, "|", "\\|"), def, row.Status, text)
	}
	ignoredReference(&b)
	b.WriteString("\n## Deprecated names\n\n| old | new |\n|---|---|\n")
	for _, old := range slices.Sorted(maps.Keys(deprecated)) {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", old, deprecated[old])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
