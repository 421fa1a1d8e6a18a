// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// value is a message, or the value of one of its fields.
type value struct {
	of   protoreflect.Message         // message with the field; nil for a whole message
	fd   protoreflect.FieldDescriptor // nil for a whole message
	item bool                         // an item of a list
	v    protoreflect.Value
}

func whole(m proto.Message) value { return value{v: protoreflect.ValueOfMessage(m.ProtoReflect())} }

// form reads and writes messages for the rules of package router. It changes the first member's message in place, so
// that unknown fields survive.
type form struct{}

var _ router.Form[value] = form{}

func (v value) isMessage() bool {
	return v.fd == nil || v.fd.Kind() == protoreflect.MessageKind && (v.item || !v.fd.IsList())
}

// Object implements router.Form.
func (form) Object(v value, to []router.Named[value]) ([]router.Named[value], bool) {
	if !v.isMessage() {
		return nil, false
	}
	m := v.v.Message()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); m.Has(fd) {
			to = append(to, router.Named[value]{
				Name: string(fd.Name()), Value: value{of: m, fd: fd, v: m.Get(fd)},
			})
		}
	}
	return to, true
}

// Get implements router.Form.
func (form) Get(v value, name string) (value, bool) {
	if !v.isMessage() {
		return value{}, false
	}
	m := v.v.Message()
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if fd == nil || !m.Has(fd) {
		return value{}, false
	}
	return value{of: m, fd: fd, v: m.Get(fd)}, true
}

// List implements router.Form.
func (form) List(v value) ([]value, bool) {
	if v.fd == nil || v.item || !v.fd.IsList() {
		return nil, false
	}
	list := v.v.List()
	out := make([]value, list.Len())
	for i := range out {
		out[i] = value{of: v.of, fd: v.fd, item: true, v: list.Get(i)}
	}
	return out, true
}

// Number implements router.Form.
func (form) Number(v value) (router.Number, bool) {
	if v.fd == nil || v.fd.IsList() && !v.item {
		return router.Number{}, false
	}
	switch n := v.v.Interface().(type) {
	case int32:
		return router.Number{Int: int64(n), Float: float64(n)}, true
	case int64:
		return router.Number{Int: n, Float: float64(n)}, true
	case uint32:
		return router.Number{Int: int64(n), Float: float64(n)}, true
	case float32:
		return router.Number{Float: float64(n), IsFloat: true}, true
	case float64:
		return router.Number{Float: n, IsFloat: true}, true
	}
	return router.Number{}, false
}

// Text implements router.Form. The text of a message is its encoding, the text of an enumeration the name of its
// value.
func (form) Text(v value) string {
	if v.isMessage() {
		b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(v.v.Message().Interface())
		if err != nil {
			return ""
		}
		return string(b)
	}
	if n, ok := v.v.Interface().(protoreflect.EnumNumber); ok {
		if known := v.fd.Enum().Values().ByNumber(n); known != nil {
			return string(known.Name())
		}
	}
	return v.v.String()
}

// MakeObject implements router.Form.
func (form) MakeObject(first value, fields []router.Named[value]) value {
	m := first.v.Message()
	kept := make(map[protoreflect.FieldNumber]bool, len(fields))
	for _, f := range fields {
		kept[f.Value.fd.Number()] = true
		m.Set(f.Value.fd, f.Value.v)
	}
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		if fd := all.Get(i); !kept[fd.Number()] {
			m.Clear(fd)
		}
	}
	return first
}

// MakeList implements router.Form.
func (form) MakeList(from, items []value) value {
	made := from[0].of.NewField(from[0].fd)
	for _, it := range items {
		made.List().Append(it.v)
	}
	return value{of: from[0].of, fd: from[0].fd, v: made}
}

// MakeNumber implements router.Form.
func (form) MakeNumber(like value, n router.Number) value {
	switch like.fd.Kind() {
	case protoreflect.FloatKind:
		like.v = protoreflect.ValueOfFloat32(float32(n.Float))
	case protoreflect.DoubleKind:
		like.v = protoreflect.ValueOfFloat64(n.Float)
	case protoreflect.Int64Kind:
		like.v = protoreflect.ValueOfInt64(n.Int)
	case protoreflect.Uint32Kind:
		like.v = protoreflect.ValueOfUint32(uint32(min(max(n.Int, 0), math.MaxUint32)))
	default:
		like.v = protoreflect.ValueOfInt32(int32(min(max(n.Int, math.MinInt32), math.MaxInt32)))
	}
	return like
}

// MakeText implements router.Form. An enumeration's text is the name of its value.
func (form) MakeText(like value, text string) value {
	if like.fd.Kind() == protoreflect.EnumKind {
		if v := like.fd.Enum().Values().ByName(protoreflect.Name(text)); v != nil {
			like.v = protoreflect.ValueOfEnum(v.Number())
		}
		return like
	}
	like.v = protoreflect.ValueOfString(text)
	return like
}

// merger merges messages by the rules of package router.
func merger(s *server.Server) *router.Merger[value] {
	return &router.Merger[value]{
		Form:     form{},
		Unlisted: s.Unlisted,
		Now:      time.Now(),

		PartitionSize: s.PartitionSize,
	}
}

// merge merges the members' messages into one. The caller must not use them afterwards.
func merge[M proto.Message](s *server.Server, present []router.Part[M]) M {
	weighed := server.Weigh(s, present)
	parts := make([]router.Weighed[value], len(weighed))
	for i, w := range weighed {
		parts[i] = router.Weighed[value]{Member: w.Member, Size: w.Size, Value: whole(w.Value)}
	}
	merger(s).Merge(string(present[0].Value.ProtoReflect().Descriptor().Name()), parts)
	return present[0].Value
}

// merged asks all members and merges their answers, field by field.
func merged[T any, M interface {
	*T
	proto.Message
}](ctx context.Context, h *Handler, kind remote.Kind, method string, request proto.Message) (M, error) {
	parts, err := ask[T, M](ctx, h, kind, method, request)
	if err != nil {
		return nil, err
	}
	present, _ := router.Present(parts)
	return merge(h.server, present), nil
}

// appFields reads the fields of application reports that MergeApps needs.
func appFields() router.AppFields[*yarnpb.ApplicationReportProto] {
	return router.AppFields[*yarnpb.ApplicationReportProto]{
		ID: func(r *yarnpb.ApplicationReportProto) creel.ApplicationID {
			return yarnpb.ToApplicationID(r.GetApplicationId())
		},
		Unmanaged: func(r *yarnpb.ApplicationReportProto) bool { return r.GetUnmanagedApplication() },
		Start:     func(r *yarnpb.ApplicationReportProto) int64 { return r.GetStartTime() },
		Part:      isUAM,
	}
}
