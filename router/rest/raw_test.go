// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/router"
	"pgregory.net/rapid"
)

// Reading byte by byte yields the number that strconv reads.
func TestNumbersAreReadAsStrconvReadsThem(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
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

// A sum over members may have no form in JSON, or none in the 32 bits that YARN writes: the
// document stays one that can be read.
func TestInvalidJSONNumbersAreZero(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 12: "12.0", 0.5: "0.5", 1e39: "0.0", -1e39: "0.0", math.MaxFloat64: "0.0", math.Inf(1): "0.0", math.NaN(): "0.0",
	} {
		for _, like := range []string{"1.0", `"1.0"`} {
			got := string(jsonForm{}.MakeNumber([]byte(like), router.Number{Float: v, IsFloat: true}))
			if strings.Trim(got, `"`) != want || !json.Valid([]byte(got)) {
				t.Errorf("%v is written %s, want %s", v, got, want)
			}
		}
	}
}

// Diagnostics of a UAM's member, such as why it waits, follow the home's, under the member's name.
func TestDiagnosticsAreOfAllMembers(t *testing.T) {
	m := router.Merger[[]byte]{Form: jsonForm{}}
	for _, c := range []struct{ home, uam, want string }{
		{`{"diagnostics":"all is well"}`, `{"diagnostics":"waits \"here\""}`, `{"diagnostics":"all is well\n[sc-b] waits \"here\""}`},
		{`{"diagnostics":""}`, `{"diagnostics":"waits"}`, `{"diagnostics":"[sc-b] waits"}`},
		{`{"diagnostics":"well"}`, `{"diagnostics":""}`, `{"diagnostics":"well"}`},
		{`{"diagnostics":"well"}`, `{"diagnostics":"well"}`, `{"diagnostics":"well"}`},
		{`{"diagnostics":"well"}`, `{}`, `{"diagnostics":"well"}`},
	} {
		got := m.Merge("AppInfo", []router.Weighed[[]byte]{
			{Member: "sc-a", Value: []byte(c.home)}, {Member: "sc-b", Value: []byte(c.uam)},
		})
		if string(got) != c.want {
			t.Errorf("of %s and %s is made %s, want %s", c.home, c.uam, got, c.want)
		}
	}
}
