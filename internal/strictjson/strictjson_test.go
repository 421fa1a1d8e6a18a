// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Errors of a document use its own names.
func TestErrorsUseDocumentTerms(t *testing.T) {
	type ask struct {
		Count int       `json:"count"`
		Share float64   `json:"share"`
		At    time.Time `json:"at"`
		Names []string  `json:"names"`
	}
	type order struct {
		Asks  []ask            `json:"asks"`
		Small int8             `json:"small"`
		On    bool             `json:"on"`
		By    map[string]int64 `json:"by"`
	}
	for document, want := range map[string]string{
		`{}`:                           "",
		` {"on":true} ` + "\n":         "",
		``:                             "it is empty",
		`{"on":`:                       "it ends too early",
		`[]`:                           "it is a list, not an object",
		`"x"`:                          "it is a text, not an object",
		`{"asks":{}}`:                  "asks has an object where a list is expected",
		`{"asks":[{"count":"3"}]}`:     "asks.count has a text where a whole number is expected",
		`{"asks":[{"count":1.5}]}`:     "asks.count has the number 1.5 where a whole number is expected",
		`{"asks":[{"share":true}]}`:    "asks.share has true or false where a number is expected",
		`{"asks":[{"names":[[]]}]}`:    "asks.names has a list where a text is expected",
		`{"small":300}`:                "small has the number 300, which is out of range",
		`{"by":{"a":{}}}`:              "by has an object where a whole number is expected",
		`{"on":1}`:                     "on has a number where true or false is expected",
		`{"off":true}`:                 `unknown field "off"; did you mean "on"?`,
		`{"asks":[{"cuont":1}]}`:       `unknown field "cuont"; did you mean "count"?`,
		`{"count":1}`:                  `field "count" is in the wrong place`,
		`{"everything":true}`:          `unknown field "everything"`,
		`{"on":true}}`:                 "trailing text after the document",
		`{"on":true} {"on":false}`:     "trailing text after the document",
		`{"on":yes}`:                   "invalid character 'y' looking for beginning of value",
		`{"asks":[{"at":"tomorrow"}]}`: `parsing time "tomorrow"`,
	} {
		err := Unmarshal([]byte(document), &order{})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != want && (want == "" || !strings.HasPrefix(text, want)) || strings.Contains(text, "json:") {
			t.Errorf("%s: %q, want %q", document, text, want)
		}
	}
	var half map[string]int
	if err := Worded(json.Unmarshal([]byte(`{"a"`), &half)); err == nil || err.Error() != "it ends too early" {
		t.Errorf("half a document, read by json.Unmarshal: %v", err)
	}
}
