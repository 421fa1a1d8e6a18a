// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// YARN's form of the time at which an application is killed:
const (
	expiryTime = "2006-01-02T15:04:05.000-0700" // yyyy-MM-dd'T'HH:mm:ss.SSSZ
	noExpiry   = "UNLIMITED"
)

// Invalid returns the error for an invalid request.
func Invalid(format string, args ...any) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: fmt.Sprintf(format, args...)}
}

// FormatExpiry formats the time at which an application is killed; the zero time means never.
func FormatExpiry(t time.Time) string {
	if t.IsZero() {
		return noExpiry
	}
	return t.Format(expiryTime)
}

// ParseExpiry parses the form of FormatExpiry.
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

// Time converts ms since the epoch; 0 is the zero time.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Millis converts a time to ms since the epoch; the zero time is 0.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
