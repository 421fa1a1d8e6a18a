// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
)

// Signer signs and checks the data that members write into the store, with the cluster's secret. It uses HMAC-SHA256
// with a key derived only for this purpose (HKDF-SHA256, RFC 5869). It is safe for concurrent use.
type Signer struct{ key []byte }

// NewSigner makes the Signer of a cluster's secret.
func NewSigner(secret []byte) (*Signer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "creel member v1", sha256.Size)
	return &Signer{key}, err
}

// mac covers a purpose and parts, each preceded by its length.
func (s *Signer) mac(purpose string, parts ...string) string {
	h := hmac.New(sha256.New, s.key)
	var length [8]byte
	for _, p := range append([]string{purpose}, parts...) {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (s *Signer) memberMAC(m *Member) string {
	a := &m.Addresses
	parts := []string{
		string(m.ID), strconv.FormatInt(m.Epoch, 10), a.Client, a.Scheduler, a.Admin, a.Tracker, a.Web, a.Proxy,
		m.Capability, m.Lease.String(), m.Version,
	}
	if a.HTTPS { // without it the signature is that of earlier releases
		parts = append(parts, "https")
	}
	return s.mac("member", parts...)
}

// Member returns the record with its signature.
func (s *Signer) Member(m Member) Member {
	m.Signature = s.memberMAC(&m)
	return m
}

// GoodMember reports whether a record was signed with this secret.
func (s *Signer) GoodMember(m *Member) bool {
	return hmac.Equal([]byte(m.Signature), []byte(s.memberMAC(m)))
}

// loadMark begins a signed load: a field that readers of loads skip. Its value is
// "sequence:signature".
const loadMark = `{"creelSigned":"`

// The signed parts of a load: all of it, or a part.
const (
	wholeLoad  = "heartbeat"
	partOfLoad = "part of a load"
)

func (s *Signer) loadMAC(what string, id creel.SubclusterID, epoch int64, sequence, load string) string {
	return s.mac(what, string(id), strconv.FormatInt(epoch, 10), sequence, load)
}

// Load returns a heartbeat's load, a JSON object, with its signature inside. sequence rises with each heartbeat of an
// epoch.
func (s *Signer) Load(id creel.SubclusterID, epoch, sequence int64, load []byte) []byte {
	return s.signed(wholeLoad, id, epoch, sequence, load)
}

// Part returns the text of a part of a heartbeat's load, signed like Load.
func (s *Signer) Part(id creel.SubclusterID, epoch, sequence int64, text []byte) []byte {
	return s.signed(partOfLoad, id, epoch, sequence, text)
}

func (s *Signer) signed(what string, id creel.SubclusterID, epoch, sequence int64, load []byte) []byte {
	load = bytes.TrimSpace(load)
	if len(load) < 2 || load[0] != '{' {
		return load
	}
	number := strconv.FormatInt(sequence, 10)
	rest := load[1:]
	out := append([]byte(loadMark), number+":"+s.loadMAC(what, id, epoch, number, string(rest))+`"`...)
	if bytes.TrimSpace(rest)[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// GoodLoad reports whether a load was signed with this secret for a member and its epoch, and returns its sequence
// number.
func (s *Signer) GoodLoad(id creel.SubclusterID, epoch int64, load string) (sequence int64, ok bool) {
	return s.good(wholeLoad, id, epoch, load)
}

// GoodParts is GoodLoad for a load in parts. Each part has a number: that of the head under "", of rows under their
// leaf name.
func (s *Signer) GoodParts(id creel.SubclusterID, epoch int64, load string) (sequences map[string]int64, ok bool) {
	sequences = map[string]int64{}
	for i, part := range partsOf(load) {
		var is struct {
			Leaf string `json:"leaf"`
		}
		sequence, ok := s.good(partOfLoad, id, epoch, part)
		if !ok || json.Unmarshal([]byte(part), &is) != nil || (is.Leaf == "") != (i == 0) {
			return nil, false
		}
		sequences[is.Leaf] = sequence
	}
	return sequences, true
}

func (s *Signer) good(what string, id creel.SubclusterID, epoch int64, load string) (sequence int64, ok bool) {
	mark, marked := strings.CutPrefix(load, loadMark)
	value, rest, ended := strings.Cut(mark, `"`)
	number, signature, both := strings.Cut(value, ":")
	sequence, err := strconv.ParseInt(number, 10, 64)
	if !marked || !ended || !both || err != nil {
		return 0, false
	}
	rest = strings.TrimPrefix(rest, ",")
	return sequence, hmac.Equal([]byte(signature), []byte(s.loadMAC(what, id, epoch, number, rest)))
}
