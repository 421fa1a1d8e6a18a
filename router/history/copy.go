// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// A copy of a History is a Head and a Copy for each subject. It has ages and no times, see the package.

// Head has the ages of the last complete steps when the copy was made.
type Head struct{ Age [resolutions]time.Duration }

// Copy has the figures of one subject up to the steps of the Head, oldest first.
type Copy struct {
	Subject
	Values [resolutions][Measures][]float32
}

// shared reports whether a measure is in copies. What one router received is no fact about another router.
func shared(m Measure) bool { return m != Submissions }

// Head returns the head of a copy that is made now, and its last steps.
func (h *History) Head(now time.Time) (Head, At) {
	h.StepAt(now)
	var head Head
	var at At
	for r := range resolutions {
		head.Age[r], at[r] = h.age(now, r), h.newestAt(r)
	}
	return head, at
}

// At has the last steps of a copy. Steps that complete while it is made are not in it.
type At [resolutions]int64

// Copy returns a subject's figures up to the steps of a Head.
func (h *History) Copy(subject Subject, at At) (Copy, bool) {
	s := h.series[subject]
	if s == nil {
		return Copy{}, false
	}
	c := Copy{Subject: subject}
	for r := range resolutions {
		oldest := h.newestAt(r) - r.Slots() + 1
		for m := range Measures {
			if !shared(m) || s.rings[r][m] == nil {
				continue
			}
			for step := oldest; step <= at[r]; step++ {
				if v := s.at(r, m, step); Known(v) || c.Values[r][m] != nil {
					c.Values[r][m] = append(c.Values[r][m], v)
				}
			}
		}
	}
	return c, true
}

// Merge adds the figures of a copy that came at now. Known figures stay: this router's own are as good.
func (h *History) Merge(now time.Time, head Head, c *Copy) {
	h.advance(h.StepAt(now) - 1)
	s := h.of(c.Subject)
	if s == nil {
		return
	}
	known := int64(0)
	for r := range resolutions {
		end := now.Add(-head.Age[r] - r.Step()/2) // the middle of the copy's last step
		last := int64(end.Sub(h.start) / r.Step())
		for m := range Measures {
			for i, v := range c.Values[r][m] {
				step := last - int64(len(c.Values[r][m])-1-i)
				if step > h.newestAt(r) || step <= h.newestAt(r)-r.Slots() || !shared(m) || Known(s.at(r, m, step)) {
					continue
				}
				if s.set(r, m, step, v) {
					known = max(known, min((step+1)*int64(r.Step()/Step)-1, h.newest))
				}
			}
		}
	}
	s.known = max(s.known, known)
	// A minute that was not complete at the sender is complete here, from the steps.
	for minute := h.minute(); minute > h.minute()-fineSlots/perMinute+1; minute-- {
		for m := range Measures {
			if !Known(s.at(Coarse, m, minute)) {
				s.set(Coarse, m, minute, s.minuteOf(m, minute))
			}
		}
	}
}

// magic begins a copy; its last byte is the version.
const magic = "creelhs\x01"

// AppendHead appends the wire form of a head. A copy follows it for each subject, until the end.
func AppendHead(b []byte, head Head) []byte {
	b = append(b, magic...)
	for _, age := range head.Age {
		b = binary.LittleEndian.AppendUint64(b, uint64(max(age, 0)))
	}
	return b
}

// AppendCopy appends the wire form of one subject.
func AppendCopy(b []byte, c *Copy) []byte {
	b = append(b, byte(c.Kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.Name)))
	b = append(b, c.Name...)
	for r := range resolutions {
		for m := range Measures {
			values := c.Values[r][m]
			b = binary.LittleEndian.AppendUint16(b, uint16(len(values)))
			for _, v := range values {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
	}
	return b
}

// A Reader reads a copy.
type Reader struct {
	Head
	in *bufio.Reader
}

// NewReader reads the head of a copy.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReader(in)}
	var begin [len(magic) + 8*int(resolutions)]byte
	if _, err := io.ReadFull(r.in, begin[:]); err != nil {
		return nil, fmt.Errorf("history truncated: %w", err)
	}
	if string(begin[:len(magic)]) != magic {
		return nil, errors.New("history is of another version")
	}
	for i := range r.Age {
		age := binary.LittleEndian.Uint64(begin[len(magic)+8*i:])
		if age > uint64(24*time.Hour) {
			return nil, fmt.Errorf("history is too old: %d ns", age)
		}
		r.Age[i] = time.Duration(age)
	}
	return r, nil
}

// Next returns the next subject, and io.EOF at the end of the copy.
func (r *Reader) Next() (*Copy, error) {
	kind, err := r.in.ReadByte()
	if err != nil {
		return nil, err
	}
	size, err := r.short()
	if err != nil {
		return nil, err
	}
	name := make([]byte, size)
	if _, err := io.ReadFull(r.in, name); err != nil {
		return nil, truncated(err)
	}
	c := &Copy{Subject: Subject{Kind(kind), string(name)}}
	if c.Kind >= kinds || (c.Kind == Federation) != (size == 0) || size > longestName {
		return nil, fmt.Errorf("history has the unknown subject %d %q", kind, name[:min(size, 40)])
	}
	for res := range resolutions {
		for m := range Measures {
			if c.Values[res][m], err = r.values(res); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (r *Reader) values(res Resolution) ([]float32, error) {
	n, err := r.short()
	if err != nil {
		return nil, err
	}
	if int64(n) > res.Slots() {
		return nil, fmt.Errorf("history has %d steps, at most %d are stored", n, res.Slots())
	}
	if n == 0 {
		return nil, nil
	}
	raw, out := make([]byte, 4*n), make([]float32, n)
	if _, err := io.ReadFull(r.in, raw); err != nil {
		return nil, truncated(err)
	}
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out, nil
}

func (r *Reader) short() (int, error) {
	var b [2]byte
	if _, err := io.ReadFull(r.in, b[:]); err != nil {
		return 0, truncated(err)
	}
	return int(binary.LittleEndian.Uint16(b[:])), nil
}

// truncated is the error of a copy that ends within a subject.
func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("history truncated: %w", err)
}
