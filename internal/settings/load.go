// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Sources names the places to read from; its zero value means the built-in defaults.
type Sources struct {
	ConfDir string // Hadoop configuration directory; "" means HADOOP_CONF_DIR, and none if that is empty
	// Defaults are values, by key, that replace the registry's defaults. Files override them.
	Defaults map[string]string
	Defines  []string // key=value of each -D, in order
	Flags    []Flag   // flags given on the command line, in order

	// Env and System resolve ${env.X} and ${user.name}; nil means those of the process.
	Env    func(name string) (string, bool)
	System func(name string) (string, bool)

	// Read is called with the registry's name of each setting that is read; may be nil. Tests use it to find the
	// settings in force.
	Read func(row string)
}

// Flag is a command-line flag that sets a setting.
type Flag struct {
	Name  string // as typed, with dashes
	Key   string
	Value string
}

// Origin is the source of a value.
type Origin struct {
	Source string // "default", "file", "define" or "flag"
	File   string
	Line   int
	Flag   string
}

func (o Origin) String() string {
	switch o.Source {
	case "file":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case "define":
		return "-D"
	case "flag":
		return o.Flag
	}
	return o.Source
}

// Value is one key with its value in force and the values that it overrides.
type Value struct {
	Key        string
	Raw        string // as written
	Text       string // with ${...} expanded
	Origin     Origin
	Final      bool
	Overridden []Override // earlier values, latest first
}

// Override is a value that a later source replaced, or that an earlier final value rejected.
type Override struct {
	Raw     string
	Origin  Origin
	Refused bool // from a later source, but the value in force is final
}

// Settings holds every value in force. It does not change after Load.
type Settings struct {
	dir      string
	values   map[string]*Value
	capacity []Property // of capacity-scheduler.xml, not expanded
	warnings []string
	env      func(string) (string, bool)
	system   func(string) (string, bool)
	read     func(row string)
	sources  Sources
	masked   []*regexp.Regexp // of keys with secret values
}

// storeVariable is the environment variable with the URL of the state store. -D and flags override it.
const storeVariable = "CREEL_STORE"

// Load reads the sources and checks the value of every registered key. It reports all errors at once, joined:
// unreadable files, unparsable values, unknown creel.* keys, each with its file and line. With an error the returned
// Settings contains the readable part, for `creel config check`; a daemon must not start with it.
func Load(src Sources) (*Settings, error) {
	s := &Settings{
		values:  map[string]*Value{},
		env:     src.Env,
		system:  src.System,
		dir:     src.ConfDir,
		read:    src.Read,
		sources: src,
	}
	if s.env == nil {
		s.env = os.LookupEnv
	}
	if s.system == nil {
		s.system = systemProperty
	}
	if s.dir == "" {
		s.dir, _ = s.env("HADOOP_CONF_DIR")
	}
	for _, row := range All() {
		if !strings.Contains(row.Key, "*") {
			raw, ok := src.Defaults[row.Key]
			if !ok {
				raw = row.Default
			}
			s.values[row.Key] = &Value{Key: row.Key, Raw: raw, Origin: Origin{Source: "default"}}
		}
	}

	var errs []error
	if s.dir != "" {
		if info, err := os.Stat(s.dir); err != nil {
			errs = append(errs, fmt.Errorf("configuration directory: %w", err))
		} else if !info.IsDir() {
			errs = append(errs, fmt.Errorf("configuration directory: %s is not a directory", s.dir))
		} else {
			for _, name := range []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml"} {
				errs = append(errs, s.readSite(filepath.Join(s.dir, name), ""))
			}
			// The rest of it is for jobs.
			errs = append(errs, s.readSite(filepath.Join(s.dir, "mapred-site.xml"), "mapreduce.jobhistory.principal"))
			errs = append(errs, s.readSite(filepath.Join(s.dir, "hadoop-policy.xml"), "security."))
			errs = append(errs, s.readPasswords(filepath.Join(s.dir, "ssl-server.xml"), "ssl.server."))
			errs = append(errs, s.readPasswords(filepath.Join(s.dir, "ssl-client.xml"), "ssl.client."))
			props, err := readOptional(filepath.Join(s.dir, "capacity-scheduler.xml"))
			s.capacity = props
			errs = append(errs, err)
		}
	}
	if url, ok := s.env(storeVariable); ok && url != "" {
		s.set("creel.store.url", url, Origin{Source: "$" + storeVariable}, false)
	}
	for _, define := range src.Defines {
		key, value, ok := strings.Cut(define, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			errs = append(errs, fmt.Errorf("-D %s: write -D key=value", define))
			continue
		}
		s.set(key, value, Origin{Source: "define"}, false)
	}
	for _, f := range src.Flags {
		s.set(f.Key, f.Value, Origin{Source: "flag", Flag: f.Name}, false)
	}
	s.setHadoopStore()
	errs = append(errs, s.check(), s.setMasked())
	return s, errors.Join(errs...)
}

// setHadoopStore names the store by Hadoop's keys, if creel's does not.
func (s *Settings) setHadoopStore() {
	text := func(key string) string {
		value, err := s.expand(s.values[key].Raw)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(value)
	}
	const class = "yarn.federation.state-store.class"
	if s.values["creel.store.url"].Origin.Source != "default" ||
		!strings.EqualFold(text("yarn.federation.enabled"), "true") {
		return
	}
	store := ""
	switch name := text(class); {
	case strings.HasSuffix(name, ".SQLFederationStateStore"):
		store = storeOfJDBC(text("yarn.federation.state-store.sql.url"))
	case strings.HasSuffix(name, ".ZookeeperFederationStateStore"):
		if hosts := strings.Fields(strings.ReplaceAll(text("hadoop.zk.address"), ",", " ")); len(hosts) > 0 {
			store = "zk://" + strings.Join(hosts, ",") + text("yarn.federation.zk-state-store.parent-path")
		}
	}
	if store != "" {
		s.set("creel.store.url", store, s.values[class].Origin, false)
	}
}

// storeOfJDBC is the URL of a store in MySQL or MariaDB, "" for another database. Of the parameters, which may have a
// password, only encryption counts; any kind of it becomes a verified one.
func storeOfJDBC(jdbc string) string {
	rest, ok := strings.CutPrefix(jdbc, "jdbc:mysql://")
	if !ok {
		if rest, ok = strings.CutPrefix(jdbc, "jdbc:mariadb://"); !ok {
			return ""
		}
	}
	address, query, _ := strings.Cut(rest, "?")
	parameters, err := url.ParseQuery(query)
	mode := strings.ToLower(parameters.Get("sslMode"))
	if err != nil || strings.EqualFold(parameters.Get("useSSL"), "true") ||
		mode != "" && !strings.HasPrefix(mode, "disable") && mode != "preferred" {
		address += "?tls=true"
	}
	return "mysql://" + address
}

// Reload reads the same sources again: the current files, then the original -D and flags over them. s does not change.
func (s *Settings) Reload() (*Settings, error) { return Load(s.sources) }

func readOptional(path string) ([]Property, error) {
	props, err := ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && !isFileError(err) {
		return nil, nil
	}
	return props, err
}

func isFileError(err error) bool {
	var fe *FileError
	return errors.As(err, &fe)
}

// readSite applies the properties of a file whose names begin with a prefix.
func (s *Settings) readSite(path, prefix string) error {
	props, err := readOptional(path)
	if err != nil {
		return err
	}
	for _, p := range props {
		if !strings.HasPrefix(p.Name, prefix) {
			continue
		}
		s.set(p.Name, p.Value, Origin{Source: "file", File: p.File, Line: p.Line}, p.Final)
	}
	return nil
}

// readPasswords is readSite for a file with passwords. A user who may not read it does without: a daemon that needs one
// of its values does not start.
func (s *Settings) readPasswords(path, prefix string) error {
	err := s.readSite(path, prefix)
	if errors.Is(err, os.ErrPermission) {
		s.warnings = append(s.warnings, path+" is not readable for this user: its settings are not used")
		return nil
	}
	return err
}

// set applies a value over the earlier one. A final value overrides later files but not -D and flags, as in Hadoop.
func (s *Settings) set(key, raw string, origin Origin, final bool) {
	if newer, ok := deprecated[key]; ok {
		s.warnings = append(s.warnings, fmt.Sprintf("%s: %s is deprecated, write %s", origin, key, newer))
		key = newer
	}
	old, ok := s.values[key]
	if !ok {
		s.values[key] = &Value{Key: key, Raw: raw, Origin: origin, Final: final}
		return
	}
	if old.Final && origin.Source == "file" {
		s.warnings = append(
			s.warnings,
			fmt.Sprintf("%s: %s is final since %s, this value is not used", origin, key, old.Origin),
		)
		old.Overridden = slices.Insert(old.Overridden, 0, Override{Raw: raw, Origin: origin, Refused: true})
		return
	}
	old.Overridden = slices.Insert(old.Overridden, 0, Override{Raw: old.Raw, Origin: old.Origin})
	old.Raw, old.Origin, old.Final = raw, origin, old.Final || final
}

// check expands and parses the value of every registered key, and rejects unknown creel.* keys.
func (s *Settings) check() error {
	var errs []error
	for _, key := range s.keys() {
		v := s.values[key]
		row, known := Find(key)
		if !known {
			v.Text, _ = s.expand(v.Raw) // a free name or an ignored key is not parsed
			if strings.HasPrefix(key, "creel.") {
				errs = append(errs, s.unknown(v))
			}
			continue
		}
		text, err := s.expand(v.Raw)
		v.Text = text
		if row.Type != ACL { // a list of groups alone begins with a space
			v.Text = strings.TrimSpace(text)
		}
		if err == nil {
			err = row.check(v.Text)
		}
		if err != nil {
			shown := v.Text
			if row.Secret {
				shown = "****"
			}
			errs = append(
				errs,
				fmt.Errorf(
					"%s: %s: value %q: %w (type %s, default %q)",
					v.Origin,
					key,
					shown,
					err,
					row.Type,
					row.Default,
				),
			)
			// Settings that Load returns with an error must still be readable.
			if fallback, expandErr := s.expand(row.Default); expandErr == nil {
				v.Text = strings.TrimSpace(fallback)
			} else {
				v.Text = ""
			}
		}
	}
	return errors.Join(errs...)
}

func (s *Settings) unknown(v *Value) error {
	if near := Nearest(v.Key); near != "" {
		return fmt.Errorf("%s: unknown setting %s; did you mean %s?", v.Origin, v.Key, near)
	}
	return fmt.Errorf("%s: unknown setting %s; `creel config print` lists all", v.Origin, v.Key)
}

func (s *Settings) keys() []string { return slices.Sorted(maps.Keys(s.values)) }

// Dir is the configuration directory in use, "" for none.
func (s *Settings) Dir() string { return s.dir }

// heard reports to Sources.Read that a key was read. It also reports the keys that its value refers to.
func (s *Settings) heard(key string) {
	row, ok := Find(key)
	if s.read == nil || !ok {
		return
	}
	s.read(row.Key)
	if v, ok := s.values[key]; ok {
		for rest := v.Raw; ; {
			_, after, found := strings.Cut(rest, "${")
			name, next, closed := strings.Cut(after, "}")
			if !found || !closed {
				return
			}
			if name != key {
				s.heard(name)
			}
			rest = next
		}
	}
}

// Lookup returns the value in force of any key, known or not. It also returns whether a source or a default sets the
// key.
func (s *Settings) Lookup(key string) (*Value, bool) {
	s.heard(key)
	v, ok := s.values[key]
	return v, ok
}

// Matching returns the values whose key matches a pattern of the registry, sorted by key:
// Matching("hadoop.proxyuser.*.hosts").
func (s *Settings) Matching(pattern string) []*Value {
	s.heard(pattern)
	var out []*Value
	for _, key := range s.keys() {
		if matches(pattern, key) {
			out = append(out, s.values[key])
		}
	}
	return out
}

// CapacityScheduler returns the expanded properties that describe the queues for the CapacityScheduler. They come from
// every yarn.scheduler.capacity.* and creel.scheduler.* of the site files (and the mappings of application names). All
// of capacity-scheduler.xml overrides these, and -D overrides both. They are in the order of the files.
func (s *Settings) CapacityScheduler() ([]Property, error) {
	return s.schedulerProperties(s.capacity)
}

// ReloadCapacityScheduler rereads capacity-scheduler.xml and returns the result of CapacityScheduler for its new
// content. It does not change s.
func (s *Settings) ReloadCapacityScheduler() ([]Property, error) {
	if s.dir == "" {
		return s.schedulerProperties(nil)
	}
	props, err := readOptional(filepath.Join(s.dir, "capacity-scheduler.xml"))
	if err != nil {
		return nil, err
	}
	return s.schedulerProperties(props)
}

func (s *Settings) schedulerProperties(file []Property) ([]Property, error) {
	index := map[string]int{}
	var out []Property
	put := func(p Property) {
		if i, ok := index[p.Name]; ok {
			if !out[i].Final {
				out[i] = p
			}
			return
		}
		index[p.Name] = len(out)
		out = append(out, p)
	}
	var late []Property
	for _, row := range All() {
		if schedulerKey(row.Key) {
			s.heard(row.Key)
		}
	}
	for _, key := range s.keys() {
		v := s.values[key]
		if v.Origin.Source == "default" || !schedulerKey(key) {
			continue
		}
		p := Property{Name: key, Value: v.Raw, Final: v.Final, File: v.Origin.File, Line: v.Origin.Line}
		if v.Origin.Source == "file" {
			put(p)
		} else {
			p.File = v.Origin.String()
			late = append(late, p)
		}
	}
	for _, p := range file {
		put(p)
	}
	for _, p := range late {
		if i, ok := index[p.Name]; ok {
			out[i].Final = false
		}
		put(p)
	}
	local := map[string]string{}
	for _, p := range out {
		local[p.Name] = p.Value
	}
	var errs []error
	for i := range out {
		text, err := s.expandWith(out[i].Value, local)
		if err != nil {
			errs = append(
				errs,
				&FileError{File: out[i].File, Line: out[i].Line, Err: fmt.Errorf("%s: %w", out[i].Name, err)},
			)
		}
		out[i].Value = text // not trimmed: an access list of groups begins with a space
	}
	return out, errors.Join(errs...)
}

// schedulerKey reports whether a key of a site file belongs to the queues.
func schedulerKey(key string) bool {
	return strings.HasPrefix(key, "yarn.scheduler.capacity.") || strings.HasPrefix(key, "creel.scheduler.") ||
		strings.HasPrefix(key, "yarn.scheduler.queue-placement-rules.")
}

// FairSchedulerFile returns the path of the allocation file and its bytes, nil if there is none. A relative
// yarn.scheduler.fair.allocation.file is relative to the configuration directory.
func (s *Settings) FairSchedulerFile() (path string, data []byte, err error) {
	path = s.String("yarn.scheduler.fair.allocation.file")
	if !filepath.IsAbs(path) {
		if s.dir == "" {
			return path, nil, nil
		}
		path = filepath.Join(s.dir, path)
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return path, nil, nil
	}
	if err != nil {
		return path, nil, err
	}
	if info.Size() > maxFileBytes {
		return path, nil, &FileError{File: path, Err: fmt.Errorf("larger than %d MiB", maxFileBytes>>20)}
	}
	data, err = os.ReadFile(path)
	return path, data, err
}

// systemProperty returns the Java system properties that configuration files commonly use.
func systemProperty(name string) (string, bool) {
	switch name {
	case "user.name":
		if u, err := user.Current(); err == nil {
			return u.Username, true
		}
	case "user.home":
		if home, err := os.UserHomeDir(); err == nil {
			return home, true
		}
	case "user.dir":
		if dir, err := os.Getwd(); err == nil {
			return dir, true
		}
	case "java.io.tmpdir":
		return os.TempDir(), true
	}
	return "", false
}

// typed returns the text of a key. The registry must define the key with one of the types.
func (s *Settings) typed(key string, types ...Type) (string, *Setting) {
	row, ok := Find(key)
	if !ok {
		panic("settings: " + key + " is not in the registry")
	}
	if !slices.Contains(types, row.Type) {
		panic(fmt.Sprintf("settings: %s is of type %s, read as %s", key, row.Type, types[0]))
	}
	s.heard(key)
	if v, ok := s.values[key]; ok {
		return v.Text, row
	}
	return row.Default, row
}

// String returns the text of a setting whose value is a text. That is a string, class, path, URL, address, or a choice
// from a set (as the registry spells it).
func (s *Settings) String(key string) string {
	text, row := s.typed(key, String, Class, Path, URL, Enum, Address)
	for _, c := range row.Choices {
		if strings.EqualFold(c, text) {
			return c
		}
	}
	return text
}

// ACL returns an access list as written: a list that begins with a space names only groups.
func (s *Settings) ACL(key string) string {
	text, _ := s.typed(key, ACL)
	return text
}

// Int returns an Int or Long setting; 0 if it is empty.
func (s *Settings) Int(key string) int { return int(s.Long(key)) }

// Long returns an Int or Long setting; 0 if it is empty.
func (s *Settings) Long(key string) int64 {
	text, _ := s.typed(key, Long, Int)
	n, _ := parseInt(text, 64)
	return n
}

// Bool returns a Bool setting; false if it is empty.
func (s *Settings) Bool(key string) bool {
	text, _ := s.typed(key, Bool)
	b, _ := parseBool(text)
	return b
}

// Float returns a Float setting, or a Percent one in percent; 0 if empty.
func (s *Settings) Float(key string) float64 {
	text, row := s.typed(key, Float, Percent)
	if row.Type == Percent {
		f, _ := parsePercent(text)
		return f
	}
	f, _ := parseFloat(text)
	return f
}

// Duration returns a Duration setting; 0 if it is empty.
func (s *Settings) Duration(key string) time.Duration {
	text, row := s.typed(key, Duration)
	d, _ := ParseDuration(text, row.Unit)
	return d
}

// Bytes returns a size in bytes; 0 if it is empty.
func (s *Settings) Bytes(key string) int64 {
	text, _ := s.typed(key, Bytes)
	n, _ := ParseBytes(text)
	return n
}

// List returns the items of a List setting.
func (s *Settings) List(key string) []string {
	text, _ := s.typed(key, List)
	return SplitList(text)
}

// Address returns host:port. Without a written port it uses the port of the default. It returns "" if the setting is
// empty.
func (s *Settings) Address(key string) string {
	text, row := s.typed(key, Address)
	if text == "" {
		return ""
	}
	host, port, err := ParseAddress(text, row.Port)
	if err != nil {
		return ""
	}
	return joinHostPort(host, port)
}

// AddressOf returns host:port of the ResourceManager with an id in an HA pair. It is the value of the key with the id
// appended. Otherwise it is yarn.resourcemanager.hostname.ID with the key's own port; "" if neither is set. An id
// contains no dot.
func (s *Settings) AddressOf(key, id string) string {
	if address := s.Address(key + "." + id); address != "" {
		return address
	}
	host := s.String("yarn.resourcemanager.hostname." + id)
	row, ok := Find(key)
	if host == "" || !ok {
		return ""
	}
	return joinHostPort(host, row.Port)
}

// ListenOf is Listen for the ResourceManager with an id in an HA pair.
func (s *Settings) ListenOf(key, id, bindHostKey string) string {
	address := s.AddressOf(key, id)
	bind, _ := s.typed(bindHostKey, String)
	if bind == "" || address == "" {
		return address
	}
	_, port, _ := ParseAddress(address, 0)
	return joinHostPort(bind, port)
}

// Listen returns the address to listen on for an Address setting. If bindHostKey (such as
// yarn.resourcemanager.bind-host) is set, it is the setting's port on that host. Otherwise it is the address itself.
func (s *Settings) Listen(key, bindHostKey string) string {
	address := s.Address(key)
	bind, _ := s.typed(bindHostKey, String)
	if bind == "" || address == "" {
		return address
	}
	_, port, _ := ParseAddress(address, 0)
	return joinHostPort(bind, port)
}
