// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// How YARN writes the time at which an application is killed.
const (
	expiryTime = "2006-01-02T15:04:05.000-0700" // yyyy-MM-dd'T'HH:mm:ss.SSSZ
	noExpiry   = "UNLIMITED"
)

// Invalid returns an error about a request that cannot be carried out as it is.
func Invalid(format string, args ...any) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: fmt.Sprintf(format, args...)}
}

// FormatExpiry writes the time at which an application is killed; the zero time
// means never.
func FormatExpiry(t time.Time) string {
	if t.IsZero() {
		return noExpiry
	}
	return t.Format(expiryTime)
}

// ParseExpiry reads the form of FormatExpiry.
func ParseExpiry(text string) (time.Time, error) {
	if text == noExpiry {
		return time.Time{}, nil
	}
	t, err := time.Parse(expiryTime, text)
	if err != nil {
		return t, Invalid(
			"Expire time is not in ISO8601 format. ISO8601 supported format is yyyy-MM-dd'T'HH:mm:ss.SSSZ. Configured timeout value is %s",
			text,
		)
	}
	return t, nil
}

func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, int64(1<<62)/int64(time.Millisecond))) * time.Millisecond
}

// Time reads a time in ms since the epoch; 0 is no time.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Millis writes a time in ms since the epoch, 0 for none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
