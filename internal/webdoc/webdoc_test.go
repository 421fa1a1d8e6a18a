// SPDX-License-Identifier: Apache-2.0

package webdoc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/internal/webdoc"
)

type document struct {
	XMLName xml.Name `json:"-" xml:"doc"`
	Int     *webdoc.Int
	Long    webdoc.Long
	Flag    webdoc.Flag
	Text    webdoc.Text
	List    webdoc.Many[webdoc.Text]
	Map     webdoc.Pairs[webdoc.Long]
}

func decode(kind webdoc.Kind, text string) (document, error) {
	var d document
	err := webdoc.Body{Kind: kind, Text: []byte(text)}.Decode(&d)
	d.XMLName = xml.Name{}
	return d, err
}

func TestValuesAsHadoopReadsThem(t *testing.T) {
	five := webdoc.Int(5)
	entries := func(list ...int64) (p webdoc.Pairs[webdoc.Long]) {
		for _, v := range list {
			p.Entry = append(p.Entry, webdoc.Entry[webdoc.Long]{Key: "k", Value: webdoc.Long(v)})
		}
		return p
	}
	for text, want := range map[string]document{
		`{"Int":5,"Long":-9223372036854775808,"Flag":true}`:           {Int: &five, Long: -1 << 63, Flag: true},
		`{"Int":" 5 ","Long":"+7\n","Flag":" true"}`:                  {Int: &five, Long: 7, Flag: true},
		`{"Int":[5],"Long":["7"],"Flag":[1]}`:                         {Int: &five, Long: 7, Flag: true},
		`{"Int":null,"Long":null,"Flag":null,"List":null,"Map":null}`: {},
		`{"Int":"","Long":[],"Flag":"0","Other":{"a":[1]}}`:           {Int: new(webdoc.Int)},
		`{"Text":7.50,"List":[1,true,["b"]],"Map":{"entry":{"key":5,"value":1}}}`: {
			Text: "7.50", List: texts("1", "true", "b"), Map: webdoc.Pairs[webdoc.Long]{Entry: []webdoc.Entry[webdoc.Long]{{Key: "5", Value: 1}}},
		},
		`{"Text":[" a "],"List":null}`: {Text: " a "},
		`{"Text":null}`:                {},
		`{"List":"a","Map":{"entry":{"key":"k","value":"1"}}}`:                    {List: texts("a"), Map: entries(1)},
		`{"List":["a","b"],"Map":{"entry":[{"key":"k","value":1}]}}`:              {List: texts("a", "b"), Map: entries(1)},
		`{"Map":{"entry":{"key":"k","value":1},"entry":{"key":"k","value":[2]}}}`: {Map: entries(1, 2)},
		`<doc><Int> 5 </Int><Long>+7</Long><Flag>1</Flag><List>a</List></doc>`:    {Int: &five, Long: 7, Flag: true, List: texts("a")},
		` <!-- a --><doc><Int/><Map><entry><key>k</key><value>1</value></entry></Map></doc> <!-- b -->`: {
			Int: new(webdoc.Int), Map: entries(1),
		},
	} {
		kind := webdoc.JSON
		if strings.Contains(text, "<") {
			kind = webdoc.XML
		}
		if got, err := decode(kind, text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func texts(list ...webdoc.Text) webdoc.Many[webdoc.Text] { return list }

func TestWrongValuesAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		`{"Int":5.5}`:                    "Int has the number 5.5 where a whole number is expected",
		`{"Int":1e3}`:                    "Int has the number 1e3",
		`{"Int":2147483648}`:             "Int has the number 2147483648, which is out of range",
		`{"Long":"9223372036854775808"}`: "Long has the number 9223372036854775808, which is out of range",
		`{"Long":""}`:                    `Long has the text ""`,
		`{"Long":"5 GB"}`:                `Long has the text "5 GB" where a whole number is expected`,
		`{"Long":"+-5"}`:                 `Long has the text "+-5"`,
		`{"Long":"0x10"}`:                `Long has the`,
		`{"Long":"1_000"}`:               `Long has the`,
		`{"Long":[5,6]}`:                 "Long has a list where a whole number is expected",
		`{"Long":[[5]]}`:                 "Long has a list",
		`{"Long":{"a":5}}`:               "Long has an object",
		`{"Long":true}`:                  `Long has the text "true"`,
		`{"Text":["a","b"]}`:             "Text has a list where a text is expected",
		`{"Text":{"a":"b"}}`:             "Text has an object where a text is expected",
		`{"Flag":"True"}`:                `Flag has the text "True" where true or false is expected`,
		`{"Map":{"entry":{"key":"k","value":"x"}}}`: `the text "x" where a whole number is expected`,
		`{"Long":5}{"Long":6}`:                      "after top-level value",
		`{"Long":5} x`:                              "after top-level value",
		``:                                          "ends too early",
		`<doc><Long>5.5</Long></doc>`:               "Long has the number 5.5",
		`<doc><Long/></doc>`:                        `Long has the text ""`,
		`<doc><Flag>yes</Flag></doc>`:               `Flag has the text "yes"`,
		`<other><Long>5</Long></other>`:             "<doc> but have <other>",
		`<doc/><doc/>`:                              "trailing text",
		`<doc/>x`:                                   "outside the document's root",
		`x<doc/>`:                                   "outside the document's root",
		`<doc>`:                                     "unexpected EOF",
		`<?xml version="1.0"?>`:                     "EOF",
	} {
		kind := webdoc.JSON
		if strings.Contains(text, "<") {
			kind = webdoc.XML
		}
		got, err := decode(kind, text)
		if err == nil {
			t.Errorf("%s is read as %+v", text, got)
		} else if worded := strictjson.Worded(err).Error() + err.Error(); !strings.Contains(worded, want) {
			t.Errorf("%s: %s; want %s", text, worded, want)
		}
	}
}

func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text)) // into memory: no error
	z.Close()
	return b.String()
}

func wide(text string, bigEndian bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		if bigEndian {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func TestBodiesOfEveryTypeAndCharset(t *testing.T) {
	const doc, xmlDoc = `{"Text":"é"}`, "<doc><Text>é</Text></doc>"
	const latin, xmlLatin = "{\"Text\":\"\xe9\"}", "<doc><Text>\xe9</Text></doc>"
	type header = map[string]string
	type body struct {
		head header
		text string
		want string // an error's part; empty: the document is read
		kind error
	}
	for _, c := range []body{
		{header{"Content-Type": "application/json"}, doc, "", nil},
		{header{"Content-Type": "Application/JSON; Charset=UTF-8"}, "\xef\xbb\xbf" + doc, "", nil},
		{header{"Content-Type": "application/json; charset=iso-8859-1"}, latin, "", nil},
		{header{"Content-Type": "application/json"}, latin, "not UTF-8", creel.ErrInvalidRequest},
		{header{"Content-Type": "application/json;charset=us-ascii"}, doc, "not ASCII", creel.ErrInvalidRequest},
		{header{"Content-Type": "application/json; charset=UTF-16"}, wide(doc, true), "", nil},
		{header{"Content-Type": "application/json"}, "\xff\xfe" + wide(doc, false), "", nil},
		{header{"Content-Type": "application/json; charset=UTF-16le"}, wide(doc, false), "", nil},
		{header{"Content-Type": "application/json; charset=UTF-16le"}, wide(doc, false) + "x", "not UTF-16", creel.ErrInvalidRequest},
		{header{"Content-Type": "application/json; charset=koi8-r"}, doc, "koi8-r", webdoc.ErrMediaType},
		{header{"Content-Type": "text/xml"}, xmlDoc, "", nil},
		{header{"Content-Type": "APPLICATION/XML"}, `<?xml version="1.0" encoding="UTF-8"?>` + xmlDoc, "", nil},
		{header{"Content-Type": "application/xml"}, `<?xml version="1.0" encoding='ISO-8859-1'?>` + xmlLatin, "", nil},
		{header{"Content-Type": "application/xml; charset=latin1"}, `<?xml version="1.0" encoding="UTF-8"?>` + xmlLatin, "", nil},
		{header{"Content-Type": "application/xml"}, wide(`<?xml version="1.0" encoding="UTF-16"?>`+xmlDoc, false), "", nil},
		{header{"Content-Type": "application/xml"}, "\xfe\xff" + wide(`<?xml version="1.0" encoding="utf-16"?>`+xmlDoc, true), "", nil},
		{header{"Content-Type": "application/xml"}, `<?xml version="1.0" encoding="koi8-r"?>` + xmlDoc, "koi8-r", webdoc.ErrMediaType},
		{header{"Content-Type": "application/json", "Content-Encoding": "GZIP"}, packed(doc), "", nil},
		{header{"Content-Type": "application/xml", "Content-Encoding": "x-gzip"}, packed(xmlDoc), "", nil},
		{header{"Content-Type": "application/json", "Content-Encoding": "identity"}, doc, "", nil},
		{header{"Content-Type": "application/json", "Content-Encoding": "gzip"}, doc, "not gzip", creel.ErrInvalidRequest},
		{header{"Content-Type": "application/json", "Content-Encoding": "gzip"}, packed(doc)[:20], "not gzip", creel.ErrInvalidRequest},
		{header{"Content-Type": "application/json", "Content-Encoding": "br"}, doc, `"br"`, webdoc.ErrMediaType},
		{header{"Content-Type": "application/json", "Content-Encoding": "gzip"}, packed(strings.Repeat(" ", 1000)), "too large", nil},
		{header{"Content-Type": "application/json"}, strings.Repeat(" ", 1000), "too large", nil},
		{header{"Content-Type": "text/plain"}, doc, "cannot be read", webdoc.ErrMediaType},
		{header{"Content-Type": "x-application/json"}, doc, "cannot be read", webdoc.ErrMediaType},
		{header{}, doc, "cannot be read", webdoc.ErrMediaType},
		{header{}, "", "EOF", nil},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(c.text))
		for name, value := range c.head {
			r.Header.Set(name, value)
		}
		var d document
		b, err := webdoc.Read(httptest.NewRecorder(), r, 500)
		if err == nil {
			err = b.Decode(&d)
		}
		switch {
		case c.want == "" && (err != nil || d.Text != "é"):
			t.Errorf("%v %q is read as %q, %v", c.head, c.text, d.Text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v %q: %v, want %s", c.head, c.text, err, c.want)
		case c.kind != nil && !errors.Is(err, c.kind):
			t.Errorf("%v %q: %v is not %v", c.head, c.text, err, c.kind)
		case (webdoc.KindOf(r) == webdoc.XML) != strings.Contains(strings.ToLower(c.head["Content-Type"]), "/xml"):
			t.Errorf("%v is of kind %v", c.head, webdoc.KindOf(r))
		}
	}
}

func TestAcceptedTypes(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "application/xml": true, "Application/XML": true,
		"application/json, application/xml": false, "application/xml, application/json": true,
		"application/json;q=0.5, application/xml": true, "application/xml;q=0.5,application/json;q=0.4": true,
		"application/xml;q=0": false, "application/xml;q=0.0, */*": false, "application/json;q=0, */*;q=0.1": true,
		"application/json; Q=0, application/*": true, "application/*, application/xml": true,
		"application/xml;q=0.1, */*": false, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"application/xmlrpc": false, "text/plain": false, "application/json;q=0": false, ";;,application/xml": true,
		"application/xml; charset=utf-8": true, "application/xml;q=high": true,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		if got := webdoc.PrefersXML(r); got != want {
			t.Errorf("Accept: %s prefers XML: %v", accept, got)
		}
	}
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "deflate, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, br": false, "xgzip": false,
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": {accept}}}
		if got := webdoc.TakesGzip(r); got != want {
			t.Errorf("Accept-Encoding: %s takes gzip: %v", accept, got)
		}
	}
}

// A body of any bytes and headers is rejected, or is UTF-8 within its bound.
func FuzzRead(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add("application/json", "", []byte(`{"Int":" 5 ","Map":{"entry":{"key":"k","value":[1]}}}`))
	f.Add("application/xml; charset=utf-16", "", []byte(wide("<doc><Long>5</Long></doc>", true)))
	f.Add("text/xml", "gzip", []byte(packed(`<?xml version="1.0" encoding="latin1"?><doc><Flag>1</Flag></doc>`)))
	f.Fuzz(func(t *testing.T, kind, packing string, text []byte) {
		r := httptest.NewRequest("PUT", "/", bytes.NewReader(text))
		r.Header["Content-Type"], r.Header["Content-Encoding"] = []string{kind}, []string{packing}
		r.Header["Accept"] = []string{kind}
		webdoc.PrefersXML(r)
		b, err := webdoc.Read(httptest.NewRecorder(), r, 4096)
		if err != nil {
			return
		}
		if b.Kind != webdoc.Other && (!utf8.Valid(b.Text) || len(b.Text) > 2*4096) {
			t.Fatalf("%q: %d bytes", b.Text, len(b.Text))
		}
		var d document
		if b.Decode(&d) == nil && b.Kind == webdoc.Other {
			t.Fatal("a body of no known type was decoded")
		}
	})
}
