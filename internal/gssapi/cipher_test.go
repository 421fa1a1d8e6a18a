// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	krb "github.com/jcmturner/gokrb5/v8/crypto"
)

// drawn returns bytes that depend on the seed alone.
func drawn(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return b
}

func keyOf(kind int32) Key { return Key{kind, drawn(uint64(kind), suites[kind].size)} }

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The vectors of RFC 8009, appendix A: plaintexts of 0, 6, 16 and 21 bytes with usage 2.
func TestEncryptionMatchesRFC8009(t *testing.T) {
	keys := map[int32]string{
		19: "3705D96080C17728A0E800EAB6E0D23C",
		20: "6D404D37FAF79F9DF0D33568D320669800EB4836472EA8A026D16B7182460C52",
	}
	for _, v := range []struct {
		kind                          int32
		plain, confounder, ciphertext string
	}{
		{19, "", "7E5895EAF2672435BAD817F545A37148", "EF85FB890BB8472F4DAB20394DCA781DAD877EDA39D50C870C0D5A0A8E48C718"},
		{
			19, "000102030405", "7BCA285E2FD4130FB55B1A5C83BC5B24",
			"84D7F30754ED987BAB0BF3506BEB09CFB55402CEF7E6877CE99E247E52D16ED4421DFDF8976C",
		},
		{
			20, "", "F764E9FA15C276478B2C7D0C4E5F58E4",
			"41F53FA5BFE7026D91FAF9BE959195A058707273A96A40F0A01960621AC612748B9BBFBE7EB4CE3C",
		},
	} {
		c, err := newCrypt(Key{v.kind, unhex(t, keys[v.kind])}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.encrypt(nil, unhex(t, v.confounder), unhex(t, v.plain)); !bytes.Equal(got, unhex(t, v.ciphertext)) {
			t.Errorf("type %d, %q: %X", v.kind, v.plain, got)
		}
	}
}

// Each direction, at every length around the block size, against gokrb5's own ciphers.
func TestEncryptionMatchesLibrary(t *testing.T) {
	for kind := range suites {
		key := keyOf(kind)
		c, err := newCrypt(key, usageInitiatorSeal)
		if err != nil {
			t.Fatal(err)
		}
		library, err := krb.GetEtype(kind)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 70 {
			plain := drawn(uint64(n), n)
			ours := c.encrypt([]byte("front"), drawn(99, 16), plain)[len("front"):]
			if n > 0 { // the library does not decrypt an empty message
				if got, err := library.DecryptMessage(key.Value, bytes.Clone(ours), usageInitiatorSeal); err != nil ||
					!bytes.Equal(got, plain) {
					t.Fatalf("type %d, %d bytes: the library decrypts %x, %v", kind, n, got, err)
				}
				_, theirs, err := library.EncryptMessage(key.Value, plain, usageInitiatorSeal)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.decrypt(theirs); err != nil || !bytes.Equal(got, plain) {
					t.Fatalf("type %d, %d bytes of the library: %x, %v", kind, n, got, err)
				}
			}
			if got, err := c.decrypt(ours); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("type %d, %d bytes: %x, %v", kind, n, got, err)
			}
		}
	}
}

func TestDerivedKeysMatchLibrary(t *testing.T) {
	for kind, s := range suites {
		library, err := krb.GetEtype(kind)
		if err != nil {
			t.Fatal(err)
		}
		for usage := range uint32(30) {
			for _, label := range []byte{0xAA, 0x55, 0x99} {
				size := s.macKey
				if label == 0xAA {
					size = s.size
				}
				key := keyOf(kind)
				got, err := derive(key, s, usage, label, size)
				if err != nil {
					t.Fatal(err)
				}
				want, err := library.DeriveKey(key.Value, append(binary.BigEndian.AppendUint32(nil, usage), label))
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("type %d, usage %d, label %x: %x, the library derives %x, %v", kind, usage, label, got, want, err)
				}
			}
		}
	}
}

func TestChangedCiphertextIsRejected(t *testing.T) {
	for kind := range suites {
		c, err := newCrypt(keyOf(kind), usageTicket)
		if err != nil {
			t.Fatal(err)
		}
		whole := c.encrypt(nil, drawn(1, 16), []byte("a message of 30 bytes or so..."))
		for i := range whole {
			changed := bytes.Clone(whole)
			changed[i] ^= 1
			if _, err := c.decrypt(changed); err == nil {
				t.Errorf("type %d: byte %d was changed", kind, i)
			}
			if _, err := c.decrypt(bytes.Clone(whole[:i])); err == nil {
				t.Errorf("type %d: %d bytes were accepted", kind, i)
			}
		}
	}
}

func TestWeakAndWrongKeysAreRejected(t *testing.T) {
	for _, key := range []Key{{23, make([]byte, 16)}, {16, make([]byte, 24)}, {18, make([]byte, 16)}, {17, nil}, {}} {
		if _, err := newCrypt(key, 2); err == nil {
			t.Error(fmt.Sprint("accepted ", key))
		}
	}
}
