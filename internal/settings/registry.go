// SPDX-License-Identifier: Apache-2.0

package settings

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/nearest"
)

// Setting is one row of the registry.
type Setting struct {
	Key     string // "*" matches one part of the name, "**" several, as in hadoop.proxyuser.*.hosts
	Type    Type
	Default string        // as a file would write it; may contain ${other.key}
	Unit    time.Duration // unit of a plain number, for a Duration
	Port    int           // port of an Address written without one; -1 if it must be written
	Choices []string      // of an Enum
	Least   Bound         // for a number; see bounds.go
	Doc     string        // one sentence, without the name
	Section string        // heading on the reference page
	Secret  bool          // printed as ****
	Status  Status        // how daemons use it; see status.go
	Note    string        // reason for no effect, or the current behavior
}

// registry is built once from the tables in keys*.go.
var registry = sync.OnceValue(func() *tables {
	t := &tables{exact: map[string]*Setting{}, hadoop: hadoopDefaults()}
	for _, section := range sections {
		for i := range section.rows {
			s := &section.rows[i]
			s.Section = section.title
			if s.Type == Duration && s.Unit == 0 {
				s.Unit = time.Millisecond
			}
			if s.Type == Address {
				s.Port = portOf(s.Default)
				if all := t.exact[strings.TrimSuffix(s.Key, ".*")]; all != nil { // one of a pair
					s.Port = all.Port
				}
			}
			t.all = append(t.all, s)
			if strings.Contains(s.Key, "*") {
				t.patterns = append(t.patterns, s)
			} else {
				t.exact[s.Key] = s
			}
		}
	}
	t.setStatus()
	t.setBounds()
	return t
})

type tables struct {
	all      []*Setting
	exact    map[string]*Setting
	patterns []*Setting
	hadoop   map[string]string // names that Hadoop knows, creel's or not, with their defaults
}

type section struct {
	title string
	rows  []Setting
}

// hadoopNames lists the names of Hadoop 3.4's core-default.xml and yarn-default.xml with their defaults. They
// distinguish a key that creel ignores from a misspelt one. They also distinguish a value that asks for something from
// one that does not.
//
//go:embed hadoop-names.txt
var hadoopNames string

// All returns the registry in the order of the reference page. Callers must not change the rows.
func All() []*Setting { return registry().all }

// Find returns the row of a key, by its exact name or by a pattern.
func Find(key string) (*Setting, bool) {
	t := registry()
	if s, ok := t.exact[key]; ok {
		return s, true
	}
	for _, s := range t.patterns {
		if matches(s.Key, key) {
			return s, true
		}
	}
	return nil, false
}

// Kind is creel's treatment of a key.
type Kind uint8

const (
	Understood Kind = iota // in the registry
	Ignored                // Hadoop's, without meaning for creel
	Unknown                // unknown to creel and Hadoop
)

func (k Kind) String() string { return [...]string{"understood", "ignored", "unknown"}[k] }

// Classify distinguishes keys that creel supports, ignored ones, and unknown ones. Keys outside yarn.*, creel.*,
// hadoop.*, ipc.* and net.* are free names, such as variables and other programs' keys. They are ignored.
func Classify(key string) Kind {
	if _, ok := Find(key); ok {
		return Understood
	}
	if _, ok := deprecated[key]; ok {
		return Understood
	}
	if _, ok := registry().hadoop[key]; ok {
		return Ignored
	}
	if strings.HasPrefix(key, "creel.") {
		return Unknown
	}
	for _, open := range openPrefixes {
		if strings.HasPrefix(key, open) {
			return Ignored
		}
	}
	for _, own := range [...]string{"yarn.", "hadoop.", "ipc.", "net."} {
		if strings.HasPrefix(key, own) {
			return Unknown
		}
	}
	return Ignored
}

// openPrefixes are families of Hadoop keys with free parts in their names.
var openPrefixes = []string{
	"yarn.nodemanager.aux-services.", "yarn.nodemanager.runtime.", "yarn.resource-types.",
	"yarn.nodemanager.resource-type.", "yarn.timeline-service.", "yarn.service.", "yarn.app.mapreduce.",
	"yarn.scheduler.capacity.", "yarn.scheduler.fair.", "yarn.sls.", "yarn.resourcemanager.ha.",
	"yarn.nodemanager.health-checker.", "yarn.federation.", "hadoop.proxyuser.", "hadoop.http.",
	"hadoop.security.", "hadoop.zk.", "hadoop.registry.", "ipc.",
}

// Nearest returns the known name closest to key, or "" if none is close.
func Nearest(key string) string {
	t := registry()
	best := nearest.Word(key, func(yield func(string) bool) {
		for _, s := range t.all {
			if !yield(s.Key) {
				return
			}
		}
	})
	if best == "" && !strings.HasPrefix(key, "creel.") {
		best = nearest.Word(key, slices.Values(t.hadoopKeyNames()))
	}
	return best
}

// matches compares a key with a pattern part by part: "*" matches any one part, "**" one or more parts.
func matches(pattern, key string) bool {
	p, patternRest, patternMore := strings.Cut(pattern, ".")
	k, keyRest, keyMore := strings.Cut(key, ".")
	switch {
	case p != k && (k == "" || p != "*" && p != "**"):
		return false
	case p == "**" && keyMore && matches(pattern, keyRest):
		return true
	case !patternMore || !keyMore:
		return patternMore == keyMore
	}
	return matches(patternRest, keyRest)
}

// portOf reads the port at the end of an address default such as
// ${yarn.resourcemanager.hostname}:8032.
func portOf(address string) int {
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return -1
	}
	n, err := parseInt(address[i+1:], 32)
	if err != nil {
		return -1
	}
	return int(n)
}
