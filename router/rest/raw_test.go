// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/router"
	"pgregory.net/rapid"
)

// What is read byte by byte is the number that strconv reads.
func TestNumbersAreReadAsStrconvReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`"?-?[0-9]{0,21}(\.[0-9]{0,3})?([eE]-?[0-9]{1,2})?"?`),
			rapid.Map(rapid.Int64(), func(i int64) string { return strconv.FormatInt(i, 10) }),
			rapid.SampledFrom([]string{"", `"`, "-", "true", "null", "NaN", "+1", "-Infinity", "{}", "9223372036854775808"}),
		).Draw(t, "text")
		got, ok := jsonForm{}.Number([]byte(text))

		bare := strings.Trim(text, `"`)
		want, wantOK := router.Number{}, false
		if bare != "" && (bare[0] == '-' || bare[0] >= '0' && bare[0] <= '9') {
			if i, err := strconv.ParseInt(bare, 10, 64); err == nil {
				want, wantOK = router.Number{Int: i, Float: float64(i)}, true
			} else if f, err := strconv.ParseFloat(bare, 64); err == nil {
				want, wantOK = router.Number{Float: f, IsFloat: true}, true
			}
		}
		if ok != wantOK || ok && got != want {
			t.Errorf("%q: got %+v %t, want %+v %t", text, got, ok, want, wantOK)
		}
	})
}
