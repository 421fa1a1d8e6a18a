// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"fmt"
	"strings"
)

// QueuePath is the full path of a queue from the root, with parts joined by dots: "root.research.ml". Clients may send
// a bare leaf name ("default"). It is a QueuePath too until a ResourceManager resolves it.
type QueuePath string

// RootQueue is the first part of every full path.
const RootQueue QueuePath = "root"

// maxQueuePath is the longest accepted path, in bytes.
const maxQueuePath = 1024

// ParseQueuePath checks a path of at most 1024 bytes. Each part must be non-empty, without control characters and
// without spaces at its ends. The error is an *Error of kind ErrInvalidRequest.
func ParseQueuePath(s string) (QueuePath, error) {
	bad := func(why string) (QueuePath, error) {
		if len(s) > 80 {
			s = s[:80] + "..."
		}
		return "", &Error{
			Kind: ErrInvalidRequest,
			What: fmt.Sprintf("invalid queue path %q", s),
			Why:  why,
			Try:  "expected the form root.parent.leaf",
		}
	}
	if s == "" {
		return bad("it is empty")
	}
	if len(s) > maxQueuePath {
		return bad("it is longer than 1024 bytes")
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return bad("it has an empty part")
		}
		if strings.TrimSpace(part) != part ||
			strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return bad("a part has spaces around it or control characters")
		}
	}
	return QueuePath(s), nil
}

// IsRoot reports whether p is the root itself.
func (p QueuePath) IsRoot() bool { return p == RootQueue }

// IsFull reports whether p starts at the root.
func (p QueuePath) IsFull() bool {
	return p == RootQueue || strings.HasPrefix(string(p), string(RootQueue)+".")
}

// Parent returns the path without its last part, "" for a single part.
func (p QueuePath) Parent() QueuePath {
	if i := strings.LastIndexByte(string(p), '.'); i >= 0 {
		return p[:i]
	}
	return ""
}

// Leaf returns the last part.
func (p QueuePath) Leaf() string {
	return string(p[strings.LastIndexByte(string(p), '.')+1:])
}

// Parts returns the parts from the root down.
func (p QueuePath) Parts() []string {
	if p == "" {
		return nil
	}
	return strings.Split(string(p), ".")
}

// Child returns the path of the child called name.
func (p QueuePath) Child(name string) QueuePath {
	if p == "" {
		return QueuePath(name)
	}
	return p + "." + QueuePath(name)
}

// IsAncestorOf reports whether q lies strictly below p.
func (p QueuePath) IsAncestorOf(q QueuePath) bool {
	return len(q) > len(p)+1 && q[len(p)] == '.' && q[:len(p)] == p
}
