// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/token"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Values Java wrote.
func TestVLongAsJavaWritesIt(t *testing.T) {
	for v, want := range map[int64]string{
		0: "00", 127: "7f", -112: "90", 128: "8f80", 256: "8e0100", -113: "8770", 1_700_000_000_000: "8a018bcfe56800",
		math.MaxInt64: "887fffffffffffffff", math.MinInt64: "807fffffffffffffff", -129: "8780", -257: "860100",
	} {
		got := token.AppendVLong(nil, v)
		if hex.EncodeToString(got) != want {
			t.Errorf("%d is written %x, want %s", v, got, want)
		}
		r := token.NewReader(got)
		if back := r.VLong(); back != v || r.Err() != nil || len(r.Rest()) != 0 {
			t.Errorf("%s is read as %d, want %d (%v)", want, back, v, r.Err())
		}
	}
}

func TestVIntRange(t *testing.T) {
	r := token.NewReader(token.AppendVLong(nil, math.MaxInt32+1))
	if r.VInt(); !errors.Is(r.Err(), creel.ErrInvalidRequest) {
		t.Errorf("a VInt beyond 32 bits gave %v", r.Err())
	}
}

func TestWritablesRoundTrip(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		v, s, p := rapid.Int64().Draw(t, "v"), rapid.String().Draw(t, "s"), rapid.SliceOf(rapid.Byte()).Draw(t, "p")
		r := token.NewReader(token.AppendBytes(token.AppendText(token.AppendVLong(nil, v), s), p))
		if r.VLong() != v || r.Text() != s || !bytes.Equal(r.Bytes(), p) || r.Err() != nil || len(r.Rest()) != 0 {
			t.Fatalf("%d %q %x did not come back (%v)", v, s, p, r.Err())
		}
	})
}

// FuzzReader checks that any bytes are read within their length, and that a value read without failure is the same
// when written and read again.
func FuzzReader(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, s := range []string{"", "00", "7f", "8f80", "8e0100", "8770", "8a018bcfe56800", "8fff", "80ffffffffffffffff", "0568656c6c6f"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := token.NewReader(b)
		v := r.VLong()
		s := r.Bytes()
		if r.Err() != nil {
			if v2 := r.VLong(); v2 != 0 || len(r.Rest()) != 0 {
				t.Fatalf("reading went on after %v", r.Err())
			}
			return
		}
		if len(s) > len(b) {
			t.Fatalf("%d bytes came out of %d", len(s), len(b))
		}
		again := token.NewReader(token.AppendBytes(token.AppendVLong(nil, v), s))
		if again.VLong() != v || !bytes.Equal(again.Bytes(), s) || again.Err() != nil {
			t.Fatalf("%d %x did not come back", v, s)
		}
	})
}
