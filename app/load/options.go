// SPDX-License-Identifier: Apache-2.0

package load

import "fmt"

// OptionError is an invalid option; nothing was sent.
type OptionError struct{ error }

// Unwrap returns the reason why an option is invalid.
func (e *OptionError) Unwrap() error { return e.error }

func badOption(format string, args ...any) error { return &OptionError{fmt.Errorf(format, args...)} }
