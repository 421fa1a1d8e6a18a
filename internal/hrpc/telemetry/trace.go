// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/binary"
	"encoding/hex"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/hrpc"
)

const scope = "github.com/creelrm/creel/internal/hrpc/telemetry"

// heartbeats are periodic calls: they get no spans, even if the caller is traced.
var heartbeats = map[string]bool{"allocate": true, "nodeHeartbeat": true}

// Trace opens a span for each call that a server serves, as a child of the caller's span if the call carries one. The
// span ends when the call is answered, even if that happens later. The handler's context carries it.
func Trace(provider trace.TracerProvider) hrpc.Interceptor {
	tracer := provider.Tracer(scope)
	return func(
		ctx context.Context,
		call *hrpc.Call,
		_ proto.Message,
	) (context.Context, func(proto.Message, error), error) {
		if heartbeats[call.Method] {
			return nil, nil, nil
		}
		if parent := SpanContext(call.Trace); parent.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
		}
		ctx, span := tracer.Start(ctx, call.Method, trace.WithSpanKind(trace.SpanKindServer))
		if span.IsRecording() {
			span.SetAttributes(
				attribute.String("rpc.system", "hadoop_rpc"),
				attribute.String("rpc.service", call.Protocol),
				attribute.String("rpc.method", call.Method),
				attribute.String("client.address", call.Remote.Addr().String()),
				attribute.String("enduser.id", call.Identity.User),
				attribute.Int("hadoop.rpc.call_id", int(call.CallID)),
				attribute.Int("hadoop.rpc.retry_count", int(call.RetryCount)),
			)
			if text := call.CallerContext.Context; text != "" {
				span.SetAttributes(attribute.String("hadoop.rpc.caller_context", text))
			}
		}
		return ctx, func(_ proto.Message, err error) { end(span, err) }, nil
	}
}

// TraceClient opens a span for each call that a client makes, as a child of the span in the call's context. The call
// carries the new span.
func TraceClient(provider trace.TracerProvider) hrpc.ClientInterceptor {
	tracer := provider.Tracer(scope)
	return func(ctx context.Context, target *hrpc.Target, method string, options *hrpc.CallOptions) func(error) {
		if heartbeats[method] {
			return nil
		}
		_, span := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient))
		if sc := span.SpanContext(); sc.IsValid() {
			options.Trace = TraceInfo(sc)
		}
		if span.IsRecording() {
			span.SetAttributes(
				attribute.String("rpc.system", "hadoop_rpc"),
				attribute.String("rpc.service", target.Protocol),
				attribute.String("rpc.method", method),
				attribute.String("server.address", target.Address),
			)
		}
		return func(err error) { end(span, err) }
	}
}

func end(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// TraceInfo encodes a span for Hadoop RPC.
func TraceInfo(sc trace.SpanContext) hrpc.TraceInfo {
	id, span := sc.TraceID(), sc.SpanID()
	text := make([]byte, 0, traceparentSize)
	text = append(text, "00-"...)
	text = hex.AppendEncode(text, id[:])
	text = append(text, '-')
	text = hex.AppendEncode(text, span[:])
	text = append(text, '-')
	text = hex.AppendEncode(text, []byte{byte(sc.TraceFlags())})
	return hrpc.TraceInfo{
		TraceID:     int64(binary.BigEndian.Uint64(id[8:])),
		ParentID:    int64(binary.BigEndian.Uint64(span[:])),
		SpanContext: text,
	}
}

const traceparentSize = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")

// SpanContext returns the caller's span from a call, or an invalid one. If a peer sends only HTrace's numbers, the
// trace id gets a zero high half. Such a peer sends them only when it traces, so the span counts as sampled.
func SpanContext(info hrpc.TraceInfo) trace.SpanContext {
	if c, ok := traceparent(info.SpanContext); ok {
		return trace.NewSpanContext(c)
	}
	if info.TraceID == 0 || info.ParentID == 0 {
		return trace.SpanContext{}
	}
	c := trace.SpanContextConfig{Remote: true, TraceFlags: trace.FlagsSampled}
	binary.BigEndian.PutUint64(c.TraceID[8:], uint64(info.TraceID))
	binary.BigEndian.PutUint64(c.SpanID[:], uint64(info.ParentID))
	return trace.NewSpanContext(c)
}

// traceparent reads W3C's header value: version 00, and the corresponding part of later versions.
func traceparent(b []byte) (c trace.SpanContextConfig, ok bool) {
	c.Remote = true
	if len(b) < traceparentSize || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return c, false
	}
	var version, flags [1]byte
	for _, part := range []struct{ into, from []byte }{
		{version[:], b[:2]},
		{c.TraceID[:], b[3:35]},
		{c.SpanID[:], b[36:52]},
		{flags[:], b[53:55]},
	} {
		if _, err := hex.Decode(part.into, part.from); err != nil {
			return c, false
		}
	}
	if version[0] == 0xff || version[0] == 0 && len(b) != traceparentSize ||
		len(b) > traceparentSize && b[traceparentSize] != '-' {
		return c, false
	}
	c.TraceFlags = trace.TraceFlags(flags[0]) & trace.FlagsSampled
	return c, c.TraceID.IsValid() && c.SpanID.IsValid()
}
