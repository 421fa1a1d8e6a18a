// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
)

// Placement is the record of the choice of an application's home, stored with the claim. Every router returns the
// same one, as long as the application has a home.
type Placement struct {
	User     string // the submitter
	Queue    creel.QueuePath
	Received time.Time // time when a router received the submission, by that router's clock, to the ms
	Claimed  time.Time // time when the router requested the claim, by the same clock
	// Tries has the members to which the claiming router forwarded the submission before, and last the member of the
	// claim.
	Tries []PlacementTry
}

// PlacementTry is one choice of a member.
type PlacementTry struct {
	Member creel.SubclusterID
	// Verdict and Err are empty for the last try: its outcome came after the claim.
	Verdict string
	Err     string
	Claimed bool            // the home came from an earlier claim
	Reason  policies.Reason // empty Policy if Claimed
}

// Home returns the chosen member, "" for none.
func (p *Placement) Home() creel.SubclusterID {
	if n := len(p.Tries); n > 0 {
		return p.Tries[n-1].Member
	}
	return ""
}

// placement returns the placement for a claim made now.
func (o *Outcome) placement(now time.Time, reason policies.Reason) *Placement {
	p := Placement{User: o.User, Queue: o.Queue, Received: o.Received, Claimed: now}
	for i := range o.Tries {
		t := &o.Tries[i]
		try := PlacementTry{Member: t.Member, Verdict: t.Verdict.String(), Claimed: t.Claimed, Reason: t.Reason}
		if t.Err != nil {
			try.Err = t.Err.Error()
		}
		p.Tries = append(p.Tries, try)
	}
	p.Tries = append(p.Tries, PlacementTry{Member: reason.Chosen, Reason: reason})
	return &p
}

// Bounds of a placement. In a small federation it has all data about the decision. In a large one it has the best
// candidates, and the excluded members with their causes.
const (
	maxPlacement       = 2000 // bytes; the store takes 2048
	placementNumbered  = 8    // candidates stored with their numbers
	placementTries     = 4    // latest tries stored
	placementText      = 160  // bytes of a sentence or an error
	placementForm      = 1    // first byte
	placementIDs       = 1000 // bytes of the ids of excluded members
	placementQueueName = 256
)

// Encode writes the placement in its stored form, of at most maxPlacement bytes: numbers
// as varints, scores to four digits, exclusions by code.
func (p *Placement) Encode() []byte {
	tries := p.Tries[max(0, len(p.Tries)-placementTries):]
	b := make([]byte, 0, 512)
	b = append(b, placementForm)
	b = packText(b, p.User, placementQueueName)
	b = packText(b, string(p.Queue), placementQueueName)
	b = binary.AppendVarint(b, p.Received.UnixMilli())
	b = binary.AppendVarint(b, p.Claimed.Sub(p.Received).Milliseconds())
	b = binary.AppendUvarint(b, uint64(len(tries)))
	for i := range tries {
		t := &tries[i]
		b = packText(b, string(t.Member), placementQueueName)
		b = packText(b, t.Verdict, placementText)
		b = packText(b, t.Err, placementText)
		// The last decision is stored with its candidates, earlier ones only with their sentence.
		most := 0
		if i == len(tries)-1 {
			most = placementNumbered
		}
		b = packReason(b, &t.Reason, t.Claimed, most)
	}
	if len(b) > maxPlacement { // too long names and texts: store only the last decision
		last := Placement{p.User, p.Queue, p.Received, p.Claimed, tries[len(tries)-1:]}
		if len(tries) == 1 {
			last.Tries = []PlacementTry{{
				Member: tries[0].Member, Claimed: tries[0].Claimed,
				Reason: policies.Reason{
					Policy: tries[0].Reason.Policy, Version: tries[0].Reason.Version,
					Chosen: tries[0].Reason.Chosen, Because: tries[0].Reason.Because,
					LeftOut: len(tries[0].Reason.Candidates) + tries[0].Reason.LeftOut,
				},
			}}
		}
		return last.Encode()
	}
	return b
}

func packText(b []byte, s string, most int) []byte {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func packFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
}

func packResource(b []byte, r creel.Resource) []byte {
	b = binary.AppendVarint(binary.AppendVarint(b, r.MemoryMB), r.VCores)
	others := r.Others[:min(len(r.Others), placementNumbered)]
	b = binary.AppendUvarint(b, uint64(len(others)))
	for _, a := range others {
		b = binary.AppendVarint(packText(b, a.Name, placementText), a.Value)
	}
	return b
}

// Flags of the parts in a stored try.
const (
	packedClaimed = 1 << iota
	packedReason
)

func packReason(b []byte, r *policies.Reason, claimed bool, most int) []byte {
	flags := byte(0)
	if claimed {
		flags |= packedClaimed
	}
	if r.Policy != "" {
		flags |= packedReason
	}
	b = append(b, flags)
	if r.Policy == "" {
		return b
	}
	b = packText(b, r.Policy, placementText)
	b = binary.AppendVarint(b, r.Version)
	b = packText(b, string(r.PolicyOf), placementQueueName)
	b = packText(b, string(r.Chosen), placementText)
	b = packText(b, r.Because, placementText)
	numbered, excluded, left := selectCandidates(r, most)
	b = binary.AppendUvarint(b, uint64(left))
	b = binary.AppendUvarint(b, uint64(len(numbered)))
	for _, c := range numbered {
		b = packText(b, string(c.Member), placementText)
		b = packText(b, string(c.Code), placementText)
		b = packFloat(b, c.Score)
		n := &c.Numbers
		of := n.Of
		if n.Label != "" {
			of += " " + n.Label
		}
		b = packText(b, of, placementText)
		if n.Of == "" {
			b = packText(b, n.Text, placementText)
			continue
		}
		b = packResource(packResource(packResource(b, n.Free), n.Pending), n.Assumed)
		b = binary.AppendVarint(b, n.Apps)
		b = packFloat(packFloat(packFloat(b, n.Entitled), n.Used), n.Starting)
	}
	// The excluded members, by code.
	b = binary.AppendUvarint(b, uint64(len(excluded)))
	for len(excluded) > 0 {
		code, n := excluded[0].Code, 1
		for n < len(excluded) && excluded[n].Code == code {
			n++
		}
		b = packText(b, string(code), placementText)
		b = binary.AppendUvarint(b, uint64(n))
		for _, c := range excluded[:n] {
			b = packText(b, string(c.Member), placementText)
		}
		excluded = excluded[n:]
	}
	return b
}

// selectCandidates selects the candidates to store. If there are at most most, it takes all with their numbers.
// Otherwise it takes the chosen one and the best of the others. excluded has the excluded ones, sorted by code. left
// is the number of candidates that are not stored.
func selectCandidates(r *policies.Reason, most int) (numbered, excluded []*policies.Candidate, left int) {
	left = r.LeftOut
	if most == 0 {
		return nil, nil, left + len(r.Candidates)
	}
	numbered = make([]*policies.Candidate, 0, len(r.Candidates))
	if len(r.Candidates) <= most {
		for i := range r.Candidates {
			numbered = append(numbered, &r.Candidates[i])
		}
		return numbered, nil, left
	}
	for i := range r.Candidates {
		if c := &r.Candidates[i]; c.Code == "" {
			numbered = append(numbered, c)
		} else {
			excluded = append(excluded, c)
		}
	}
	slices.SortStableFunc(numbered, func(a, b *policies.Candidate) int {
		if first := a.Member == r.Chosen; first != (b.Member == r.Chosen) {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Score, a.Score)
	})
	left += max(0, len(numbered)-most)
	numbered = numbered[:min(len(numbered), most)]
	slices.SortStableFunc(excluded, func(a, b *policies.Candidate) int {
		return strings.Compare(string(a.Code), string(b.Code))
	})
	size := 0
	for i, c := range excluded {
		if size += len(c.Member) + 1; size > placementIDs {
			left += len(excluded) - i
			excluded = excluded[:i]
			break
		}
	}
	return numbered, excluded, left
}

// DecodePlacement reads the output of Encode. The error is of kind creel.ErrInvalidRequest if another program or a
// later version wrote the bytes.
func DecodePlacement(b []byte) (Placement, error) {
	u := unpacker{b: b}
	if form := u.byte(); form != placementForm {
		u.fail()
	}
	p := Placement{User: u.text(), Queue: creel.QueuePath(u.text())}
	p.Received = time.UnixMilli(u.int())
	p.Claimed = p.Received.Add(time.Duration(u.int()) * time.Millisecond)
	for range u.count() {
		t := PlacementTry{Member: creel.SubclusterID(u.text()), Verdict: u.text(), Err: u.text()}
		u.reason(&t)
		p.Tries = append(p.Tries, t)
	}
	if u.bad || len(u.b) > 0 {
		return Placement{}, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the record of the choice of the home is unreadable",
			Why:  fmt.Sprintf("%d bytes in the state store have an unknown format", len(b)),
			Try:  "update this router, if others run a later version",
		}
	}
	return p, nil
}

// unpacker reads the output of the functions above. After unreadable bytes it is bad, and returns zero values.
type unpacker struct {
	b   []byte
	bad bool
}

func (u *unpacker) fail() { u.b, u.bad = nil, true }

func (u *unpacker) take(n int) []byte {
	if n < 0 || n > len(u.b) {
		u.fail()
		return nil
	}
	out := u.b[:n]
	u.b = u.b[n:]
	return out
}

func (u *unpacker) byte() byte {
	if b := u.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

// count reads a number of items, each of at least one byte.
func (u *unpacker) count() int {
	v, n := binary.Uvarint(u.b)
	if n <= 0 || v > uint64(len(u.b)) {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return int(v)
}

func (u *unpacker) text() string { return string(u.take(u.count())) }

func (u *unpacker) float() float64 {
	b := u.take(4)
	if b == nil {
		return 0
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}

func (u *unpacker) resource() creel.Resource {
	memory, vcores := u.int(), u.int()
	var others []creel.Amount
	for range u.count() {
		others = append(others, creel.Amount{Name: u.text(), Value: u.int()})
	}
	return creel.NewResource(memory, vcores, others...)
}

func (u *unpacker) reason(t *PlacementTry) {
	flags := u.byte()
	t.Claimed = flags&packedClaimed != 0
	if flags&packedReason == 0 {
		return
	}
	r := &t.Reason
	r.Policy, r.Version, r.PolicyOf = u.text(), u.int(), creel.QueuePath(u.text())
	r.Chosen, r.Because = creel.SubclusterID(u.text()), u.text()
	r.LeftOut = u.left()
	for range u.count() {
		c := policies.Candidate{
			Member: creel.SubclusterID(u.text()),
			Code:   policies.Exclusion(u.text()),
			Score:  u.float(),
		}
		c.Excluded = c.Code.Text()
		n := &c.Numbers
		if n.Of = u.text(); n.Of == "" {
			n.Text = u.text()
		} else {
			if label, ok := strings.CutPrefix(n.Of, "label "); ok {
				n.Of, n.Label = "label", label
			}
			n.Free, n.Pending, n.Assumed = u.resource(), u.resource(), u.resource()
			n.Apps, n.Entitled, n.Used, n.Starting = u.int(), u.float(), u.float(), u.float()
		}
		r.Candidates = append(r.Candidates, c)
	}
	for all := u.count(); all > 0 && !u.bad; {
		code, n := policies.Exclusion(u.text()), u.count()
		if n < 1 || n > all {
			u.fail()
			return
		}
		for range n {
			r.Candidates = append(r.Candidates,
				policies.Candidate{Member: creel.SubclusterID(u.text()), Code: code, Excluded: code.Text()})
		}
		all -= n
	}
	slices.SortStableFunc(r.Candidates, func(a, b policies.Candidate) int {
		return strings.Compare(string(a.Member), string(b.Member))
	})
}

// left reads a number of items that are not stored.
func (u *unpacker) left() int {
	v, n := binary.Uvarint(u.b)
	if n <= 0 || v > math.MaxInt32 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return int(v)
}
