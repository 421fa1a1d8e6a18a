// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SubclusterID names one member of the federation, for example "sc-1".
type SubclusterID string

// ApplicationID names an application. It consists of the start time of the issuing ResourceManager (ms since epoch) and
// a counter from 1. Its text form is application_<timestamp>_<counter, at least 4 digits>.
type ApplicationID struct {
	ClusterTimestamp int64
	ID               int32
}

// AttemptID names one attempt to run an application's AM, counted from 1. Text: appattempt_<timestamp>_<app,
// 4+>_<attempt, 6+>.
type AttemptID struct {
	Application ApplicationID
	Attempt     int32
}

// ContainerID names a container of an attempt. ID is epoch<<40 | sequence. The epoch rises with each work-preserving
// restart of the ResourceManager. Text: container_[e<epoch, 2+>_]<timestamp>_<app, 4+>_<attempt, 2+>_<sequence, 6+>.
type ContainerID struct {
	Attempt AttemptID
	ID      int64
}

// NodeID names a NodeManager by its registered host and RPC port. Text: host:port.
type NodeID struct {
	Host string
	Port int32
}

// ReservationID names a reservation. Text: reservation_<timestamp>_<id, 4+>.
type ReservationID struct {
	ClusterTimestamp int64
	ID               int64
}

const (
	sequenceBits = 40
	sequenceMask = 1<<sequenceBits - 1
)

// NewContainerID joins an epoch and a sequence number into a container id. Both must be non-negative, sequence below
// 2^40 and epoch below 2^23. Values outside these ranges are masked, never carried into each other.
func NewContainerID(a AttemptID, epoch, sequence int64) ContainerID {
	return ContainerID{Attempt: a, ID: (epoch&(1<<23-1))<<sequenceBits | sequence&sequenceMask}
}

// Epoch returns the ResourceManager epoch that issued the container; 0 in the first.
func (c ContainerID) Epoch() int64 { return c.ID >> sequenceBits }

// Sequence returns the number of the container within its attempt and epoch, from 1.
func (c ContainerID) Sequence() int64 { return c.ID & sequenceMask }

// IsZero reports whether the id names nothing.
func (a ApplicationID) IsZero() bool { return a == ApplicationID{} }

// IsZero reports whether the id names nothing.
func (a AttemptID) IsZero() bool { return a == AttemptID{} }

// IsZero reports whether the id names nothing.
func (c ContainerID) IsZero() bool { return c == ContainerID{} }

// IsZero reports whether the id names nothing.
func (n NodeID) IsZero() bool { return n == NodeID{} }

// IsZero reports whether the id names nothing.
func (r ReservationID) IsZero() bool { return r == ReservationID{} }

// Compare orders by cluster timestamp, then counter.
func (a ApplicationID) Compare(b ApplicationID) int {
	return cmp.Or(cmp.Compare(a.ClusterTimestamp, b.ClusterTimestamp), cmp.Compare(a.ID, b.ID))
}

// Compare orders by application, then attempt.
func (a AttemptID) Compare(b AttemptID) int {
	return cmp.Or(a.Application.Compare(b.Application), cmp.Compare(a.Attempt, b.Attempt))
}

// Compare orders by attempt, then epoch and sequence.
func (c ContainerID) Compare(d ContainerID) int {
	return cmp.Or(c.Attempt.Compare(d.Attempt), cmp.Compare(c.ID, d.ID))
}

// Compare orders by host, then port.
func (n NodeID) Compare(m NodeID) int {
	return cmp.Or(strings.Compare(n.Host, m.Host), cmp.Compare(n.Port, m.Port))
}

// Compare orders by cluster timestamp, then counter.
func (r ReservationID) Compare(s ReservationID) int {
	return cmp.Or(cmp.Compare(r.ClusterTimestamp, s.ClusterTimestamp), cmp.Compare(r.ID, s.ID))
}

// appendPadded writes v with at least width digits. A negative number keeps
// its sign in front of the padding, as Java's formatter does.
func appendPadded(b []byte, v int64, width int) []byte {
	if v < 0 {
		b = append(b, '-')
		var tmp [20]byte
		digits := strconv.AppendUint(tmp[:0], uint64(-v), 10)
		for i := len(digits) + 1; i < width; i++ {
			b = append(b, '0')
		}
		return append(b, digits...)
	}
	var tmp [20]byte
	digits := strconv.AppendInt(tmp[:0], v, 10)
	for i := len(digits); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, digits...)
}

func (a ApplicationID) appendTail(b []byte) []byte {
	b = strconv.AppendInt(b, a.ClusterTimestamp, 10)
	b = append(b, '_')
	return appendPadded(b, int64(a.ID), 4)
}

// AppendText appends the text form to b; the error is always nil.
func (a ApplicationID) AppendText(b []byte) ([]byte, error) {
	return a.appendTail(append(b, "application_"...)), nil
}

// AppendText appends the text form to b; the error is always nil.
func (a AttemptID) AppendText(b []byte) ([]byte, error) {
	b = a.Application.appendTail(append(b, "appattempt_"...))
	return appendPadded(append(b, '_'), int64(a.Attempt), 6), nil
}

// AppendText appends the text form to b; the error is always nil.
func (c ContainerID) AppendText(b []byte) ([]byte, error) {
	b = append(b, "container_"...)
	if e := c.Epoch(); e > 0 {
		b = append(b, 'e')
		b = appendPadded(b, e, 2)
		b = append(b, '_')
	}
	b = c.Attempt.Application.appendTail(b)
	b = appendPadded(append(b, '_'), int64(c.Attempt.Attempt), 2)
	return appendPadded(append(b, '_'), c.Sequence(), 6), nil
}

// AppendText appends the text form to b; the error is always nil.
func (n NodeID) AppendText(b []byte) ([]byte, error) {
	b = append(append(b, n.Host...), ':')
	return strconv.AppendInt(b, int64(n.Port), 10), nil
}

// AppendText appends the text form to b; the error is always nil.
func (r ReservationID) AppendText(b []byte) ([]byte, error) {
	b = strconv.AppendInt(append(b, "reservation_"...), r.ClusterTimestamp, 10)
	return appendPadded(append(b, '_'), r.ID, 4), nil
}

type textAppender interface{ AppendText([]byte) ([]byte, error) }

func text(v textAppender) string {
	b, _ := v.AppendText(make([]byte, 0, 64))
	return string(b)
}

func (a ApplicationID) String() string { return text(a) }
func (a AttemptID) String() string     { return text(a) }
func (c ContainerID) String() string   { return text(c) }
func (n NodeID) String() string        { return text(n) }
func (r ReservationID) String() string { return text(r) }

// MarshalText writes the text form, so that ids are JSON strings and map keys.
func (a ApplicationID) MarshalText() ([]byte, error) { return a.AppendText(nil) }

// MarshalText writes the text form.
func (a AttemptID) MarshalText() ([]byte, error) { return a.AppendText(nil) }

// MarshalText writes the text form.
func (c ContainerID) MarshalText() ([]byte, error) { return c.AppendText(nil) }

// MarshalText writes the text form.
func (n NodeID) MarshalText() ([]byte, error) { return n.AppendText(nil) }

// MarshalText writes the text form.
func (r ReservationID) MarshalText() ([]byte, error) { return r.AppendText(nil) }

// UnmarshalText reads the text form.
func (a *ApplicationID) UnmarshalText(b []byte) (err error) {
	*a, err = ParseApplicationID(string(b))
	return err
}

// UnmarshalText reads the text form.
func (a *AttemptID) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAttemptID(string(b))
	return err
}

// UnmarshalText reads the text form.
func (c *ContainerID) UnmarshalText(b []byte) (err error) {
	*c, err = ParseContainerID(string(b))
	return err
}

// UnmarshalText reads the text form.
func (n *NodeID) UnmarshalText(b []byte) (err error) {
	*n, err = ParseNodeID(string(b))
	return err
}

// UnmarshalText reads the text form.
func (r *ReservationID) UnmarshalText(b []byte) (err error) {
	*r, err = ParseReservationID(string(b))
	return err
}

// badID returns the only error of the id parsers. It cuts long input, so that a hostile megabyte does not reach the
// logs.
func badID(kind, s, form string) error {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return &Error{Kind: ErrInvalidRequest,
		What: fmt.Sprintf("invalid %s %q", kind, s),
		Try:  "expected the form " + form}
}

// number reads a decimal field. It accepts sign and width as YARN's own parser does: any number of digits, no spaces.
func number(s string, max int64) (int64, bool) {
	if s == "" || len(s) > 20 || s[0] == '+' {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v <= max && v >= -max-1
}

func appFromParts(ts, id string) (ApplicationID, bool) {
	t, ok1 := number(ts, math.MaxInt64)
	n, ok2 := number(id, math.MaxInt32)
	return ApplicationID{ClusterTimestamp: t, ID: int32(n)}, ok1 && ok2
}

// ParseApplicationID reads application_<timestamp>_<id>. The error is an
// *Error of kind ErrInvalidRequest.
func ParseApplicationID(s string) (ApplicationID, error) {
	rest, ok := strings.CutPrefix(s, "application_")
	ts, id, found := strings.Cut(rest, "_")
	app, valid := appFromParts(ts, id)
	if !ok || !found || !valid {
		return ApplicationID{}, badID("ApplicationId", s, "application_1700000000000_0001")
	}
	return app, nil
}

// ParseAttemptID reads appattempt_<timestamp>_<app>_<attempt>. The error is an
// *Error of kind ErrInvalidRequest.
func ParseAttemptID(s string) (AttemptID, error) {
	p := strings.Split(s, "_")
	if len(p) == 4 && p[0] == "appattempt" {
		app, ok := appFromParts(p[1], p[2])
		if n, valid := number(p[3], math.MaxInt32); ok && valid {
			return AttemptID{Application: app, Attempt: int32(n)}, nil
		}
	}
	return AttemptID{}, badID("ApplicationAttemptId", s, "appattempt_1700000000000_0001_000001")
}

// ParseContainerID reads a container id with or without an epoch. The error is
// an *Error of kind ErrInvalidRequest.
func ParseContainerID(s string) (ContainerID, error) {
	const form = "container_e17_1700000000000_0001_01_000001"
	if len(s) > 128 {
		return ContainerID{}, badID("ContainerId", s, form)
	}
	p := strings.Split(s, "_")
	if len(p) < 5 || p[0] != "container" {
		return ContainerID{}, badID("ContainerId", s, form)
	}
	p = p[1:]
	var epoch int64
	if strings.HasPrefix(p[0], "e") {
		e, ok := number(p[0][1:], 1<<23-1)
		if !ok || e < 0 {
			return ContainerID{}, badID("ContainerId", s, form)
		}
		epoch, p = e, p[1:]
	}
	if len(p) != 4 {
		return ContainerID{}, badID("ContainerId", s, form)
	}
	app, ok := appFromParts(p[0], p[1])
	attempt, ok2 := number(p[2], math.MaxInt32)
	seq, ok3 := number(p[3], sequenceMask)
	if !ok || !ok2 || !ok3 || seq < 0 {
		return ContainerID{}, badID("ContainerId", s, form)
	}
	return NewContainerID(AttemptID{Application: app, Attempt: int32(attempt)}, epoch, seq), nil
}

// ParseNodeID reads host:port; the host may be a bracketed IPv6 address. The
// error is an *Error of kind ErrInvalidRequest.
func ParseNodeID(s string) (NodeID, error) {
	i := strings.LastIndexByte(s, ':')
	if i > 0 {
		if port, ok := number(s[i+1:], 65535); ok && port >= 0 {
			return NodeID{Host: s[:i], Port: int32(port)}, nil
		}
	}
	return NodeID{}, badID("NodeId", s, "host:port")
}

// ParseReservationID reads reservation_<timestamp>_<id>. The error is an
// *Error of kind ErrInvalidRequest.
func ParseReservationID(s string) (ReservationID, error) {
	p := strings.Split(s, "_")
	if len(p) == 3 && p[0] == "reservation" {
		ts, ok := number(p[1], math.MaxInt64)
		id, ok2 := number(p[2], math.MaxInt64)
		if ok && ok2 {
			return ReservationID{ClusterTimestamp: ts, ID: id}, nil
		}
	}
	return ReservationID{}, badID("ReservationId", s, "reservation_1700000000000_0001")
}
