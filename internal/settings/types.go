// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Type is the syntax of a setting's text.
type Type uint8

const (
	String   Type = iota
	Enum          // one of Setting.Choices, case does not matter
	Int           // 32 bits
	Long          // 64 bits
	Bool          // true or false
	Float         // a number
	Percent       // a number of percent, 0 to 100, the sign is optional
	Duration      // 250ms, 10s, 5m, 1h, 1d; a plain number is in the setting's unit
	Bytes         // 512k, 64MB, 1g; a plain number is bytes
	Address       // host:port; a host alone takes the port of the default
	List          // comma separated, spaces around items dropped
	Class         // the name of a Java class
	Path          // a file or directory
	URL           // a store, an endpoint
	ACL           // users, a space, groups; * means all users
)

var typeNames = [...]string{
	"string",
	"enum",
	"int",
	"long",
	"bool",
	"float",
	"percent",
	"duration",
	"bytes",
	"address",
	"list",
	"class",
	"path",
	"url",
	"access list",
}

func (t Type) String() string { return typeNames[t] }

// ParseDuration reads a time like Hadoop's Configuration.getTimeDuration: a whole number with one of the suffixes ns,
// us, ms, s, m, h, d. A number without a suffix is in the given unit. Times beyond 292 years are rejected.
func ParseDuration(text string, unit time.Duration) (time.Duration, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	for _, u := range [...]struct {
		suffix string
		unit   time.Duration
	}{
		{"ns", time.Nanosecond}, {"us", time.Microsecond}, {"ms", time.Millisecond},
		{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
	} {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = strings.TrimSpace(rest), u.unit
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, errors.New("not a time; write a whole number with ms, s, m, h or d, such as 10s")
	}
	if d := time.Duration(n) * unit; n == 0 || (d/unit == time.Duration(n) && (d < 0) == (n < 0)) {
		return d, nil
	}
	return 0, errors.New("a time longer than 292 years")
}

// ParseBytes reads a size: a whole number with k, m, g, t or p (powers of 1024,
// an optional b or iB after it), or plain bytes.
func ParseBytes(text string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	s = strings.TrimSuffix(s, "b")
	s = strings.TrimSuffix(s, "i")
	shift := uint(0)
	if s != "" {
		if i := strings.IndexByte("kmgtp", s[len(s)-1]); i >= 0 {
			shift, s = uint(i+1)*10, strings.TrimSpace(s[:len(s)-1])
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, errors.New("not a size; write a whole number with k, m, g or t, such as 64m")
	}
	if n > math.MaxInt64>>shift || n < math.MinInt64>>shift {
		return 0, errors.New("a size beyond 64 bits")
	}
	return n << shift, nil
}

// ParseAddress splits host:port. A host alone gets defaultPort, unless that is negative. An IPv6 host with a port must
// be in brackets.
func ParseAddress(text string, defaultPort int) (host string, port int, err error) {
	s := strings.TrimSpace(text)
	if s == "" {
		return "", 0, errors.New("no address; write host:port")
	}
	if strings.ContainsAny(s, " /,") {
		return "", 0, errors.New("not an address; write host:port")
	}
	bare := !strings.Contains(s, ":") || strings.HasSuffix(s, "]") ||
		(strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "["))
	if bare {
		if defaultPort < 0 {
			return "", 0, errors.New("the port is missing; write host:port")
		}
		return strings.Trim(s, "[]"), defaultPort, nil
	}
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, errors.New("not an address; write host:port")
	}
	port, err = strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q is not a port; it is a number from 0 to 65535", p)
	}
	return host, port, nil
}

// SplitList splits at commas. It drops spaces around items, and empty items.
func SplitList(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("neither true nor false")
}

func parseFloat(text string) (float64, error) {
	// Java's numbers may end in f or d.
	s := strings.TrimSpace(text)
	f, err := strconv.ParseFloat(strings.TrimRight(s, "fFdD"), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, errors.New("not a number")
	}
	return f, nil
}

func parsePercent(text string) (float64, error) {
	f, err := parseFloat(strings.TrimSuffix(strings.TrimSpace(text), "%"))
	if err != nil || f < 0 || f > 100 {
		return 0, errors.New("not a percentage; it is a number from 0 to 100")
	}
	return f, nil
}

// parseInt reads a whole number of the given bits; it accepts 0x as Hadoop does.
func parseInt(text string, bits int) (int64, error) {
	s := strings.TrimSpace(text)
	base := 10
	if rest, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		s, base = rest, 16
	}
	n, err := strconv.ParseInt(s, base, bits)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("does not fit %d bits", bits)
		}
		return 0, errors.New("not a whole number")
	}
	return n, nil
}

// check parses text as the setting's type. For types without an empty value an empty text means "not set"; getters then
// return the zero value.
func (s *Setting) check(text string) error {
	text = strings.TrimSpace(text)
	if text == "" {
		switch s.Type {
		case String, List, Class, Path, URL, Address:
			return nil
		}
		if s.Default == "" {
			return nil
		}
	}
	var err error
	var n float64 // for numeric types
	var whole int64
	var long time.Duration
	switch s.Type {
	case Int:
		whole, err = parseInt(text, 32)
		n = float64(whole)
	case Long:
		whole, err = parseInt(text, 64)
		n = float64(whole)
	case Bool:
		_, err = parseBool(text)
	case Float:
		n, err = parseFloat(text)
	case Percent:
		n, err = parsePercent(text)
	case Duration:
		long, err = ParseDuration(text, s.Unit)
		n = float64(long)
	case Bytes:
		whole, err = ParseBytes(text)
		n = float64(whole)
	case Address:
		_, _, err = ParseAddress(text, s.Port)
	case Enum:
		for _, c := range s.Choices {
			if strings.EqualFold(c, text) {
				return nil
			}
		}
		err = fmt.Errorf("not one of %s", strings.Join(s.Choices, ", "))
	}
	if err == nil {
		err = s.Least.of(n)
	}
	return err
}
