// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
)

type textPart = ListPart[string]

// ask is a router that gets the list of a question from members a and b, which have these tags. It returns how many
// parts were confirmed, and the list.
func ask(l *Lists[string], question string, tags ...string) (held int, whole string) {
	var parts []router.Part[textPart]
	for i, tag := range tags {
		p := router.Part[textPart]{Member: [...]creel.SubclusterID{"sc-a", "sc-b"}[i]}
		p.Value, p.Err = l.Part(question, p.Member, func(known string) (textPart, error) {
			switch tag {
			case "down":
				return textPart{}, errors.New(tag)
			case "", known:
				return textPart{Value: map[string]string{"": "untagged"}[tag], Tag: tag}, nil
			}
			return textPart{Value: tag, Tag: tag, Bytes: 100}, nil
		})
		if p.Value.Held {
			held++
		}
		parts = append(parts, p)
	}
	list := func() Made[string] {
		text := ""
		for _, p := range parts {
			text += p.Value.Value
		}
		return Made[string]{Whole: []byte(text), Share: func(part string) (string, int) { return part, 1 }}
	}
	made, err := l.Whole(context.Background(), question, parts, list)
	if err != nil {
		panic(err)
	}
	return held, string(made)
}

// A list is rebuilt when a member sent its part, and reused while all members confirm theirs.
func TestListIsReusedWhilePartsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lists[string]
		for i, step := range []struct {
			a, b  string
			held  int
			whole string
		}{
			{"a1", "b1", 0, ""},     // written directly
			{"a1", "b1", 2, "a1b1"}, // made and stored
			{"a1", "b1", 2, "a1b1"}, // given again
			{"a2", "b1", 1, ""},
			{"a2", "b1", 2, "a2b1"},
			{"a2", "down", 1, "a2"},
			{"a2", "b1", 2, "a2b1"},
			{"a1", "b1", 1, ""}, // no tag in the answer; a member that sent the same again has not confirmed it
			{"a1", "", 1, ""},   // a member that names no tag
		} {
			if held, whole := ask(&l, "q", step.a, step.b); held != step.held || whole != step.whole {
				t.Fatalf("step %d: %d parts held and %q, want %+v", i, held, whole, step)
			}
		}
		first := l.lists["q"].whole
		ask(&l, "q", "a1", "b1")
		ask(&l, "q", "a1", "b1")
		kept := l.lists["q"].whole
		ask(&l, "q", "a1", "b1")
		if again := l.lists["q"].whole; &again[0] != &kept[0] || &first[0] == &kept[0] {
			t.Error("a list that holds was made again, or one that does not was given")
		}
		if held, _ := ask(&l, "of another", "a1", "b1"); held != 0 {
			t.Error("what was sent to one question is the answer to another")
		}
	})
}

func TestListIsNotMadeForGoneClient(t *testing.T) {
	var l Lists[string]
	parts := []router.Part[textPart]{{Member: "sc-a", Value: textPart{Value: "a", Tag: "1", Held: true}}}
	made := 0
	list := func() Made[string] { made++; return Made[string]{Whole: []byte("a")} }
	ctx, leave := context.WithCancel(t.Context())
	leave()
	for range 300 {
		if whole, err := l.Whole(ctx, "q", parts, list); whole != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("%q, %v", whole, err)
		}
	}
	if made > 0 || len(l.lists) > 0 {
		t.Errorf("made %d lists, %d are stored", made, len(l.lists))
	}
	if whole, err := l.Whole(t.Context(), "q", parts, list); string(whole) != "a" || err != nil || made != 1 {
		t.Errorf("a client that waits gets %q, %v; made %d lists", whole, err, made)
	}
}

// Nothing is stored for longer than listKept after a member sent its part, and never more than listBytes of at most
// listsMost questions.
func TestUnrequestedListsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lists[string]
		ask(&l, "q", "a1", "b1")
		time.Sleep(listKept / 2)
		ask(&l, "q", "a2", "b1")
		time.Sleep(listKept * 3 / 4)
		if held, _ := ask(&l, "q", "a2", "b1"); held != 2 {
			t.Error("a part that came less than listKept ago is gone")
		}
		time.Sleep(listKept)
		synctest.Wait()
		if len(l.lists) != 0 || l.bytes != 0 {
			t.Errorf("%d lists of %d bytes are kept", len(l.lists), l.bytes)
		}
		for i := range 3 * listsMost {
			question := fmt.Sprint(i)
			for range 3 {
				ask(&l, question, "a1", "b1")
			}
			l.keep(question, "sc-c", textPart{Tag: "c", Bytes: listBytes / 9})
			l.keep(question, "sc-d", textPart{Tag: "d", Bytes: listBytes/2 + 1})
			sum := 0
			for _, k := range l.lists {
				for _, p := range k.parts {
					sum += p.Bytes
				}
				sum += len(k.whole)
			}
			if sum != l.bytes || sum > listBytes || len(l.lists) > listsMost || len(l.lists) == 0 {
				t.Fatalf("%d lists of %d bytes, said to be %d", len(l.lists), sum, l.bytes)
			}
			if l.known(question, "sc-d").Tag != "" {
				t.Fatal("a part of more than half of all that may be kept is kept")
			}
		}
		time.Sleep(2 * listKept)
		synctest.Wait()
		if len(l.lists) != 0 || l.bytes != 0 {
			t.Errorf("%d lists of %d bytes are kept", len(l.lists), l.bytes)
		}
	})
}

// A part points into the whole list that was made of it, unless the member has sent another part meanwhile. Only its
// own bytes count.
func TestPartsShareTheBytesOfTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lists[string]
		ask(&l, "q", "a1", "b1")
		if l.bytes != 200 {
			t.Fatalf("two parts of 100 bytes have %d", l.bytes)
		}
		ask(&l, "q", "a1", "b1")
		if want := len("a1b1") + 2; l.bytes != want {
			t.Errorf("two shared parts and the whole list have %d bytes, want %d", l.bytes, want)
		}
		l.keep("q", "sc-c", textPart{Value: "c2", Tag: "c2", Bytes: 100})
		parts := []router.Part[textPart]{{Member: "sc-c", Value: textPart{Value: "c1", Tag: "c1", Held: true}}}
		made := func() Made[string] {
			return Made[string]{Whole: []byte("c1"), Share: func(string) (string, int) { return "of the list", 0 }}
		}
		if whole, err := l.Whole(t.Context(), "q", parts, made); string(whole) != "c1" || err != nil {
			t.Fatalf("%q, %v", whole, err)
		}
		if p := l.known("q", "sc-c"); p.Value != "c2" || p.Bytes != 100 {
			t.Errorf("a newer part became %+v", p)
		}
	})
}

// An item's place is in the list; one without a place is copied, so that nothing else stays in memory.
func TestCopiesPointIntoTheList(t *testing.T) {
	answer := []byte("one two")
	list := []byte("[one]")
	c := Copies{}
	c.Add(answer[:3], list[1:])
	if at, own := c.Of(answer[:3]); &at[0] != &list[1] || cap(at) != 3 || own != 0 {
		t.Errorf("an item of the list: %q, %d bytes of its own", at, own)
	}
	if at, own := c.Of(answer[4:]); string(at) != "two" || &at[0] == &answer[4] || own != 3 {
		t.Errorf("another item: %q, %d bytes of its own", at, own)
	}
	Copies(nil).Add(answer, list)
	if at, own := c.Of(nil); at != nil || own != 0 {
		t.Errorf("an empty item: %q, %d", at, own)
	}
}

// The last part of a member that does not answer is used for the allowed time, counted from when the member confirmed
// it; a rejection is an answer.
func TestLastPartIsServedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Lists[string]{Last: time.Minute}
		away := &creel.Error{Kind: creel.ErrUnavailable, What: "it is away"}
		part := func(err error) textPart {
			parts := []router.Part[textPart]{{Member: "sc-a", Err: err}}
			l.Lately("q", parts)
			return parts[0].Value
		}
		if p := part(away); p.Value != "" {
			t.Errorf("of what was never sent there is %+v", p)
		}
		ask(&l, "q", "a1", "b1")
		time.Sleep(40 * time.Second)
		ask(&l, "q", "a1", "b1") // it is confirmed
		time.Sleep(50 * time.Second)
		if p := part(away); p.Value != "a1" || p.Age != 50*time.Second || p.Late == nil || p.Held {
			t.Errorf("a member that is away for 50 s: %+v", p)
		}
		if p := part(fmt.Errorf("%w: for an hour", ErrLost)); p.Value != "a1" {
			t.Errorf("a lost member: %+v", p)
		}
		if p := part(&creel.Error{Kind: creel.ErrNotPermitted, What: "no"}); p.Value != "" {
			t.Errorf("a member that refuses: %+v", p)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if p := part(away); p.Value != "" {
			t.Errorf("after a minute there is %+v", p)
		}
		if len(l.lists) != 0 || l.bytes != 0 {
			t.Errorf("%d lists of %d bytes are kept", len(l.lists), l.bytes)
		}
	})
}
