// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hugepages

import "errors"

// adviseHuge and collapse are never called: Advise fails earlier, because there is no /sys.
func adviseHuge(span) error { return errors.ErrUnsupported }

func collapse(span) error { return errors.ErrUnsupported }
