// SPDX-License-Identifier: Apache-2.0

package jceks

import (
	"encoding/binary"
	"errors"
)

// reader reads a keystore and the part of Java's serialization that its keys need: objects with fields, strings, and
// arrays of bytes. After the first error it returns zero values.
type reader struct {
	b       []byte
	err     error
	depth   int
	handles []any // of the present stream
}

// object has the fields of all its classes by name.
type object struct {
	class  string
	fields map[string]any // string, []byte, object, or nil
}

type class struct {
	name   string
	flags  byte
	fields []field
	super  *class
}

type field struct {
	kind byte
	name string
}

var errCut = errors.New("it is cut off, or not a keystore of Hadoop's")

func (r *reader) fail() {
	if r.err == nil {
		r.err = errCut
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// utf reads a string of at most 65,535 bytes.
func (r *reader) utf() string { return string(r.take(int(r.uint16()))) }

// The marks of a stream's elements, and flags of a class.
const (
	markNull     = 0x70
	markRepeat   = 0x71
	markClass    = 0x72
	markObject   = 0x73
	markString   = 0x74
	markArray    = 0x75
	markEnd      = 0x78
	firstHandle  = 0x7e0000
	writesOwn    = 0x01
	serializable = 0x02
	maxDepth     = 16
)

// stream reads one stream with one object.
func (r *reader) stream() any {
	if r.uint32() != 0xaced0005 {
		r.fail()
	}
	r.handles = nil
	return r.element()
}

func (r *reader) element() any {
	if r.depth++; r.depth > maxDepth {
		r.fail()
	}
	defer func() { r.depth-- }()
	if r.err != nil {
		return nil
	}
	switch r.byte() {
	case markNull:
		return nil
	case markRepeat:
		if i := int64(r.uint32()) - firstHandle; i >= 0 && i < int64(len(r.handles)) {
			return r.handles[i]
		}
	case markClass:
		return r.class()
	case markString:
		s := r.utf()
		r.handles = append(r.handles, s)
		return s
	case markArray:
		c := r.classOf()
		at := r.handle()
		if c == nil || c.name != "[B" {
			break
		}
		b := r.take(int(r.uint32()))
		r.set(at, b)
		return b
	case markObject:
		c := r.classOf()
		at := r.handle()
		if c == nil {
			break
		}
		o := object{class: c.name, fields: map[string]any{}}
		r.fields(c, o.fields)
		r.set(at, o)
		return o
	}
	r.fail()
	return nil
}

func (r *reader) handle() int {
	r.handles = append(r.handles, nil)
	return len(r.handles) - 1
}

func (r *reader) set(at int, v any) {
	if r.err == nil {
		r.handles[at] = v
	}
}

func (r *reader) classOf() *class {
	c, _ := r.element().(*class)
	return c
}

func (r *reader) class() *class {
	c := &class{name: r.utf()}
	r.take(8) // the version of the class
	r.handles = append(r.handles, c)
	c.flags = r.byte()
	for n := r.uint16(); n > 0 && r.err == nil; n-- {
		f := field{r.byte(), r.utf()}
		if f.kind == 'L' || f.kind == '[' {
			r.element() // the name of its class
		}
		c.fields = append(c.fields, f)
	}
	if r.byte() != markEnd {
		r.fail()
	}
	c.super = r.classOf()
	return c
}

// fields reads the fields of a class, after those of the classes that it extends.
func (r *reader) fields(c *class, into map[string]any) {
	var classes []*class
	for ; c != nil; c = c.super {
		if classes = append(classes, c); len(classes) > maxDepth || c.flags&serializable == 0 {
			r.fail()
			return
		}
	}
	for i := len(classes) - 1; i >= 0; i-- {
		for _, f := range classes[i].fields {
			switch f.kind {
			case 'B', 'Z':
				r.take(1)
			case 'C', 'S':
				r.take(2)
			case 'I', 'F':
				r.take(4)
			case 'J', 'D':
				r.take(8)
			case 'L', '[':
				into[f.name] = r.element()
			default:
				r.fail()
			}
		}
		if classes[i].flags&writesOwn != 0 && r.byte() != markEnd {
			r.fail()
		}
	}
}
