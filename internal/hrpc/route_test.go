// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// tellingConfig serves methods that echo all properties of the call.
func tellingConfig() Config {
	tell := func(ctx context.Context, request []byte) ([]byte, error) {
		c := CallFrom(ctx)
		return fmt.Appendf(
			nil,
			"%s %s %d %q %d %v %v %q",
			c.Protocol,
			c.Method,
			c.CallID,
			c.ClientID,
			c.RetryCount,
			c.CallerContext,
			c.Trace,
			request,
		), nil
	}
	methods := map[string]Method{"tell": {Raw: tell, Inline: true}, "say": {Raw: tell, Inline: true}}
	return Config{Simple: true, Services: []Service{
		{Protocol: echoProtocol, Version: 1, Methods: methods},
		{Protocol: echoProtocol + "2", Version: 2, Methods: methods},
	}}
}

// A connection decodes a call with the stored route of the previous one. Whatever that was, the answer equals that of
// a connection without a stored route, also when a bit of the packet is wrong.
func TestReusedCallDecodesLikeFirst(t *testing.T) {
	cfg := tellingConfig()
	c, forgetful := readyConn(t, cfg), readyConn(t, cfg)
	propertytest.Check(t, func(t *rapid.T) {
		c.route = route{}
		sound := drawCall(t)
		for range rapid.IntRange(2, 12).Draw(t, "calls") {
			if rapid.IntRange(0, 2).Draw(t, "another") == 0 {
				sound = drawCall(t)
			}
			frame := slices.Clone(sound)
			if rapid.IntRange(0, 2).Draw(t, "wrong") == 0 {
				at := rapid.OneOf(rapid.IntRange(0, 7), rapid.IntRange(0, len(frame)-1)).Draw(t, "at")
				frame[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			}
			forgetful.route = route{}
			err, want := c.packet(frame), forgetful.packet(frame)
			if fmt.Sprint(err) != fmt.Sprint(want) || !bytes.Equal(c.batch, forgetful.batch) {
				t.Fatalf("%x:\nanswered %q, %v\n    want %q, %v", frame, c.batch, err, forgetful.batch, want)
			}
			c.batch, forgetful.batch = c.batch[:0], forgetful.batch[:0]
		}
	})
}

// drawCall makes the packet of a call.
func drawCall(t *rapid.T) []byte {
	var o CallOptions
	switch rapid.IntRange(0, 5).Draw(t, "options") {
	case 0:
		o.CallerContext.Context = "nightly"
	case 1:
		o.Trace.TraceID = 7
	}
	id := rapid.OneOf(rapid.Int32Range(-5, 200), rapid.Int32()).Draw(t, "id")
	retry := rapid.SampledFrom([]int32{0, 0, 0, -1, 3, 1 << 20}).Draw(t, "retry")
	client := rapid.SampledFrom([]string{rawID, rawID, "another client !", "", string(make([]byte, 130))}).
		Draw(t, "client")
	frame := appendRequestHeader(nil, id, retry, client, &o)
	frame = appendCallHeader(frame, rapid.SampledFrom([]string{"tell", "tell", "say", "none"}).Draw(t, "method"),
		rapid.SampledFrom([]string{echoProtocol, echoProtocol, echoProtocol + "2"}).Draw(t, "protocol"),
		rapid.SampledFrom([]uint64{1, 1, 1, 2}).Draw(t, "version"))
	frame, _ = appendRaw(frame, make([]byte, rapid.SampledFrom([]int{0, 1, 200}).Draw(t, "size")))
	return frame
}

// Successive calls of Hadoop's clients take the shortcut, for every length of the id's encoding.
func TestNextCallIsReadByComparison(t *testing.T) {
	c := readyConn(t, tellingConfig())
	call := func(id int32, method string) []byte {
		b := appendCallHeader(appendRequestHeader(nil, id, 0, rawID, nil), method, echoProtocol, 1)
		b, _ = appendRaw(b, []byte("hello"))
		return b
	}
	if _, _, ok := c.route.repeated(call(1, "tell")); ok {
		t.Error("the first call of a connection repeats none")
	}
	if err := c.packet(call(1, "tell")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []int32{0, 1, 63, 64, 8191, 8192, 1 << 20, 1<<31 - 1} {
		got, request, ok := c.route.repeated(call(id, "tell"))
		if !ok || got != id || string(request) != "\x05hello" {
			t.Errorf("call %d: read as %d with request %q, %v", id, got, request, ok)
		}
	}
	if _, _, ok := c.route.repeated(call(2, "say")); ok {
		t.Error("a call of another method repeats none")
	}
}
