// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"errors"
	"strings"
	"testing"
)

func TestStatesReadBackAndRefuseTheUnknown(t *testing.T) {
	for s := AppNew; s <= AppKilled; s++ {
		if got, err := ParseApplicationState(strings.ToLower(s.String())); err != nil || got != s {
			t.Errorf("%v read back as %v, %v", s, got, err)
		}
	}
	for s := NodeNew; s <= NodeShutdown; s++ {
		if got, err := ParseNodeState(s.String()); err != nil || got != s {
			t.Errorf("%v read back as %v, %v", s, got, err)
		}
	}
	if _, err := ParseApplicationState(
		"DONE",
	); !errors.Is(err, ErrInvalidRequest) ||
		!strings.Contains(err.Error(), "FINISHED") {
		t.Errorf("an unknown state must name the known ones: %v", err)
	}
	if got := ApplicationState(99).String(); got != "UNKNOWN(99)" {
		t.Errorf("got %s", got)
	}
	if got := ExecutionType(0).String(); got != "GUARANTEED" {
		t.Errorf("unset execution type prints %s", got)
	}
}

func TestQueuePaths(t *testing.T) {
	p, err := ParseQueuePath("root.research.ml")
	if err != nil || p.Leaf() != "ml" || p.Parent() != "root.research" || len(p.Parts()) != 3 || !p.IsFull() {
		t.Errorf("%v, %v", p, err)
	}
	if !RootQueue.IsAncestorOf(p) || p.IsAncestorOf(p) || QueuePath("root.res").IsAncestorOf(p) {
		t.Error("ancestors are whole parts above")
	}
	if p.Child("x") != "root.research.ml.x" || RootQueue.Parent() != "" {
		t.Error("child and parent")
	}
	for _, s := range []string{"", ".", "root.", "root..a", "root. a", "a\nb", strings.Repeat("q", 2000)} {
		if _, err := ParseQueuePath(s); !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("%.20q: %v", s, err)
		}
	}
}

func TestErrorHasReasonAndTry(t *testing.T) {
	err := &Error{
		Kind: ErrQueueNotFound,
		What: "no queue root.x",
		Why:  "the queue file has none",
		Try:  "creel queue list",
	}
	if !errors.Is(err, ErrQueueNotFound) ||
		err.Error() != "no queue root.x: the queue file has none; creel queue list" {
		t.Errorf("%v", err)
	}
	if got := (&Error{Kind: ErrBusy}).Error(); got != "busy, try again" {
		t.Errorf("%s", got)
	}
}
