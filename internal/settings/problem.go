// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
)

// Problem is a value that prevents the start of a daemon.
type Problem struct {
	Key    string
	Value  string // as displayed: secrets are masked
	Origin string // place where it was written
	Why    string
	Try    string // may be empty
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%s: %s=%s: %s", p.Origin, p.Key, p.Value, p.Why)
	if p.Value == "" {
		text = fmt.Sprintf("%s: %s: %s", p.Origin, p.Key, p.Why)
	}
	if p.Try != "" {
		text += "; " + p.Try
	}
	return text
}

// Problem returns an error for an unusable value of a key, with the reason and a remedy.
func (s *Settings) Problem(key, why, try string) error {
	p := &Problem{Key: key, Why: why, Try: try, Origin: "default"}
	if v, ok := s.values[key]; ok {
		p.Value, p.Origin = s.shown(v), v.Origin.String()
	}
	return p
}

// Invalid marks another package's error as a configuration error, such as one about a queue file.
func Invalid(err error) error {
	if err == nil || IsProblem(err) {
		return err
	}
	return &invalid{err}
}

type invalid struct{ error }

func (i *invalid) Unwrap() error { return i.error }

// IsProblem reports whether an error concerns the configuration, and not the environment.
func IsProblem(err error) bool {
	var p *Problem
	var i *invalid
	return errors.As(err, &p) || errors.As(err, &i)
}
