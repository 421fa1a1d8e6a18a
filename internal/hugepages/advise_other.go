// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hugepages

import "errors"

// Advise fails before it comes to these: there is no /sys.
func adviseHuge(span) error { return errors.ErrUnsupported }

func collapse(span) error { return errors.ErrUnsupported }
