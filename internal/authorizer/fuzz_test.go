// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"encoding/json"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
)

// An answer allows only if a plain decoder reads true at its one place. A reason is one line of limited length.
func FuzzAnswer(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, seed := range []string{
		`{"result": true}`, `{"result": {"allow": true, "reason": "r"}}`, `{"result": {"allow": false}}`, `{}`, `[true]`,
		`{"result": "true"}`, `{"result": true, "result": false}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseAnswer(text)
		if err != nil && got != (Answer{}) {
			t.Errorf("%q: %+v with the error %v", text, got, err)
		}
		if len([]rune(got.Why)) > mostReason+1 || oneLine(got.Why) != got.Why {
			t.Errorf("%q: the reason %q", text, got.Why)
		}
		if !got.Allowed {
			return
		}
		var whole map[string]any
		if json.Unmarshal(text, &whole) != nil {
			t.Fatalf("%q: %+v", text, got)
		}
		parts, _ := whole["result"].(map[string]any)
		if whole["result"] != true && parts["allow"] != true {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
