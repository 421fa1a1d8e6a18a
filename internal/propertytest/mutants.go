// SPDX-License-Identifier: Apache-2.0

package propertytest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// longest bounds the bytes of an argument: the running time of most targets grows with its length.
const longest = 1 << 16

// mutants returns n variations of the seeds. Each differs from its seed in at least one argument, by up to four
// changes.
func mutants(seeds [][]any, n int, rnd *rand.Rand) [][]any {
	out := make([][]any, n)
	for i := range out {
		args := slices.Clone(seeds[rnd.IntN(len(seeds))])
		other := seeds[rnd.IntN(len(seeds))]
		always := rnd.IntN(max(len(args), 1))
		for j := range args {
			if j == always || rnd.IntN(3) == 0 {
				args[j] = mutant(args[j], other[j], rnd)
			}
		}
		out[i] = args
	}
	return out
}

// mutant returns a variation of a value. other is a value of the same type; the variation may include a part of it.
func mutant(value, other any, rnd *rand.Rand) any {
	switch v := value.(type) {
	case []byte:
		return mutantBytes(v, other.([]byte), rnd)
	case string:
		return string(mutantBytes([]byte(v), []byte(other.(string)), rnd))
	case bool:
		return !v
	case float32:
		return float32(mutantFloat(float64(v), rnd))
	case float64:
		return mutantFloat(v, rnd)
	}
	out := reflect.New(reflect.TypeOf(value)).Elem()
	if out.CanInt() {
		// What does not fit is cut, which makes edges of narrow types from those of wide ones.
		out.SetInt(int64(mutantInteger(uint64(reflect.ValueOf(value).Int()), out.Type().Bits(), rnd)))
	} else {
		out.SetUint(mutantInteger(reflect.ValueOf(value).Uint(), out.Type().Bits(), rnd))
	}
	return out.Interface()
}

func mutantInteger(v uint64, bits int, rnd *rand.Rand) uint64 {
	switch rnd.IntN(4) {
	case 0:
		v ^= 1 << rnd.IntN(bits)
	case 1:
		v += uint64(rnd.IntN(33) - 16)
	case 2:
		v = rnd.Uint64()
	default:
		v = edges[rnd.IntN(len(edges))]
	}
	// The low bits with their sign, as SetInt and SetUint both accept them.
	return v << (64 - bits) >> (64 - bits)
}

func mutantFloat(v float64, rnd *rand.Rand) float64 {
	switch rnd.IntN(3) {
	case 0:
		return -v
	case 1:
		return math.Float64frombits(math.Float64bits(v) ^ 1<<rnd.IntN(64))
	}
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1 << 53}
	return special[rnd.IntN(len(special))]
}

// edges are integers at the limits of widths and signs. Negative ones are in two's complement.
var edges = []uint64{
	0, 1, 2, 7, 8, 16, 100, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536,
	1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<53 + 1,
	1<<63 - 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 1, 1<<64 - 128, 1<<64 - 32768, 1<<64 - 1<<31,
}

// numbers and tokens are texts with a meaning in the formats that creel reads.
var (
	numbers = []string{"0", "-0", "-1", "1", "2147483647", "2147483648", "-2147483648", "9223372036854775807",
		"9223372036854775808",
		"-9223372036854775808", "18446744073709551615", "18446744073709551616", "00", "1e400",
		"0.5", "1e-9", "NaN", "Infinity", "0x10"}
	tokens = []string{"", " ", "\t", "\n", "\r\n", "\x00", "\xff", "\"", "'", "\\", "\\u0000", "<", ">", "</", "<!--",
		"<![CDATA[", "&lt;",
		"{", "}", "[", "]", "${", ":", ",", ";", "=", "%", "%00", "*", "/", "..", "_", "-", "null", "true",
		"\u00e9", "\u2028", "\U0001F600"}
)

// mutantBytes changes bytes one to four times. It does not write to its arguments.
func mutantBytes(b, other []byte, rnd *rand.Rand) []byte {
	b = slices.Clone(b)
	for n := 1 + rnd.IntN(4); n > 0; n-- {
		b = changed(b, other, changes[rnd.IntN(len(changes))], rnd)
		b = b[:min(len(b), longest)]
	}
	return b
}

type change int

const (
	flipBit change = iota
	setByte
	truncate
	behead
	removePart
	duplicatePart
	swapParts
	splice
	insertToken
	replaceNumber
	writeInteger
	insertInteger
)

var changes = []change{flipBit, setByte, truncate, behead, removePart, duplicatePart, swapParts, splice, insertToken,
	replaceNumber,
	writeInteger, insertInteger}

func changed(b, other []byte, how change, rnd *rand.Rand) []byte {
	if len(b) == 0 && how != splice && how != insertInteger {
		how = insertToken
	}
	at := rnd.IntN(len(b) + 1)
	switch from, to := part(b, rnd); how {
	case flipBit:
		b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
	case setByte:
		b[rnd.IntN(len(b))] = byte(rnd.Uint32())
	case truncate:
		return b[:at]
	case behead:
		return b[at:]
	case removePart:
		return slices.Delete(b, from, to)
	case duplicatePart:
		return slices.Insert(b, at, slices.Clone(b[from:to])...)
	case swapParts:
		return slices.Concat(b[:from], b[to:], b[from:to])
	case splice:
		return slices.Concat(b[:at], other[rnd.IntN(len(other)+1):])
	case insertToken:
		return slices.Insert(b, at, []byte(tokens[rnd.IntN(len(tokens))])...)
	case replaceNumber:
		from, to := digits(b, at)
		return slices.Concat(b[:from], []byte(numbers[rnd.IntN(len(numbers))]), b[to:])
	case writeInteger:
		copy(b[min(at, len(b)-1):], integer(rnd))
	case insertInteger:
		return slices.Insert(b, at, integer(rnd)...)
	}
	return b
}

// part draws a part of b, usually a short one.
func part(b []byte, rnd *rand.Rand) (from, to int) {
	from = rnd.IntN(len(b) + 1)
	length := len(b) - from
	if rnd.IntN(4) > 0 {
		length = min(length, 16)
	}
	return from, from + rnd.IntN(length+1)
}

// digits returns the first run of digits in b from an index on, or that index if there is none.
func digits(b []byte, at int) (from, to int) {
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	for from = at; from < len(b) && !isDigit(b[from]); from++ {
	}
	if from == len(b) {
		return at, at
	}
	for to = from; to < len(b) && isDigit(b[to]); to++ {
	}
	return from, to
}

// integer returns an edge as encoded in a format: one to eight bytes of either order, or a varint.
func integer(rnd *rand.Rand) []byte {
	v := edges[rnd.IntN(len(edges))]
	width := 1 << rnd.IntN(4)
	switch rnd.IntN(3) {
	case 0:
		return binary.BigEndian.AppendUint64(nil, v)[8-width:]
	case 1:
		return binary.LittleEndian.AppendUint64(nil, v)[:width]
	}
	return binary.AppendUvarint(nil, v)
}

// printing wraps a fuzz target so that a failure prints its input, in the form of a file in testdata/fuzz.
func printing(name string, target any) any {
	fn := reflect.ValueOf(target)
	return reflect.MakeFunc(fn.Type(), func(args []reflect.Value) []reflect.Value {
		t, returned := args[0].Interface().(*testing.T), false
		defer func() {
			if t.Failed() || !returned && !t.Skipped() {
				t.Logf("to keep this input, write it to testdata/fuzz/%s/NAME:\n%s", name, corpusFile(args[1:]))
			}
		}()
		fn.Call(args)
		returned = true
		return nil
	}).Interface()
}

func corpusFile(args []reflect.Value) string {
	var b strings.Builder
	b.WriteString("go test fuzz v1\n")
	for _, arg := range args {
		switch v := arg.Interface().(type) {
		case string:
			fmt.Fprintf(&b, "string(%q)\n", v)
		case []byte:
			fmt.Fprintf(&b, "[]byte(%q)\n", v)
		default:
			fmt.Fprintf(&b, "%T(%v)\n", v, v)
		}
	}
	return b.String()
}
