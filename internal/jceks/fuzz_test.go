// SPDX-License-Identifier: Apache-2.0

package jceks

import (
	"crypto/sha1"
	"os"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
)

// Java encrypted "secret" with a salt of two equal halves, the password none and 3 iterations.
func TestSaltOfEqualHalvesDecrypts(t *testing.T) {
	plain, err := unseal(object{fields: map[string]any{
		"sealAlg":          "PBEWithMD5AndTripleDES",
		"encodedParams":    []byte{0x30, 13, 4, 8, 1, 2, 3, 4, 1, 2, 3, 4, 2, 1, 3},
		"encryptedContent": []byte{0x88, 0xc7, 0x49, 0x3a, 0x61, 0xd9, 0x18, 0xd4},
	}}, "none")
	if err != nil || string(plain) != "secret" {
		t.Errorf("%q, %v", plain, err)
	}
}

// A keystore with a right digest and any content is read or rejected, in bounded memory. Its encryption is read only
// with few iterations.
func FuzzOpen(t *testing.F) {
	f := propertytest.Fuzz(t)
	for name, password := range map[string]string{"none.jceks": "none", "guarded.jceks": "s3cret"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		f.Add(b[:len(b)-sha1.Size], password)
	}
	f.Fuzz(func(t *testing.T, body []byte, password string) {
		s, err := Open(append(body[:len(body):len(body)], digestOf(body, password)...), password)
		if err != nil {
			return
		}
		for alias, o := range s.sealed {
			encoded, _ := o.fields["encodedParams"].([]byte)
			if len(encoded) == 15 { // a number of one byte
				_, _, _ = s.Secret(alias)
			}
		}
	})
}
