// SPDX-License-Identifier: Apache-2.0

package yarnpb

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// identifying are the messages that make no sense without each of their fields.
var identifying = map[protoreflect.FullName]bool{
	"creel.yarn.ApplicationIdProto": true, "creel.yarn.ApplicationAttemptIdProto": true, containerID: true,
	"creel.yarn.PriorityProto": true,
}

// containerID is a message with a field that Java neither sets nor reads.
const containerID = "creel.yarn.ContainerIdProto"

// idFields are the fields of a message, by its name, that MissingID looks at.
var idFields sync.Map // protoreflect.FullName -> []protoreflect.FieldDescriptor

// MissingID returns the path of the first id or priority that a request lacks, or of its part, and "" if it has all.
// Hadoop answers a request without them by a NullPointerException; the getters of messages read 0.
func MissingID(request proto.Message) string {
	return missing(request.ProtoReflect(), false)
}

func missing(m protoreflect.Message, whole bool) string {
	for _, f := range fieldsToCheck(m.Descriptor(), whole) {
		if !m.Has(f) {
			return string(f.Name())
		}
		if f.Message() != nil {
			if path := missing(m.Get(f).Message(), true); path != "" {
				return string(f.Name()) + "." + path
			}
		}
	}
	return ""
}

// fieldsToCheck returns a message's ids, and all that makes up an id that is one itself.
func fieldsToCheck(d protoreflect.MessageDescriptor, whole bool) []protoreflect.FieldDescriptor {
	if known, ok := idFields.Load(d.FullName()); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	var list []protoreflect.FieldDescriptor
	fields := d.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		isID := f.Message() != nil && identifying[f.Message().FullName()]
		switch {
		case f.Cardinality() == protoreflect.Repeated:
		case d.FullName() == containerID && f.Name() == "app_id":
		case isID || whole:
			list = append(list, f)
		}
	}
	idFields.Store(d.FullName(), list)
	return list
}
