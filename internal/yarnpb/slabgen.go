// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// slabgen.go rewrites the decoders vtprotobuf generated, in place, so that they take memory from a slab, read numbers
// of one byte without a loop and refuse messages nested too deep. UnmarshalVT keeps its meaning. It fails when the
// generated code has not the form it knows.
package main

import (
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chunks are the types a slab has arrays of.
var chunks = map[string]string{
	"int32":                     "int32s",
	"int64":                     "int64s",
	"ApplicationIdProto":        "apps",
	"ApplicationAttemptIdProto": "attempts",
	"ContainerIdProto":          "ids",
	"NodeIdProto":               "nodes",
	"ResourceProto":             "resources",
	"ResourceInformationProto":  "amounts",
	"PriorityProto":             "priorities",
	"TokenProto":                "tokens",
	"NMTokenProto":              "nmTokens",
	"ResourceRequestProto":      "asks",
	"ExecutionTypeRequestProto": "executions",
	"ContainerProto":            "containers",
	"ContainerStatusProto":      "statuses",
}

// whole are the messages that come often, live shortly and are let go in one piece: see newWhole.
var whole = map[string]bool{"AllocateResponseProto": true}

var (
	decoder    = regexp.MustCompile(`^func \(m \*(\w+)\) UnmarshalVT\(dAtA \[\]byte\) error \{$`)
	scalar     = regexp.MustCompile(`^\t+var v (\w+)$`)
	pointer    = regexp.MustCompile(`^(\t+m\.\w+ = )&v$`)
	boolean    = regexp.MustCompile(`^(\t+m\.\w+ = )&b$`)
	made       = regexp.MustCompile(`&(\w+Proto)\{\}`)
	nested     = regexp.MustCompile(`\.UnmarshalVT\(dAtA\[iNdEx:postIndex\]\)`)
	text       = regexp.MustCompile(`string\(dAtA\[iNdEx:postIndex\]\)`)
	textField  = regexp.MustCompile(`^(\t+m\.\w+ = )&s$`)
	bytesField = regexp.MustCompile(`^(\t+)(m\.\w+) = append\(m\.\w+\[:0\], dAtA\[iNdEx:postIndex\]\.\.\.\)$`)
	loop       = regexp.MustCompile(`^(\t+)for shift := uint\(0\); ; shift \+= 7 \{$`)
	accumulate = regexp.MustCompile(`^\t+(\w+) \|= (\w+)\(b&0x7F\) << shift$`)
)

// rewrite returns the lines of a file with its decoders rewritten, and their number.
func rewrite(lines []string) (out []string, decoders int) {
	in, fields, last := false, false, ""
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := decoder.FindStringSubmatch(line); m != nil {
			in, fields = true, hasFields(lines[i:])
			decoders++
			begin := "\tvar a slab"
			if whole[m[1]] {
				begin = "\ta, dAtA := newWhole(dAtA)"
			}
			out = append(out, line, begin, "\treturn m.unmarshal(dAtA, &a)", "}", "",
				"func (m *"+m[1]+") unmarshal(dAtA []byte, a *slab) error {",
				"\tif a.depth++; a.depth > maxDepth {", "\t\treturn errTooDeep", "\t}")
			continue
		}
		if !in {
			out = append(out, line)
			continue
		}
		if line == "}" {
			if out[len(out)-1] != "\treturn nil" {
				log.Fatalf("a decoder ends with %q", out[len(out)-1])
			}
			out = append(out[:len(out)-1], "\ta.depth--", "\treturn nil", "}")
			in = false
			continue
		}
		if m := loop.FindStringSubmatch(line); m != nil && fields {
			out = append(out, number(m[1], lines[i:i+14])...)
			i += 13
			continue
		}
		if m := bytesField.FindStringSubmatch(line); m != nil {
			if strings.TrimSpace(lines[i+1]) != "if "+m[2]+" == nil {" {
				log.Fatalf("bytes are not read as expected: %q", lines[i:i+4])
			}
			out = append(out, m[1]+m[2]+" = a.bytes("+m[2]+", dAtA[iNdEx:postIndex])")
			i += 3
			continue
		}
		if m := scalar.FindStringSubmatch(line); m != nil {
			last = m[1]
		}
		out = append(out, value(line, last))
	}
	return out, decoders
}

// hasFields reports whether the decoder at the beginning of lines knows any field. One without fields has nothing to
// gain.
func hasFields(lines []string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, "\t\tcase ") {
			return true
		}
		if line == "}" {
			break
		}
	}
	return false
}

// number reads a varint: one byte without a loop, more with a function.
func number(tabs string, lines []string) []string {
	or := accumulate.FindStringSubmatch(lines[9])
	if or == nil || lines[13] != tabs+"}" {
		log.Fatalf("a varint is not read as expected: %q", lines)
	}
	name, kind := or[1], or[2]
	return []string{
		tabs + "if iNdEx < l && dAtA[iNdEx] < 0x80 {",
		tabs + "\t" + name + " = " + kind + "(dAtA[iNdEx])",
		tabs + "\tiNdEx++",
		tabs + "} else if x, n := varint(dAtA[iNdEx:]); n > 0 {",
		tabs + "\t" + name + " = " + kind + "(x)",
		tabs + "\tiNdEx += n",
		tabs + "} else {",
		tabs + "\treturn badVarint(n)",
		tabs + "}",
	}
}

// value rewrites a line that makes a value; last is the type of v in it.
func value(line, last string) string {
	if m := pointer.FindStringSubmatch(line); m != nil {
		switch {
		case chunks[last] != "":
			return m[1] + "a." + chunks[last] + ".keep(a, v)"
		case last != "uint32" && last != "uint64" && last != "int" && last != "float32":
			return m[1] + "(*" + last + ")(a.int32s.keep(a, int32(v)))" // an enum
		}
	}
	if m := boolean.FindStringSubmatch(line); m != nil {
		return m[1] + "a.bools.keep(a, b)"
	}
	if m := textField.FindStringSubmatch(line); m != nil {
		return m[1] + "a.strings.keep(a, s)"
	}
	if strings.Contains(line, "append(m.ResourceValueMap, &ResourceInformationProto{})") {
		tabs := line[:len(line)-len(strings.TrimLeft(line, "\t"))]
		line = tabs + "if m.ResourceValueMap == nil {\n" +
			tabs + "\tm.ResourceValueMap = a.amountLists.list(a, 2)\n" + tabs + "}\n" + line
	}
	line = made.ReplaceAllStringFunc(line, func(s string) string {
		if c := chunks[strings.TrimSuffix(s[1:], "{}")]; c != "" {
			return "a." + c + ".next(a)"
		}
		return s
	})
	line = text.ReplaceAllString(line, "a.text(dAtA[iNdEx:postIndex])")
	return nested.ReplaceAllString(line, ".unmarshal(dAtA[iNdEx:postIndex], a)")
}

func main() {
	log.SetFlags(0)
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*_vtproto.pb.go"))
	if err != nil || len(files) == 0 {
		log.Fatalf("no generated decoders in %s (%v)", os.Args[1], err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		out, n := rewrite(strings.Split(string(b), "\n"))
		if n == 0 {
			log.Fatalf("%s: no decoder found", file)
		}
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n")), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
